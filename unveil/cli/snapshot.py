"""`unveil snapshot`: everything that a host shows, once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import connect, draw

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Print everything that this host shows, once: every fact, the newest value of every channel."
EXAMPLE = "unveil snapshot --json > node-17.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_host_root(parser)
    connect.add_json(parser)
    parser.add_argument("--no-gpu", dest="gpu", action="store_const", const=False, help="leave NVML alone")


def add_host_root(parser: argparse.ArgumentParser) -> None:
    """Give a command the flag that says which tree is the host."""
    parser.add_argument(
        "--host-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="where the host's proc and sys are (default: /)",
    )


def host_root(arguments: argparse.Namespace) -> Path:
    """Return the tree that is meant.

    Raises:
        BadInputError: it holds neither procfs nor sysfs.
    """
    return connect.checked_root(arguments.host_root)


def run(arguments: argparse.Namespace) -> int:
    """Print the snapshot."""
    from unveil.host.root import HostRoot
    from unveil.host.snapshot import take_snapshot
    from unveil.records.codec import encode

    taken = take_snapshot(HostRoot(host_root(arguments)), wall_s=time.time(), gpus=arguments.gpu)
    if arguments.json:
        draw.print_json(encode(taken))
        return 0
    draw.table(
        ("fact", "entity", "value"),
        (
            (
                fact.name,
                str(fact.entity),
                f"- ({fact.reason})" if fact.value is None else _text(fact.value),
            )
            for fact in taken.facts
        ),
    )
    draw.table(
        ("metric", "labels", "value>", "unit"),
        (
            (
                each.metric,
                " ".join(f"{name}={value}" for name, value in each.labels.items()),
                draw.quantity(each.value),
                each.unit,
            )
            for each in taken.readings
        ),
    )
    return 0


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    return draw.quantity(value) if isinstance(value, float | int) and not isinstance(value, bool) else str(value)
