"""`unveil record`: record this host to a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.cli.silence import seconds
from unveil.errors import UsageError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Record every channel and fact of this host to a Parquet file, at 100 ms.

The file opens in anything that reads Parquet; `unveil replay`, `unveil tui --replay` and the tests of a knowledge base
run it through the same code as a live host. A crash costs at most the last half minute; --resume goes on after one."""
EXAMPLE = "unveil record slow-node.parquet --for 5m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording to write")
    parser.add_argument("--for", dest="duration", metavar="TIME", help="how long: 90s, 5m (default: until interrupted)")
    parser.add_argument("--note", default="", help="what a reader should know about it")
    parser.add_argument("--resume", action="store_true", help="go on after an interrupted recording of this name")
    parser.add_argument("--host-root", type=Path, default=Path("/"), metavar="DIR", help="where proc and sys are")
    parser.add_argument("--no-gpu", dest="gpu", action="store_false", help="leave NVML alone")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(arguments: argparse.Namespace) -> int:
    """Record until the time is over or it is interrupted; the file is whole either way."""
    from unveil.engine.recorder import record

    length_s = seconds(arguments.duration) if arguments.duration else None
    if length_s is not None and length_s < 1:
        raise UsageError("a recording lasts a second at least", hint="leave out --for to record until Ctrl-C")
    with draw.progress("recording", total=length_s, quiet=arguments.quiet) as advance:
        taken = record(
            arguments.file,
            host_root=arguments.host_root,
            gpu=arguments.gpu,
            seconds=length_s,
            note=arguments.note,
            resume=arguments.resume,
            on_second=advance,
        )
    size = arguments.file.stat().st_size
    draw.line(f"{arguments.file}: {draw.span(taken)} of this host, {size / 1000:.0f} kB")
    return 0
