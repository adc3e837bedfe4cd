"""The GPU child: ``python -m unveil.host.gpu_child``. Reads the GPUs every second and writes frames to its output.

It is a process of its own because a driver call may block for minutes, in a state that no signal ends: the watcher
must not be in that process. It never dies inside a driver call: SIGTERM is looked at between two GPUs only. It ends
when it is asked to, when nobody reads its frames any more, or when the driver fails, because only a fresh process can
speak to a driver that was reloaded.

Exit codes: 0 asked to end, or nothing to read here; 1 the driver failed (the reason is in the last frame).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError, SourceFailedError
from unveil.host.driver_process import hold_termination, termination_asked
from unveil.host.gpu_frames import (
    AbsentFrame,
    CallFrame,
    CycleFrame,
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

SLOW_CYCLES = 10  # each GPU's slow values are read every tenth cycle, the GPUs taking turns


class _Reporter:
    """Reads GPU after GPU and writes down what was found."""

    def __init__(self, source: GpuSource, output: int, only: frozenset[str]) -> None:
        self._source = source
        self._output = output
        self._only = only
        self._cycle = 0
        self._gpus: list[str] = []
        self._reasons: dict[str, dict[str, str]] = {}

    def write(self, frame: Frame) -> None:
        """Write one frame whole; BrokenPipeError when the watcher is gone."""
        line = write_frame(frame)
        while line:
            line = line[os.write(self._output, line) :]

    def discover(self) -> None:
        """Find the GPUs and name them."""
        self._gpus = [gpu for gpu in self._source.discover() if not self._only or gpu in self._only]
        if not self._gpus:
            raise SourceFailedError(f"the driver does not show {', '.join(sorted(self._only))}")
        self.write(GpusFrame(gpus=self._gpus))

    def cycle(self) -> bool:
        """Read every GPU once; False when it was asked to end meanwhile.

        Raises:
            SourceFailedError: the driver is gone, or no GPU is left that gives any value.
        """
        heard = False
        for turn, gpu in enumerate(tuple(self._gpus)):
            if termination_asked():
                return False
            heard |= self._read(gpu, slow=self._cycle == 0 or self._cycle % SLOW_CYCLES == turn % SLOW_CYCLES)
        if not heard:
            raise SourceFailedError("no GPU gives any value any more")
        self._cycle += 1
        self.write(CycleFrame(at_ns=time.monotonic_ns()))
        return True

    def _read(self, gpu: str, *, slow: bool) -> bool:
        self.write(CallFrame(gpu=gpu, at_ns=time.monotonic_ns()))
        reading = self._source.read(gpu, slow=slow)
        if reading.lost is not None:
            self._gpus.remove(gpu)
            self.write(LostFrame(gpu=gpu, reason=reading.lost))
            return False
        if slow:
            found = self._source.identify(gpu)
            facts = {name: list(value) if isinstance(value, tuple) else value for name, value in found.facts.items()}
            at_ns = time.monotonic_ns()
            self.write(IdentityFrame(gpu=gpu, at_ns=at_ns, facts=facts, reasons=dict(found.reasons)))
        reasons = dict(reading.reasons)
        news = reasons if reasons != self._reasons.get(gpu) else None
        self._reasons[gpu] = reasons
        self.write(
            SampleFrame(
                gpu=gpu,
                at_ns=time.monotonic_ns(),
                latency_s=reading.latency_s,
                values=[reading.values.get(metric.name) for metric in METRICS],
                reasons=news,
            )
        )
        return bool(reading.values)


def _report_until_asked(reporter: _Reporter, interval_s: float) -> None:
    reporter.discover()
    due = time.monotonic()
    while reporter.cycle():
        now = time.monotonic()
        due = max(due + interval_s, now)  # after a hang the next reading is due at once, and only one
        if termination_asked(due - now):
            return


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m unveil.host.gpu_child", description=__doc__.partition("\n")[0])
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help="seconds between two readings")
    parser.add_argument("--gpu", action="append", default=[], metavar="UUID", help="read only this GPU (may repeat)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Read GPUs until asked to end; return the exit code."""
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
        _report_until_asked(_Reporter(source, output, frozenset(arguments.gpu)), arguments.interval)
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
