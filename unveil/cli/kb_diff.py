"""`unveil kb diff`: what a change of the knowledge base means, for whoever reviews it."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING

from unveil.cli import draw

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from unveil.knowledge.change import Change

SUMMARY = "say what a change of the knowledge base means"
DESCRIPTION = """Compare two knowledge bases, each a folder or a git revision: what matches more now and what less, what
may do more to a host, and what is only text. Without B, A is compared with the knowledge base as it is (--kb).

Exit 1 when there are differences, 0 when there are none, 2 when a side cannot be loaded. `--format markdown` is made
for the comment of a pull request."""
EXAMPLE = "unveil kb diff main --kb . --format markdown"
FORMATS = ("text", "markdown", "json")
STYLES = {"risk": "bold red", "loosened": "yellow", "tightened": "cyan", "text": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("before", metavar="A", help="a folder that holds fingerprints/, or a git revision")
    parser.add_argument("after", metavar="B", nargs="?", help="the same (default: the knowledge base as it is)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the answer (default: text)")


def run(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    from unveil.knowledge.content import knowledge_root
    from unveil.records.codec import encode

    root = knowledge_root(arguments.kb)
    after = str(root) if arguments.after is None else arguments.after
    changes = _compare(arguments.before, after, root)
    form = "json" if arguments.json else arguments.format
    if form == "json":
        draw.print_json(encode(changes))
    elif form == "markdown":
        print(markdown(changes))
    else:
        for change in changes:
            line = f"{change.effect:9}  {change.kind} {change.name}: {change.what}"
            draw.line(draw.plain(line, 2000), style=STYLES.get(change.effect, ""))
        draw.line(summary(changes))
    return 1 if changes else 0


def _compare(before: str, after: str, root: Path) -> tuple[Change, ...]:
    from unveil.knowledge.difference import compare, read_side
    from unveil.knowledge.revisions import knowledge_at

    with knowledge_at(before, root) as one, knowledge_at(after, root) as other:
        return compare(read_side(one, before), read_side(other, after))


def summary(changes: Sequence[Change]) -> str:
    """Return one line: how many differences of which kind."""
    if not changes:
        return "no differences"
    counts = Counter(str(change.effect) for change in changes)
    if set(counts) == {"text"}:
        return f"{len(changes)} differences, in text only"
    return f"{len(changes)} differences: {', '.join(f'{count} {effect}' for effect, count in counts.items())}"


def markdown(changes: Sequence[Change]) -> str:
    """Return the differences as GitHub's Markdown: a heading, a table, and text-only edits folded away."""
    lines = ["### Knowledge base", "", summary(changes)]
    for title, chosen in (
        ("", [change for change in changes if change.effect != "text"]),
        ("Text only", [change for change in changes if change.effect == "text"]),
    ):
        if not chosen:
            continue
        lines += ["", *([f"<details><summary>{title}</summary>", ""] if title else [])]
        lines += ["| effect | where | what |", "|---|---|---|"]
        lines += [
            f"| {_cell(f'**{change.effect}**' if change.effect == 'risk' else change.effect)} "
            f"| {change.kind} `{change.name}` | {_cell(change.what)} |"
            for change in chosen
        ]
        lines += ["", "</details>"] if title else []
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a text that stays in its cell and is no markup; the author of a change chose it."""
    flat = html.escape(" ".join(text.split()), quote=False)
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`").replace("[", "\\[").replace("_", "\\_")
