"""`unveil explain`: why a fingerprint or a correlation matched, or why not, clause by clause."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.errors import BadInputError, RefusedError

if TYPE_CHECKING:
    import argparse

    from unveil.engine.client import Watcher

DESCRIPTION = """Say why a fingerprint matched, or why not, clause by clause.

Give the id of an episode (its newest matching window is explained), or the name of a fingerprint (the newest window of
the running watcher is held against it, for every entity). A correlation comes with the episodes that it is made of."""
EXAMPLE = "unveil explain reduced_huge_page_coverage"
SIGNS = {"match": "yes", "no_match": "no ", "unknown": "?  "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument(
        "what", metavar="EPISODE|FINGERPRINT", help="an episode's id, or the name of a fingerprint or a correlation"
    )
    parser.add_argument("--entity", metavar="KIND:KEY", help="only this entity, e.g. gpu:GPU-… or cgroup:/pod1")


def run(arguments: argparse.Namespace) -> int:
    """Print the clauses; 0 when something matches, 1 when nothing does."""
    with closing(connect.watcher_or_journal(arguments)) as watcher:
        matches = explained(watcher, arguments.what, arguments.entity)
    if arguments.json:
        draw.print_json(matches)
    else:
        draw_explained(arguments.what, matches)
    return 0 if any(match["answer"] == "match" for match in matches) else 1


def explained(watcher: Watcher, what: str, entity: str | None = None) -> list[dict[str, Any]]:
    """Return the matches that explain an episode, a fingerprint or a correlation.

    Where the watcher knows, they hold as ``of`` the episodes that one of a correlation is made of, and as ``part_of``
    those of correlations that an episode is part of.
    """
    try:
        episode = watcher.call("episode", id=what)["episode"]
    except BadInputError:
        found: list[dict[str, Any]] = watcher.call("explain", fingerprint=what, entity=entity)
        return found
    try:
        return [{**episode["last"], **watcher.call("members", episode=episode["id"])}]
    except RefusedError:  # the journal alone does not know correlations
        return [episode["last"]]


def draw_explained(what: str, matches: list[dict[str, Any]]) -> None:
    """Draw what `explained` gave for something."""
    for match in matches:
        draw_match(match)
        _draw_together(match)
    if not matches:  # a fingerprint's would have been refused
        draw.line(f"{what[:80]}: none of the fingerprints that it joins fires")


def _draw_together(match: dict[str, Any]) -> None:
    """Draw the episodes that a correlation is made of, and those that an episode is part of."""
    for name, title in (("of", "Made of:"), ("part_of", "Part of:")):
        if episodes := match.get(name):
            draw.table(
                ("episode", "state", "fingerprint", "entity", "since", "last match"),
                (
                    (
                        each["id"],
                        each["state"],
                        each["fingerprint"],
                        draw.entity(each["entity"]),
                        draw.clock(each["started_s"]),
                        draw.clock(each["last_s"]),
                    )
                    for each in episodes
                ),
                title=title,
            )


def draw_match(match: dict[str, Any]) -> None:
    """Draw one fingerprint on one entity with its clauses, values and thresholds."""
    draw.line(
        f"{match['fingerprint']} on {draw.entity(match['entity'])}: {match['answer']} "
        f"in window {match['window']} at {draw.clock(match['wall_s'])}",
        style=draw.COLOURS.get(match["answer"], ""),
    )
    draw.table(
        ("", "clause", "what was asked", "what was there"),
        (
            (
                SIGNS[clause["answer"]],
                clause["name"],
                f"{clause['subject']} {clause['operator']} {clause['threshold']}",
                draw.quantity(clause["value"]) + (f" ({clause['reason']})" if clause["reason"] else ""),
            )
            for clause in match["clauses"]
        ),
    )
