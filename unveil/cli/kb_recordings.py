"""Which recordings an action on a knowledge base is tried on, and where they are watched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.cli.demo import recording, recording_named
from unveil.errors import BadInputError, UnreadableError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import Trace

SUFFIX = ".parquet"


def add_recordings(parser: argparse.ArgumentParser) -> None:
    """Give an action the flags that say which recordings, and who watches them."""
    parser.add_argument(
        "--recordings", nargs="+", default=[], metavar="PATH",
        help="recordings, or folders of them (default: the demo's)",
    )  # fmt: skip
    add_processes(parser)


def add_processes(parser: argparse.ArgumentParser) -> None:
    """Give an action the flags that say who watches recordings."""
    parser.add_argument("--jobs", type=_jobs, default=os.cpu_count() or 1, help="processes (default: one a CPU)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers watch instead")


def _jobs(text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def recordings(named: Sequence[str]) -> list[str]:
    """Return the recordings that are meant: those named, those in folders that are named, else the demo's.

    Raises:
        BadInputError: a folder has none, or two have one name: results go by the name of the file.
    """
    if not named:
        return [recording()]
    found = []
    for name in map(recording_named, named):
        inside = sorted(str(path) for path in Path(name).rglob(f"*{SUFFIX}")) if Path(name).is_dir() else [name]
        if not inside:
            raise BadInputError(
                f"{name} holds no recording", hint=f"recordings end in {SUFFIX}; `unveil record` makes one"
            )
        found += inside
    if len({Path(each).name for each in found}) < len(found):
        raise BadInputError("two recordings have one name", hint="expectations and results go by the name of the file")
    return found


def labelled(named: Sequence[str]) -> list[str]:
    """Return the recordings that are meant and have labels beside them.

    Raises:
        BadInputError: one is not there.
    """
    from unveil.host.recording_parts import parts_of
    from unveil.knowledge.labels import labels_beside

    found = recordings(named)
    if missing := [path for path in found if not Path(path).exists() and not parts_of(Path(path))]:
        raise UnreadableError(f"there is no recording {missing[0]}")
    return [path for path in found if labels_beside(Path(path)) is not None]


def watch(
    jobs: Sequence[Job], arguments: argparse.Namespace, *, what: str = "watching recordings"
) -> tuple[Trace, ...]:
    """Watch recordings where the flags say, and show how far it is."""
    from unveil.engine.backtesting import watch_all

    with draw.progress(what, total=len(jobs), quiet=arguments.json) as advance:
        if arguments.scheduler is None:
            return watch_all(jobs, processes=arguments.jobs, done=advance)
        if not arguments.scheduler:
            raise UsageError("--scheduler needs an address", hint="e.g. tcp://HOST:8786")
        from unveil.engine.cluster import watch_on_cluster

        return watch_on_cluster(jobs, scheduler=arguments.scheduler, done=advance)
