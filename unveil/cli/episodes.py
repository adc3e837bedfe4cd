"""`unveil episodes`: what was found, newest first."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.ticket import written
from unveil.errors import UnveilError

if TYPE_CHECKING:
    import argparse

    from unveil.engine.client import Watcher

DESCRIPTION = """List what was found, newest first; from the watcher, or from its journal when it does not run.

With --ticket one of them is written out for whoever can end it: what was seen, the evidence, what to look at."""
EXAMPLE = "unveil episodes --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument("--open", action="store_true", help="only those that have not cleared")
    parser.add_argument("--ticket", metavar="EPISODE", help="write what to hand on about one, as plain text")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many (default: 50)")


def run(arguments: argparse.Namespace) -> int:
    """Print the episodes."""
    watcher = connect.watcher_or_journal(arguments)
    if arguments.ticket:
        return _ticket(watcher, arguments.ticket, as_json=arguments.json)
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


def _ticket(watcher: Watcher, identity: str, *, as_json: bool) -> int:
    episode = watcher.call("episode", id=identity)["episode"]
    entity = draw.entity(episode["entity"])
    known: list[dict[str, Any]] = (_asked(watcher, "knowledge", {}) or {}).get("fingerprints") or []
    text = written(
        episode,
        host=_asked(watcher, "status", {}).get("host") or socket.gethostname(),
        fingerprint=next((each for each in known if each["name"] == episode["fingerprint"]), None),
        features=_asked(watcher, "features", [], entity=entity),
        facts=_asked(watcher, "facts", []),
    )
    if as_json:
        draw.print_json({"episode": episode["id"], "text": text})
    else:
        print(text, end="")
    return 0


def _asked(watcher: Watcher, method: str, otherwise: Any, **params: Any) -> Any:
    """Return an answer, or what stands for it where only a running watcher could tell."""
    try:
        return watcher.call(method, **params)
    except UnveilError:
        return otherwise
