"""`unveil silence`: a person's temporary exception."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.cli import connect, draw
from unveil.errors import UsageError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Keep automation away from episodes for a while. They are still seen and journalled, never acted upon.

Patterns are shell-style. `--end ID` ends a silence early; without a pattern the silences in force are listed."""
EXAMPLE = "unveil silence 'gpu_*' --entity 'gpu:*' --for 2h --reason 'CHG-4711, planned power cap'"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument("fingerprint", nargs="?", help="names of fingerprints, a pattern")
    parser.add_argument("--entity", default="*", metavar="PATTERN", help="which entities (default: all)")
    parser.add_argument("--for", dest="duration", default="1h", metavar="TIME", help="how long: 30m, 2h (default: 1h)")
    parser.add_argument("--reason", default="", help="why; required")
    parser.add_argument("--end", metavar="ID", help="end this silence now")


def run(arguments: argparse.Namespace) -> int:
    """Make, end or list silences."""
    client = connect.watcher(arguments)
    if arguments.end:
        client.call("end_silence", id=arguments.end)
        if not arguments.json:
            draw.line(f"silence {arguments.end} has ended")
        return 0
    if arguments.fingerprint is None:
        return _list(client.call("silences"), as_json=arguments.json)
    if not arguments.reason:
        raise UsageError("a silence needs a --reason", hint="the next person on call reads it")
    made = client.call(
        "silence",
        fingerprint=arguments.fingerprint,
        entity=arguments.entity,
        seconds=seconds(arguments.duration),
        reason=arguments.reason,
    )
    if arguments.json:
        draw.print_json(made)
    else:
        draw.line(f"silence {made['id']} until {draw.clock(made['until_s'])}")
    return 0


def _list(silences: list[dict[str, object]], *, as_json: bool) -> int:
    if as_json:
        draw.print_json(silences)
    elif not silences:
        draw.line("no silence is in force")
    else:
        draw.table(
            ("silence", "fingerprints", "entities", "until", "reason", "by"),
            (
                (s["id"], s["fingerprint"], s["entity"], draw.clock(float(str(s["until_s"]))), s["reason"], s["actor"])
                for s in silences
            ),
        )
    return 0


def seconds(text: str) -> float:
    """Return the seconds of ``90s``, ``30m``, ``2h`` or ``1d``.

    Raises:
        UsageError: the text is none of these.
    """
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise UsageError(f"not a length of time: {text!r}", hint="write 90s, 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]
