"""`unveil episodes`: what was found, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.cli import connect, draw

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "List what was found, newest first; from the watcher, or from its journal when it does not run."
EXAMPLE = "unveil episodes --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument("--open", action="store_true", help="only those that have not cleared")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many (default: 50)")


def run(arguments: argparse.Namespace) -> int:
    """Print the episodes."""
    watcher = connect.watcher_or_journal(arguments)
    episodes = watcher.call("episodes", limit=arguments.limit, open_only=arguments.open)
    if arguments.json:
        draw.print_json(episodes)
        return 0
    if not episodes:
        draw.line("no episode" + (" is open" if arguments.open else " yet"))
        return 0
    draw.table(
        ("episode", "state", "fingerprint", "entity", "since", "lasted>", "windows>"),
        (
            (
                each["id"],
                each["state"],
                each["fingerprint"],
                draw.entity(each["entity"]),
                draw.clock(each["started_s"]),
                draw.span((each["cleared_s"] or each["last_s"]) - each["started_s"]),
                each["windows"],
            )
            for each in episodes
        ),
    )
    draw.line("`unveil explain EPISODE` says why; `unveil runs plan EPISODE` says what would be done", style="dim")
    return 0
