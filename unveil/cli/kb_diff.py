"""`unveil kb diff`: what a change of the knowledge base means, for whoever reviews it."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING

from unveil.cli import draw, kb_recordings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.behaviour import Behaviour
    from unveil.knowledge.change import Change
    from unveil.knowledge.difference import Side

DESCRIPTION = """Compare two knowledge bases, each a folder or a git revision: what matches more now and what less, what
may do more to a host, what is only text; and, watching recordings with both, what fires and would be done differently,
and how far that reaches: recordings, windows, hosts, and the fixes that could newly run. Without B, A is compared with
the knowledge base as it is (--kb).

Exit 1 when there are differences, 0 when there are none, 2 when a side cannot be loaded. `--format markdown` is made
for the comment of a pull request."""
EXAMPLE = "unveil kb diff main --kb . --recordings recordings/ --format markdown"
FORMATS = ("text", "markdown", "json")
STYLES = {"risk": "bold red", "loosened": "yellow", "tightened": "cyan", "text": "dim"}
BEHAVIOUR = "behaviour"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("before", metavar="A", help="a folder that holds fingerprints/, or a git revision")
    parser.add_argument("after", metavar="B", nargs="?", help="the same (default: the knowledge base as it is)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the answer (default: text)")
    kb_recordings.add_recordings(parser)
    parser.add_argument("--no-recordings", action="store_true", help="compare the files only, watch nothing")


def run(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    from unveil.knowledge.blast_radius import blast_radius
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.difference import compare, read_side
    from unveil.knowledge.revisions import knowledge_at
    from unveil.records.codec import encode

    root = knowledge_root(arguments.kb)
    after = str(root) if arguments.after is None else arguments.after
    with knowledge_at(arguments.before, root) as one, knowledge_at(after, root) as other:
        old, new = read_side(one, arguments.before), read_side(other, after)
        changes = compare(old, new)
        traces, behaviour = _behaviour(old, new, (one, other), changes, arguments)
    watched = tuple(trace.recording for trace in traces)
    reach = blast_radius(old.knowledge, new.knowledge, behaviour, traces)
    form = "json" if arguments.json else arguments.format
    if form == "json":
        told = {
            "changes": encode(changes),
            "recordings": list(watched),
            BEHAVIOUR: encode(behaviour),
            "reach": encode(reach),
        }
        draw.print_json(told)
    elif form == "markdown":
        print(markdown(changes, watched, behaviour, reach.lines))
    else:
        for change in (*changes, *(each.change for each in behaviour)):
            line = f"{change.effect:9}  {change.kind} {change.name}: {change.what}"
            draw.line(draw.plain(line, 2000), style=STYLES.get(change.effect, ""))
        if watched and not behaviour:
            draw.line(unmoved(watched))
        for line in reach.lines:
            draw.line(f"reach      {draw.plain(line, 2000)}", style="bold")
        draw.line(summary(changes, behaviour))
    return 1 if changes or behaviour else 0


def _behaviour(
    old: Side, new: Side, folders: tuple[Path, Path], changes: Sequence[Change], arguments: argparse.Namespace
) -> tuple[tuple[Trace, ...], tuple[Behaviour, ...]]:
    """Return what the newer side saw on the recordings that both watched, and where they differ."""
    from unveil.engine.backtesting import Job
    from unveil.knowledge.behaviour import differing

    if arguments.no_recordings or all(change.effect == "text" or change.kind == "tests" for change in changes):
        return (), ()  # nothing that is evaluated or done differs: watching would show nothing
    known = {each.name for side in (old, new) for each in side.knowledge.fingerprints}
    paths = kb_recordings.recordings(arguments.recordings)
    jobs = [
        Job(recording=path, kb=str(folder), labelled=False, names=tuple(sorted(known)))
        for folder in folders
        for path in paths
    ]
    traces = kb_recordings.watch(jobs, arguments, what="watching recordings with both")
    before, after = traces[: len(paths)], traces[len(paths) :]
    return after, tuple(differing(before, after))


def unmoved(watched: Sequence[str]) -> str:
    """Return the line that says that nothing fires differently."""
    return f"on {draw.several(len(watched), 'recording')} everything fires as before"


def summary(changes: Sequence[Change], behaviour: Sequence[Behaviour] = ()) -> str:
    """Return one line: how many differences of which kind."""
    if not changes and not behaviour:
        return "no differences"
    differences = draw.several(len(changes), "difference")
    counts = Counter(str(change.effect) for change in changes)
    if set(counts) == {"text"} and not behaviour:
        return f"{differences}, in text only"
    moved = f"; {len(behaviour)} on recordings" if behaviour else ""
    return f"{differences}: {', '.join(f'{count} {effect}' for effect, count in counts.items())}{moved}"


def markdown(
    changes: Sequence[Change],
    watched: Sequence[str] = (),
    behaviour: Sequence[Behaviour] = (),
    reach: Sequence[str] = (),
) -> str:
    """Return the differences as GitHub's Markdown: tables, and text-only edits folded away."""
    lines = ["### Knowledge base", "", summary(changes, behaviour)]
    lines += _table([change for change in changes if change.effect != "text"])
    if behaviour:
        title = f"#### On {draw.several(len(watched), 'recording')}"
        lines += ["", title, *_table([each.change for each in behaviour])]
    elif watched:
        lines += ["", f"{unmoved(watched).capitalize()}."]
    if reach:
        lines += ["", "**How far it reaches**", "", *(f"- {_cell(line)}" for line in reach)]
    if text := [change for change in changes if change.effect == "text"]:
        lines += ["", "<details><summary>Text only</summary>", *_table(text), "", "</details>"]
    return "\n".join(lines)


def _table(changes: Sequence[Change]) -> list[str]:
    rows = [
        f"| {_cell(f'**{change.effect}**' if change.effect == 'risk' else change.effect)} "
        f"| {change.kind} `{change.name}` | {_cell(change.what)} |"
        for change in changes
    ]
    return ["", "| effect | where | what |", "|---|---|---|", *rows] if rows else []


def _cell(text: str) -> str:
    """Return a text that stays in its cell and is no markup; the author of a change chose it."""
    flat = html.escape(" ".join(text.split()), quote=False)
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`").replace("[", "\\[").replace("_", "\\_")
