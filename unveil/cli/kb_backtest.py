"""`unveil kb backtest`: how the knowledge base does on labelled recordings, and what would have been done."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw, kb_recordings
from unveil.cli.kb_open import usable_knowledge

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import Action, BacktestReport, Score, Trace

DESCRIPTION = """Watch labelled recordings as if they were live, and score every fingerprint: what it found, how soon,
the paper's four figures (hit rate, coverage, agreement, healthy contamination), false fires per host-day, confusion,
and the actions that would have been taken after limits. Nothing is carried out.

Beside RUN.parquet stands RUN.labels.yml. Files are watched side by side, by processes of this machine or, with
--scheduler, by the workers of a Dask cluster (pip install 'unveil[dask]'; they see the files at the same paths).

Where this host has a state directory, the figures are kept there too: the cockpit shows them beside each fingerprint.

Exit 1 when a labelled fault is missed or something fires in time labelled otherwise; with --expect, when an expectation
does not hold (and what is unexpected is up to --unexpected)."""
EXAMPLE = "unveil kb backtest recordings/*.parquet --kb . --expect expectations.yml"
FIGURES = {
    "found": "d", "first_median_s": ".1f", "other_fires": "d", "false_fires": "d", "hit_rate": ".1%",
    "coverage": ".1%", "agreement": ".1%",
}  # fmt: skip
"""What --against compares, and how it is written."""
PROFILES = ("auto", "approve", "manual", "observe", "site")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "recordings", nargs="*", metavar="RECORDING", help="made by `unveil record`, or a folder (default: the demo's)"
    )
    parser.add_argument(
        "--recordings", nargs="+", default=[], dest="also", metavar="RECORDING",
        help="the same, as the other actions have it",
    )  # fmt: skip
    parser.add_argument("--expect", type=Path, metavar="FILE", help="what has to be found")
    parser.add_argument(
        "--unexpected", choices=("fail", "warn", "ignore"), default="warn",
        help="with --expect: what fires in time that is labelled otherwise (default: warn)",
    )  # fmt: skip
    parser.add_argument(
        "--profile", choices=PROFILES, default="auto",
        help="how far automation may go, for the actions; site takes inventory/profiles.yml (default: auto, "
        "so each fix as far as it allows itself)",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="REVISION", help="also watch with this git revision (or folder), and show what differs"
    )
    parser.add_argument("--rule", default="", metavar="RULE", help="which detectors decide, e.g. 'zscore|mahalanobis'")
    kb_recordings.add_processes(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the models (default: 0, so two runs agree)")
    parser.add_argument("--verbose", action="store_true", help="also show fingerprints with neither label nor fire")
    connect.add_state_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Watch, score, print."""
    from unveil.engine import last_backtest
    from unveil.engine.backtesting import Job, labels_of
    from unveil.knowledge.backtest import report, unmet
    from unveil.knowledge.labels import read_expectations
    from unveil.records.codec import encode

    revisions = {each.name: each.revision for each in usable_knowledge(arguments.kb).fingerprints}
    names = list(revisions)
    wanted = read_expectations(arguments.expect, names) if arguments.expect else ()
    jobs = [
        Job(recording=each, kb=arguments.kb or "", profile=arguments.profile, rule=arguments.rule, seed=arguments.seed)
        for each in kb_recordings.recordings([*arguments.recordings, *arguments.also])
    ]
    if arguments.scheduler is None:  # else the workers see the files, perhaps we do not
        for job in jobs:  # before minutes are spent on others
            labels_of(job, names)
    traces = kb_recordings.watch(jobs, arguments)
    found = report(traces, names)
    before = None if arguments.against is None else _before(jobs, names, arguments)
    broken = tuple(unmet(wanted, traces))
    last_backtest.keep(connect.state_dir(arguments).path, found, revisions, at_s=time.time())
    if arguments.json:
        against = {} if before is None else {"against": {"revision": arguments.against, **encode(before)}}
        draw.print_json({**encode(found), "unmet": list(broken), **against})
    else:
        _draw(found, traces, verbose=arguments.verbose)
        if before is not None:
            draw_against(before, found, arguments.against)
        for line in broken:
            draw.line(f"not met: {draw.plain(line, 500)}", style="bold red")
    if not arguments.expect:
        return 1 if found.missed or found.unexpected else 0
    return 1 if broken or (found.unexpected and arguments.unexpected == "fail") else 0


def _before(jobs: Sequence[Job], names: Sequence[str], arguments: argparse.Namespace) -> BacktestReport:
    """Return the figures of another revision on the same recordings, with the labels of today."""
    from unveil.knowledge.backtest import report
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.revisions import knowledge_at

    with knowledge_at(arguments.against, knowledge_root(arguments.kb)) as folder:
        then = [each.name for each in usable_knowledge(str(folder)).fingerprints]
        known = tuple(sorted({*names, *then}))
        old = [replace(job, kb=str(folder), names=known) for job in jobs]
        what = f"watching recordings with {draw.plain(arguments.against, 60)}"
        return report(kb_recordings.watch(old, arguments, what=what), then)


def draw_against(before: BacktestReport, after: BacktestReport, revision: str) -> None:
    """Show each fingerprint whose figures are others than at a revision."""
    was, now = ({each.fingerprint: each for each in found.scores} for found in (before, after))
    rows = [
        (name, *(_moved(figure, was.get(name), now.get(name)) for figure in FIGURES))
        for name in dict.fromkeys((*now, *was))
        if was.get(name) != now.get(name) and any(_speaks(found[name]) for found in (was, now) if name in found)
    ]
    shown = draw.plain(revision, 60)
    if rows:
        draw.line(f"against {shown}")
        draw.table(("fingerprint", "found>", "first>", "other>", "false>", "hits>", "covers>", "agrees>"), rows)
    else:
        draw.line(f"against {shown}: every figure is the same")


def _moved(figure: str, was: Score | None, now: Score | None) -> str:
    """Return a figure then and now, and by how much it moved; once where it is the same."""
    then, this = (None if each is None else getattr(each, figure) for each in (was, now))
    unit = FIGURES[figure]
    if then == this:
        return _figure(this, unit)
    delta = f" ({_figure(this - then, unit, sign='+')})" if then is not None and this is not None else ""
    return f"{_figure(then, unit)} → {_figure(this, unit)}{delta}"


def _figure(value: float | None, unit: str, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}{unit}}"


def _draw(found: BacktestReport, traces: Sequence[Trace], *, verbose: bool) -> None:
    total_s = sum(trace.seconds for trace in traces)
    recordings = draw.several(len(traces), "recording")
    draw.line(f"{recordings}, {draw.span(total_s)}, of which {draw.span(found.healthy_s)} are healthy")
    if shown := [each for each in found.scores if verbose or _speaks(each)]:
        _draw_scores(shown)
    if not found.healthy_s:
        draw.line("No time is labelled healthy, so nothing is known of false fires.", style="yellow")
    if found.confusion:
        draw.table(
            ("in the time of", "fires"),
            (
                (label, ", ".join(f"{count} x {name}" for name, count in fires.items()))
                for label, fires in found.confusion.items()
            ),
        )
    _draw_actions(found.actions)
    for line in found.missed:
        draw.line(f"missed: {draw.plain(line, 500)}", style="yellow")
    for line in found.unexpected:
        draw.line(f"unexpected: {draw.plain(line, 500)}", style="yellow")


def _draw_scores(scores: Sequence[Score]) -> None:
    draw.table(
        ("fingerprint", "found>", "first>", "other>", "false a day (95 %)>", "hits>", "covers>", "agrees>", "contam.>"),
        (
            (
                each.fingerprint,
                f"{each.found} of {each.intervals}",
                "-" if each.first_median_s is None else f"{each.first_median_s:.1f} s",
                each.other_fires,
                _rate(each),
                *map(_share, (each.hit_rate, each.coverage, each.agreement, each.contamination)),
            )
            for each in scores
        ),
    )


def _speaks(score: Score) -> bool:
    return bool(score.intervals or score.fires or score.other_fires or score.false_fires)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _rate(score: Score) -> str:
    if score.false_per_day is None:
        return "-"
    return f"{score.false_per_day:.3g} ({score.false_low:.2g} to {score.false_high:.2g})"


def _draw_actions(actions: Any) -> None:
    told: list[tuple[str, Action]] = [(name, action) for name, several in actions.items() for action in several]
    if not told:
        draw.line("Nothing would have been done.")
        return
    draw.table(
        ("recording", "at>", "fingerprint", "entity", "fix", "outcome", "what"),
        (
            (
                name,
                f"{action.at_s:.0f} s",
                action.fingerprint,
                action.entity,
                action.remediation or "-",
                action.outcome,
                "; ".join((*action.changes, action.reason) if action.reason else action.changes),
            )
            for name, action in told
        ),
    )
