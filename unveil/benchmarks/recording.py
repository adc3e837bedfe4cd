"""What a recording writes to the disk: ``python -m unveil.benchmarks.recording [FILE …]``.

Each recording is written once more, second by second, by the writer that ``unveil record`` has, and read back, which
has to give every bit. Without a FILE this host is recorded first, as it is, and then beside a training-like loop for
each CPU (``unveil.demo.workload``). The table has, per second of the recording,

* the parts: what is written while it is recorded, and what a crash leaves;
* what the same half minutes would be as wide tables, which the finished file is;
* the finished file, which takes the place of the parts at the end;
* both: all that was ever written. **3 kB/s are wanted at most**;
* CPU time of writing the parts, and of finishing at the end.

``--pieces`` adds where the bytes go, by the metadata of Parquet. Of a recording of less than two minutes the footer of
the finished file, 130 bytes for each of hundreds of channels, is the largest piece.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unveil.benchmarks.running import at_work
from unveil.cli import draw
from unveil.host.fact_json import encode_facts
from unveil.host.recorded_table import FIXED
from unveil.host.recording import RecordingWriter
from unveil.host.recording_parts import parts_of
from unveil.host.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.host.recorded_table import Tick

WANTED = 3000.0  # bytes a second
_PART = 30  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A recording that was written once more: bytes, and seconds of CPU time.

    Attributes:
        wide: bytes of the parts, were each a finished file.
        same: whether it read back as it was, before and after it was finished.
        pieces: bytes of the parts and of the finished file, by what they are for.
    """

    name: str
    seconds: int
    parts: int
    wide: int
    finished: int
    writing_s: float
    finishing_s: float
    same: bool
    pieces: Counter[str]

    @property
    def rate(self) -> float:
        """Return how many bytes a second were ever written."""
        return (self.parts + self.finished) / self.seconds


def written(recording: Path, name: str, folder: Path) -> Written:
    """Write a recording once more, into a folder that is empty."""
    ticks = list(Replay(recording))
    path = folder / "once_more.parquet"
    spent = time.process_time()
    writer = RecordingWriter(path, Replay(recording).metadata, part_s=_PART)
    for tick in ticks:
        _write(writer, tick)
    writer.flush()
    writing_s = time.process_time() - spent
    parts = parts_of(path)
    pieces = sum((_pieces(part, "parts: ") for part in parts), Counter())
    size = sum(part.stat().st_size for part in parts)
    same = _same(ticks, path)
    spent = time.process_time()
    writer.close()
    finishing_s = time.process_time() - spent
    return Written(
        name=name,
        seconds=len(ticks),
        parts=size,
        wide=_wide(ticks, folder),
        finished=path.stat().st_size,
        writing_s=writing_s,
        finishing_s=finishing_s,
        same=same and _same(ticks, path),
        pieces=pieces + _pieces(path, "finished: "),
    )


def _write(writer: RecordingWriter, tick: Tick) -> None:
    if tick.facts is not None:
        writer.write_facts(tick.facts)
    writer.write(tick.blocks, wall_s=tick.wall_s)


def _wide(ticks: Sequence[Tick], folder: Path) -> int:
    size = 0
    for begin in range(0, len(ticks), _PART):
        path = folder / f"{begin}.parquet"
        with contextlib.closing(RecordingWriter(path)) as writer:
            for tick in ticks[begin : begin + _PART]:
                _write(writer, tick)
        size += path.stat().st_size
    return size


def _same(ticks: Sequence[Tick], path: Path) -> bool:
    """Tell whether a recording reads as these ticks, bit for bit."""
    again = list(Replay(path))
    return len(again) == len(ticks) and all(
        one.wall_s == other.wall_s
        and (one.facts and encode_facts(one.facts)) == (other.facts and encode_facts(other.facts))
        and len(one.blocks) == len(other.blocks)
        and all(
            block.tier == back.tier
            and block.layout.channels == back.layout.channels
            and np.array_equal(block.times_ns, back.times_ns)
            and block.values.shape == back.values.shape
            and block.values.tobytes() == back.values.tobytes()
            for block, back in zip(one.blocks, other.blocks, strict=True)
        )
        for one, other in zip(ticks, again, strict=True)
    )


def _pieces(path: Path, where: str) -> Counter[str]:
    """Return the bytes of a file by what they are for, which stands after *where*."""
    import pyarrow.parquet as pq

    told = pq.read_metadata(path)
    pieces = Counter({f"{where}footer": told.serialized_size})
    for group in range(told.num_row_groups):
        for index in range(told.num_columns):
            chunk = told.row_group(group).column(index)
            name = chunk.path_in_schema.partition(".")[0]
            if name not in {*FIXED, "column", "form", "steps"}:
                name = "doubles" if chunk.physical_type == "DOUBLE" else "whole numbers"
            pieces[where + name] += chunk.total_compressed_size
    return pieces


def _recorded(folder: Path, seconds: int) -> list[tuple[str, Path]]:
    """Record this host as it is, and beside a loop for each CPU."""
    from unveil.engine.recorder import record

    calm, busy = folder / "calm.parquet", folder / "busy.parquet"
    record(calm, host_root=Path("/"), gpu=False, seconds=seconds)
    command = [sys.executable, "-m", "unveil.demo.workload", "--megabytes", "64", "--seconds", str(seconds + 60)]
    with contextlib.ExitStack() as stack:
        for _ in range(len(os.sched_getaffinity(0))):
            stack.enter_context(at_work(command))
        record(busy, host_root=Path("/"), gpu=False, seconds=seconds)
    return [("this host as it is", calm), ("beside loops", busy)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 when more is written than wanted, or not every bit comes back."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recordings (default: record this host)")
    parser.add_argument("--seconds", type=int, default=180, help="how long each of the two recordings lasts")
    parser.add_argument("--pieces", action="store_true", help="say where the bytes go")
    asked = parser.parse_args(argv)
    found = []
    with tempfile.TemporaryDirectory(prefix="unveil-bench-") as temporary:
        named = [(path.stem, path) for path in asked.files] or _recorded(Path(temporary), asked.seconds)
        for number, (name, path) in enumerate(named):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            found.append(written(path, name, folder))
    draw.table(
        ("", "seconds>", "parts, B/s>", "were they wide>", "finished>", "both>", "CPU ms/s>", "at the end>", "bits"),
        [_row(each) for each in found],
    )
    for each in found if asked.pieces else ():
        draw.table(
            (f"{each.name}, B/s", ">"),
            [(piece, f"{count / each.seconds:.0f}") for piece, count in each.pieces.most_common()],
        )
    kept = all(each.rate <= WANTED for each in found)
    draw.line(f"\n{'within' if kept else 'OVER'} {WANTED / 1000:g} kB/s")
    return 0 if kept and all(each.same for each in found) else 1


def _row(each: Written) -> tuple[str, ...]:
    rates = (each.parts, each.wide, each.finished, each.parts + each.finished)
    return (
        each.name,
        str(each.seconds),
        *(f"{size / each.seconds:,.0f}" for size in rates),
        *(f"{1e3 * spent / each.seconds:.2f}" for spent in (each.writing_s, each.finishing_s)),
        "all came back" if each.same else "LOST",
    )


if __name__ == "__main__":
    sys.exit(main())
