"""Hours of a host in virtual time, through the pipeline of the watcher and the default rule: what is said, and when.

The host is made of the raw counters that a sampler reads, ten samples a second: some work, bursts of it, a checkpoint
each minute. What may go wrong with a reference goes wrong here: it is offered a fault of two hours, the watcher is
killed in the middle of one, the workload changes every ten minutes, and clocks jump.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.engine.pipeline import Pipeline
from unveil.engine.state_dir import StateDir
from unveil.engine.training import Training
from unveil.records.entity import EntityKind
from unveil.records.fact import FactTable
from unveil.records.fingerprint import FeatureClause, Fingerprint
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
WALL_S = 1_700_000_000.0
MINUTE, HOUR = 60, 3600
GIB = 2.0**30

# a second of work: counters by how much they grow, gauges by where they stand
TRAINING = {
    "cpu.user": 0.9, "cpu.system": 0.15, "cpu.idle": 0.9, "cpu.iowait": 0.01, "cpu.context_switches": 4000.0,
    "cpu.interrupts": 3000.0, "cpu.psi_some": 0.02, "memory.psi_some": 0.0, "storage.psi_some": 0.01,
    "storage.psi_full": 0.005, "memory.page_faults": 8000.0, "memory.major_faults": 0.1,
    "memory.thp_fault_alloc": 180.0, "memory.thp_fault_fallback": 0.2, "memory.compact_stall": 0.0,
    "network.tcp_out_segs": 9000.0,
    "network.tcp_retrans": 0.5, "memory.alloc_stall": 0.0,
}  # fmt: skip
BUSY = TRAINING | {
    "cpu.user": 0.5, "cpu.system": 0.9, "cpu.idle": 0.5, "cpu.context_switches": 25000.0, "cpu.interrupts": 20000.0,
    "memory.page_faults": 30000.0, "network.tcp_out_segs": 60000.0, "cpu.psi_some": 0.1,
}  # fmt: skip
NO_HUGE_PAGES = {"memory.thp_fault_alloc": 0.0, "memory.thp_fault_fallback": 180.0, "memory.page_faults": 70000.0}
HUGE, SMALL = 3 * GIB, 0.05 * GIB  # what the work holds in huge pages, with and without
GAUGES = ("memory.anon", "memory.anon_huge", "memory.free", "cpu.running", "cpu.blocked")
LAYOUT = Layout(tuple(map(Channel, (*TRAINING, *GAUGES))))
LACK = FeatureClause(name="c", feature="memory.anon_huge_share.last", entity=None, operator="lt", threshold=0.2)
COVERAGE = Fingerprint(
    name="no_huge_pages", id="1", title="", status="test", level="low", description="", group_by=EntityKind.HOST,
    clauses=(LACK,), condition="c", hold_s=6.0, keep_firing_s=6.0, subsystem=Subsystem.MEMORY, revision="1",
)  # fmt: skip


@dataclass
class Host:
    """A host that works; its clocks are this object's."""

    seed: int = 0
    now_ns: int = 5 * SECOND
    wall_s: float = WALL_S
    work: dict[str, float] = field(default_factory=lambda: dict(TRAINING))
    huge_pages: bool = True

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._totals = np.zeros(len(TRAINING))
        self._huge = HUGE
        self._second = 0

    def second(self) -> tuple[tuple[SampleBlock, ...], float]:
        """Return the samples of the next second, and the wall clock."""
        work = self.work if self.huge_pages else self.work | NO_HUGE_PAGES
        rates = np.array([work[name] for name in TRAINING])
        rates *= self._random.gamma(12.0, 1 / 12.0, len(rates)) * (1 + 0.2 * np.sin(self._second / 7))
        if self._second % MINUTE < 2:  # a checkpoint is written
            rates[list(TRAINING).index("storage.psi_some")] += 0.3
            rates[list(TRAINING).index("cpu.iowait")] += 0.4
        steps = np.arange(1, 11).reshape(-1, 1) / 10
        counters = self._totals + steps * rates
        self._totals = counters[-1]
        self._huge += ((HUGE if self.huge_pages else SMALL) - self._huge) * 0.3
        gauges = [4 * GIB, self._huge, 8 * GIB, 2.0 + self._random.integers(0, 3), float(self._random.integers(0, 2))]
        times = self.now_ns + np.arange(10) * (SECOND // 10)
        values = np.column_stack([counters, np.tile(gauges, (10, 1))])
        self.now_ns += SECOND
        self.wall_s += 1.0
        self._second += 1
        return (SampleBlock(tier=Tier.FAST, layout=LAYOUT, times_ns=times, values=values),), self.wall_s


def pipeline(*fingerprints: Fingerprint) -> Pipeline:
    numbers = itertools.count(1)
    return Pipeline(watch=1, fingerprints=fingerprints, generation=1, new_id=lambda: f"e{next(numbers):012x}")


def watch(into: Pipeline, host: Host, seconds: int) -> list[State]:
    """Let time pass; return what is said of each window."""
    said = []
    for _ in range(seconds):
        blocks, wall_s = host.second()
        said += [each.summary.verdict.state for each in into.push(blocks, wall_s=wall_s, facts=FactTable())]
    return said


def share(said: list[State], state: State = State.ANOMALOUS) -> float:
    return said.count(state) / len(said)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fault_of_two_hours_that_has_a_name_is_told_to_its_end_and_never_becomes_the_norm() -> None:
    host, one = Host(), pipeline(COVERAGE)
    healthy = watch(one, host, 15 * MINUTE)
    assert healthy[:60] == [State.UNKNOWN] * 60
    assert share(healthy[60:]) <= 0.005
    host.huge_pages = False
    said = watch(one, host, 2 * HOUR)
    assert State.ANOMALOUS in said[:15]
    assert set(said[15:]) == {State.ANOMALOUS}
    (episode,) = one.episodes.open
    assert (episode.state, episode.last_s - episode.started_s > 2 * HOUR - MINUTE) == ("firing", True)
    host.huge_pages = True
    after = watch(one, host, 10 * MINUTE)
    assert set(after[30:]) == {State.NORMAL}
    assert one.episodes.open == ()
    host.huge_pages = False
    assert State.ANOMALOUS in watch(one, host, 15), "what happened for two hours is as strange as before"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_change_of_two_hours_that_nobody_can_name_is_the_norm_after_half_an_hour_and_so_is_its_end() -> None:
    host, one = Host(seed=1), pipeline()
    watch(one, host, 10 * MINUTE)
    host.huge_pages = False
    said = watch(one, host, 2 * HOUR)
    patience = 30 * MINUTE
    assert set(said[15 : patience - 15]) == {State.ANOMALOUS}
    assert share(said[patience + 2 * MINUTE :]) <= 0.005
    host.huge_pages = True
    back = watch(one, host, 45 * MINUTE)
    assert State.ANOMALOUS in back[:30], "the way back is a change as well"
    assert share(back[patience + 2 * MINUTE :]) <= 0.005
    host.huge_pages = False
    assert State.ANOMALOUS in watch(one, host, 15), "the poison is out again"


@pytest.mark.slow
def test_a_watcher_that_was_killed_in_an_episode_goes_on_where_it_was(tmp_path: Path) -> None:
    host, one = Host(seed=2), pipeline(COVERAGE)
    watch(one, host, 15 * MINUTE)
    state = StateDir(tmp_path)
    Training(state, one.ensemble).save(host.wall_s)
    host.huge_pages = False
    assert watch(one, host, 2 * MINUTE)[-1] is State.ANOMALOUS
    Training(state, one.ensemble).save(host.wall_s)
    again = pipeline(COVERAGE)  # a new process reads the state directory
    Training(state, again.ensemble)
    host.now_ns += 20 * SECOND
    host.wall_s += 20
    said = watch(again, host, 5 * MINUTE)
    assert State.UNKNOWN not in said, "nothing is warmed up anew"
    assert set(said[15:]) == {State.ANOMALOUS}, "the time down has not made the fault the norm"
    assert [each.state for each in again.episodes.open] == ["firing"]
    host.huge_pages = True
    assert set(watch(again, host, 5 * MINUTE)[30:]) == {State.NORMAL}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_workload_that_changes_every_ten_minutes_alarms_neither_when_it_changes_nor_hides_a_fault() -> None:
    host, one = Host(seed=3), pipeline(COVERAGE)
    watch(one, host, 10 * MINUTE)
    said = []
    for turn in range(6):
        host.work = dict(BUSY if turn % 2 == 0 else TRAINING)
        said += watch(one, host, 10 * MINUTE)
    assert share(said) <= 0.005
    host.work, host.huge_pages = dict(BUSY), False
    assert State.ANOMALOUS in watch(one, host, 15)


@pytest.mark.slow
def test_clocks_that_jump_change_no_verdict() -> None:
    host, one = Host(seed=4), pipeline(COVERAGE)
    watch(one, host, 10 * MINUTE)
    said = []
    for jump_s in (HOUR, -3 * HOUR):  # the wall clock is set
        host.wall_s += jump_s
        said += watch(one, host, 2 * MINUTE)
    host.now_ns += HOUR * SECOND  # the host was suspended: nothing was counted meanwhile
    host.wall_s += HOUR
    said += watch(one, host, 2 * MINUTE)
    host.now_ns = 3 * SECOND  # the clock of the samples begins anew
    said += watch(one, host, 2 * MINUTE)
    assert set(said) == {State.NORMAL}
    assert one.episodes.open == ()
    host.huge_pages = False
    host.wall_s -= HOUR
    fault = watch(one, host, MINUTE)
    assert State.ANOMALOUS in fault[:15]
    assert [each.state for each in one.episodes.open] == ["firing"]
