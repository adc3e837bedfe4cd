"""`unveil explain`: why a fingerprint matched, or why not, clause by clause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.errors import BadInputError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Say why a fingerprint matched, or why not, clause by clause.

Give the id of an episode (its newest matching window is explained), or the name of a fingerprint (the newest window of
the running watcher is held against it, for every entity)."""
EXAMPLE = "unveil explain reduced_huge_page_coverage"
SIGNS = {"match": "yes", "no_match": "no ", "unknown": "?  "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument("what", metavar="EPISODE|FINGERPRINT", help="an episode's id or a fingerprint's name")
    parser.add_argument("--entity", metavar="KIND:KEY", help="only this entity, e.g. gpu:GPU-… or cgroup:/pod1")


def run(arguments: argparse.Namespace) -> int:
    """Print the clauses; 0 when something matches, 1 when nothing does."""
    matches = _matches(arguments)
    if arguments.json:
        draw.print_json(matches)
    else:
        for match in matches:
            draw_match(match)
    return 0 if any(match["answer"] == "match" for match in matches) else 1


def _matches(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    watcher = connect.watcher_or_journal(arguments)
    try:
        return [watcher.call("episode", id=arguments.what)["episode"]["last"]]
    except BadInputError:
        found: list[dict[str, Any]] = watcher.call("explain", fingerprint=arguments.what, entity=arguments.entity)
        return found


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
