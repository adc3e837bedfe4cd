"""Counters of the kernel and the CPUs: the real ones of this machine, and groups that had to share a unit."""

from __future__ import annotations

import errno
import os
import struct
import time

import pytest

from unveil.errors import SourceAbsentError
from unveil.host.sources import perf_events
from unveil.host.sources.perf_events import GROUPS, METRICS, Group, PerfEvents
from unveil.records.metric import Channel


def told(group: Group, *numbers: int) -> dict[str, float] | None:
    """Let a group read this from a pipe."""
    reader, writer = os.pipe()
    os.write(writer, struct.pack(f"{len(numbers)}Q", *numbers))
    os.close(writer)
    group.descriptors = [reader]
    try:
        return group.read()
    finally:
        os.close(reader)


def test_every_event_is_in_the_catalogue() -> None:
    assert {metric for events in GROUPS.values() for metric in events} == {metric.name for metric in METRICS}
    assert all(len(events) <= 4 for events in GROUPS.values())


def test_counts_are_scaled_by_the_time_that_they_were_counted() -> None:
    group = Group(("a", "b"))
    assert told(group, 2, 1000, 1000, 50, 7) == {"a": 50.0, "b": 7.0}
    assert told(group, 2, 3000, 1500, 60, 7) == {"a": 40.0, "b": 0.0}, "counted a quarter of the time"
    assert told(group, 2, 4000, 1500, 60, 7) is None, "others had the unit all the time"
    assert told(group, 2, 4000, 1500, 60, 7) == {"a": 0.0, "b": 0.0}, "the CPU is offline"
    assert told(group, 2, 5000, 2500, 10, 9) == {"a": 0.0, "b": 2.0}, "a count that goes backwards is none"
    assert told(group, 1, 6000, 2600, 10) is None, "a group in error gives nothing"
    assert told(group) is None


@pytest.fixture
def perf() -> PerfEvents:
    made = PerfEvents()
    try:
        made.open()
    except SourceAbsentError as error:
        pytest.skip(error.what)
    return made


def test_software_events_are_counted_on_every_cpu_of_this_machine(perf: PerfEvents) -> None:
    first = perf.read()
    cpus = sorted(os.sched_getaffinity(0))
    for _ in range(20):  # make this task move
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, cpus)
    time.sleep(0.01)
    second = perf.read()
    moved = Channel("cpu.migrations")
    assert second[moved] - first[moved] >= (20 if len(cpus) > 1 else 0)
    perf.close()
    assert not perf._groups


def test_totals_go_on_when_the_cpus_change(perf: PerfEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    before = perf.read()[Channel("cpu.migrations")]
    first = min(os.sched_getaffinity(0))
    monkeypatch.setattr(perf_events, "_online", lambda: str(first))
    after = perf.read()
    assert after[Channel("cpu.migrations")] >= before
    assert {len(group.descriptors) for group in perf._groups} == {len(group.metrics) for group in perf._groups}
    perf.close()


def test_a_user_who_may_not_count_is_told_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events, "_open_event", lambda *_: -errno.EACCES)
    with pytest.raises(SourceAbsentError, match=r"CAP_PERFMON .*perf_event_paranoid is"):
        PerfEvents().open()


def test_what_the_cpu_does_not_count_is_absent_and_the_rest_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    real = perf_events._open_event

    def lacking(number: int, kind: int, configuration: int, cpu: int, leader: int) -> int:
        return -errno.ENOENT if (kind, configuration) == (1, 7) else real(number, kind, configuration, cpu, leader)

    monkeypatch.setattr(perf_events, "_open_event", lacking)
    made = PerfEvents()
    try:
        made.open()
    except SourceAbsentError as error:
        pytest.skip(error.what)
    assert Channel("cpu.migrations") in made.read()
    assert Channel("cpu.alignment_faults") not in made.read()
    assert "cpu.alignment_faults" in made.reason
    made.close()


def test_a_machine_of_which_nothing_is_known_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events.platform, "machine", lambda: "vax")
    with pytest.raises(SourceAbsentError, match="vax"):
        PerfEvents().open()


def test_too_many_cpus_for_the_files_that_may_be_open_leave_groups_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events, "_raised_limit", lambda: 512 + 2)
    with pytest.raises(SourceAbsentError, match="descriptors would be needed"):
        PerfEvents().open()
