"""The GPU child: ``python -m unveil.host.gpu_child``. Lists the GPUs, or reads one of them, and writes frames.

``--list`` names the GPUs that answer and ends. ``--gpu UUID`` reads that GPU every second.

It is a process of its own because a driver call may block for minutes, in a state that no signal ends: the watcher
must not be in that process, and the other GPUs are not either. It never dies inside a driver call: SIGTERM is looked
at between two readings only. It ends when it is asked to, when nobody reads its frames any more, or when the driver
fails, because only a fresh process can speak to a driver that was reloaded.

Exit codes: 0 asked to end, or nothing to read here; 1 the driver failed (the reason is in the last frame).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError, SourceFailedError
from unveil.host.driver_process import hold_termination, termination_asked
from unveil.host.gpu_frames import (
    AbsentFrame,
    CallFrame,
    FailedFrame,
    GpusFrame,
    IdentityFrame,
    LostFrame,
    SampleFrame,
    write_frame,
)
from unveil.host.sources.gpu import METRICS, GpuSource, open_nvml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.host.gpu_frames import Frame

SLOW_CYCLES = 10  # slow values are read every tenth cycle


class _Reporter:
    """Reads one GPU and writes down what was found."""

    def __init__(self, source: GpuSource, output: int, gpu: str) -> None:
        self._source = source
        self._output = output
        self._gpu = gpu
        self._cycle = 0
        self._reasons: dict[str, str] | None = None

    def write(self, frame: Frame) -> None:
        """Write one frame whole; BrokenPipeError when the watcher is gone."""
        line = write_frame(frame)
        while line:
            line = line[os.write(self._output, line) :]

    def cycle(self) -> bool:
        """Read the GPU once; False when it is lost.

        Raises:
            SourceFailedError: the driver is gone, or gives no value any more.
        """
        slow = self._cycle % SLOW_CYCLES == 0
        self._cycle += 1
        self.write(CallFrame(gpu=self._gpu, at_ns=time.monotonic_ns()))
        reading = self._source.read(self._gpu, slow=slow)
        if reading.lost is not None:
            self.write(LostFrame(gpu=self._gpu, reason=reading.lost))
            return False
        if slow:
            self._identify()
        reasons = dict(reading.reasons)
        news = reasons if reasons != self._reasons else None
        self._reasons = reasons
        self.write(
            SampleFrame(
                gpu=self._gpu,
                at_ns=time.monotonic_ns(),
                latency_s=reading.latency_s,
                values=[reading.values.get(metric.name) for metric in METRICS],
                reasons=news,
            )
        )
        if not reading.values:
            raise SourceFailedError(f"the driver gives no value of {self._gpu} any more")
        return True

    def _identify(self) -> None:
        found = self._source.identify(self._gpu)
        facts = {name: list(value) if isinstance(value, tuple) else value for name, value in found.facts.items()}
        at_ns = time.monotonic_ns()
        self.write(IdentityFrame(gpu=self._gpu, at_ns=at_ns, facts=facts, reasons=dict(found.reasons)))


def _report_until_asked(reporter: _Reporter, interval_s: float) -> None:
    """Read at multiples of the interval: all children at the same moments, so that their rows fit together."""
    while reporter.cycle():
        now = time.monotonic()
        due = math.ceil(now / interval_s) * interval_s  # after a hang the next one, and only one
        if termination_asked(due - now):
            return


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m unveil.host.gpu_child", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="name the GPUs and end")
    what.add_argument("--gpu", metavar="UUID", help="read this GPU")
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help="seconds between two readings")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """List the GPUs, or read one until asked to end; return the exit code."""
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    hold_termination()
    output = sys.stdout.fileno()
    try:
        source = GpuSource(open_nvml())
    except SourceAbsentError as error:
        return _last_word(output, AbsentFrame(reason=error.what), 0)
    except SourceFailedError as error:
        return _last_word(output, FailedFrame(reason=error.what), 1)
    try:
        if arguments.list:
            return _last_word(output, GpusFrame(gpus=list(source.discover())), 0)
        source.attach(arguments.gpu)
        _report_until_asked(_Reporter(source, output, arguments.gpu), arguments.interval)
    except SourceFailedError as error:
        return _last_word(output, FailedFrame(reason=error.what), 1)
    except BrokenPipeError:
        return 0  # the watcher is gone
    finally:
        source.close()
    return 0


def _last_word(output: int, frame: Frame, code: int) -> int:
    try:
        os.write(output, write_frame(frame))
    except BrokenPipeError:
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
