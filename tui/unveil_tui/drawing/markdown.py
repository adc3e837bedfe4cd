"""Windows, episodes and runs as Markdown, for a ticket or a chat. Pure.

A tenant chose parts of it: text goes into code spans and fenced blocks whose fences it cannot close.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.records.plain_text import plain, quantity
from unveil_tui.drawing import plan as drawn
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from unveil.records.match import Episode, Match
    from unveil.records.run import Run
    from unveil.records.window import WindowSummary
    from unveil_tui.near import Near


def of_window(window: WindowSummary, near: Sequence[Near], *, host: str) -> str:
    """Return a window: its verdict, what moved it, and the fingerprints held against it."""
    verdict = window.verdict
    rule = code(verdict.rule or "-")
    lines = [
        f"# Window {window.watch}:{window.index} of {code(host)}",
        "",
        f"- at {_time(window.wall_s)}: **{verdict.state}**, severity {verdict.severity:.2f} by {rule}",
        *(
            f"- {code(vote.detector)}: {vote.score:.3f} {'>' if vote.anomalous else '≤'} {vote.threshold:.3f}"
            for vote in verdict.votes
        ),
        "",
        "## What moved it",
        "",
    ]
    shares = sorted(window.attribution.subsystems.items(), key=lambda each: -each[1])
    lines += [", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005) or "nothing", ""]
    lines += _table(
        ("feature", "share", "value", "expected", "sigmas"),
        (
            (
                code(each.feature),
                f"{each.share:.1%}",
                quantity(each.value),
                quantity(each.expected),
                f"{each.sigma:+.1f}",
            )
            for each in window.attribution.features
        ),
    )
    for each in near:
        lines += [f"## {code(each.match.fingerprint)} on {code(each.match.entity)}: {each.match.answer}", ""]
        lines += _clauses(each.match)
    return "\n".join(lines).rstrip() + "\n"


def of_episode(episode: Episode, runs: Iterable[Run], *, host: str) -> str:
    """Return an episode: since when, why, and what was done about it."""
    times = [("since", episode.started_s), ("fired", episode.fired_s), ("cleared", episode.cleared_s)]
    lines = [
        f"# {code(episode.fingerprint)} on {code(episode.entity)} of {code(host)}",
        "",
        f"- episode {code(episode.id)}: **{episode.state}**, {words.count(episode.windows, 'matching window')}",
        *(f"- {name} {_time(at_s)}" for name, at_s in times if at_s is not None),
        "",
        *_clauses(episode.last),
    ]
    lines += [
        f"- run {code(run.id)}: {code(run.plan.remediation)} ended as **{run.state}** ({_time(run.steps[-1].at_s)})"
        for run in runs
    ]
    return "\n".join(lines).rstrip() + "\n"


def of_run(run: Run, events: Iterable[dict[str, Any]], *, host: str) -> str:
    """Return the story of a run: what it changed, why, and how it ended."""
    plan = run.plan
    lines = [
        f"# {code(plan.remediation)} on {code(host)}: {run.state}",
        "",
        f"- run {code(run.id)}, plan {code(plan.hash[:12])}",
        f"- for {code(plan.fingerprint)} on {code(plan.entity)}, episode {code(plan.episode)}",
        f"- impact {plan.impact}, {'reversible' if plan.reversible else 'NOT reversible'}, mode {plan.mode}",
        "",
    ]
    lines += _table(
        ("setting", "before", "after"),
        (
            (code(each.address), code(_text(each.before)), code("(moves along)" if each.coupled else _text(each.after)))
            for each in plan.changes
        ),
    )
    rows = drawn.story_rows(run, list(events))
    lines += _table(("time", "what", "said"), (tuple(code(text) for text, _ in row.cells) for row in rows))
    return "\n".join(lines).rstrip() + "\n"


def code(text: object) -> str:
    """Return a code span that its text cannot leave, neither by backticks nor by a table's bar."""
    shown = plain(text, 2000).replace("|", "¦").strip()
    longest = max((len(run) for run in _backticks(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{shown or '-'}{pad}{fence}"


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in text).split() if run]


def _clauses(match: Match) -> list[str]:
    return _table(
        ("holds", "clause", "asked", "there"),
        (
            (
                words.SIGNS[each.answer],
                code(each.name),
                code(asked(each)),
                code(quantity(each.value) + (f" ({each.reason})" if each.reason else "")),
            )
            for each in match.clauses
        ),
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    listed = [f"| {' | '.join(row)} |" for row in rows]
    if not listed:
        return []
    return [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}", *listed, ""]


def _text(value: str | None) -> str:
    return "-" if value is None else value.strip() or "(empty)"


def _time(at_s: float) -> str:
    return time.strftime("%F %T %Z", time.localtime(at_s))
