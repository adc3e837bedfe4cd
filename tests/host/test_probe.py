"""Probes: paced by what they cost, tried again after a failure, absent where they cannot be."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.catalogue import METRICS, PROBE_METRICS, new_probes
from unveil.host.probe import LONGEST_S, Probes
from unveil.host.source import SourceState
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND = 1_000_000_000


class Made:
    """A probe that does what a test says."""

    name = "made"
    period_s = 10.0
    reason = ""

    def __init__(self) -> None:
        self.values: dict[str, float] = {"cpu.migrations": 1.0}
        self.error: Exception | None = None
        self.cpu_s = 0.0
        self.opened = self.closed = self.reads = 0

    def open(self) -> None:
        self.opened += 1

    def read(self) -> Mapping[Channel, float]:
        self.reads += 1
        until = time.thread_time() + self.cpu_s
        while time.thread_time() < until:
            pass
        if self.error is not None:
            raise self.error
        return {Channel(name): value for name, value in self.values.items()}

    def close(self) -> None:
        self.closed += 1


def test_a_probe_is_read_at_its_pace_and_keeps_its_layout() -> None:
    made = Made()
    probes = Probes([made], live=True)
    blocks = [block for second in range(41) for block in probes.poll(second * SECOND)]
    assert [block.times_ns[0] // SECOND for block in blocks] == [0, 10, 20, 30, 40]
    assert len({id(block.layout) for block in blocks}) == 1
    made.values["cpu.cycles"] = 3.0
    (block,) = probes.poll(50 * SECOND)
    assert block.layout.channels == (Channel("cpu.cycles"), Channel("cpu.migrations"))


def test_one_that_is_dear_is_read_less_often_says_so_and_comes_back() -> None:
    made = Made()
    made.cpu_s = 0.012
    probes = Probes([made], live=True)
    for second in range(0, 60, 5):
        probes.poll(second * SECOND)
    (health,) = probes.health()
    assert health.period_s > 10
    assert health.period_s <= LONGEST_S
    assert "only: reading takes 1" in health.reason
    made.cpu_s = 0.0
    for second in range(60, 2000, 5):
        probes.poll(second * SECOND)
    assert probes.health()[0].period_s == 10.0
    assert probes.health()[0].reason == ""


def test_one_that_fails_is_closed_said_and_tried_again() -> None:
    made = Made()
    made.error = OSError(errno.EIO, "broken")
    probes = Probes([made], live=True)
    assert probes.poll(0) == ()
    assert probes.health()[0].state is SourceState.FAILED
    assert (made.opened, made.closed) == (1, 1)
    assert probes.poll(60 * SECOND) == ()
    assert made.reads == 1, "not again at once"
    made.error = None
    assert len(probes.poll(301 * SECOND)) == 1
    assert probes.health()[0].state is SourceState.OK


def test_what_is_absent_is_no_failure() -> None:
    made = Made()
    made.error = SourceAbsentError("no such thing")
    probes = Probes([made], live=True)
    probes.poll(0)
    assert (probes.health()[0].state, probes.health()[0].reason) == (SourceState.ABSENT, "no such thing")


def test_files_of_another_host_cannot_be_asked() -> None:
    made = Made()
    probes = Probes([made], live=False)
    assert probes.poll(0) == ()
    assert probes.health()[0].state is SourceState.ABSENT
    assert made.opened == 0


def test_the_probes_of_the_catalogue_run_here_or_say_why_not() -> None:
    probes = Probes(new_probes(), live=True)
    blocks = probes.poll(0)
    assert {health.name for health in probes.health()} == {"perf", "ethtool"}
    for health in probes.health():
        assert health.channels > 0 or health.reason
    assert {channel.metric for block in blocks for channel in block.layout.channels} <= {
        metric.name for metric in PROBE_METRICS
    }
    assert {metric.name for metric in PROBE_METRICS} <= METRICS.keys()
    probes.close()
