from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.doctor import absent_facts, blind, examine
from unveil.host.root import HostRoot
from unveil.host.source import SourceState
from unveil.records.codec import encode
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact, FactTable

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.host.doctor import Examination

names = st.sampled_from(["cpu.busy.rate", "gpu.util.mean", "network.irq.rate", "memory.thp_enabled"])


@pytest.fixture(scope="module")
def examination() -> Examination:
    return examine(HostRoot(), gpus=False, pause_s=0)


def test_this_machine_is_measured_and_says_at_what_cost(examination: Examination) -> None:
    measured = {source.name for source in examination.in_state(SourceState.OK)}
    assert {"stat", "vmstat", "meminfo"} <= measured
    assert 0 < examination.core_share < 1
    assert examination.facts_cpu_s > 0
    assert "cpu.user" in examination.metrics
    assert "memory.thp_enabled" in examination.facts
    assert json.dumps(encode(examination))


def test_what_is_not_measured_has_a_reason(examination: Examination) -> None:
    for source in examination.in_state(SourceState.ABSENT):
        assert source.reason
    assert all(fact.reason and fact.entities for fact in examination.absent)
    for capability in examination.capabilities:
        assert capability.detail
        assert capability.there or capability.hint or capability.there is None


def test_an_empty_tree_is_examined_too(tmp_path: Path) -> None:
    found = examine(HostRoot(tmp_path), pause_s=0)
    assert not found.in_state(SourceState.OK)
    assert found.kernel is None
    assert "cpu.count" in {fact.name for fact in found.absent}


def test_absences_are_told_once_for_all_entities_they_hold_for() -> None:
    nics = [Entity(EntityKind.NIC, name) for name in ("b", "a")]
    table = FactTable(
        (
            *(Fact(name="network.nic_node", entity=nic, value=None, reason="unknown") for nic in nics),
            Fact(name="cpu.cgroup_quota", value=None, reason="unlimited"),
            Fact(name="memory.total", value=1.0),
        )
    )
    (absent,) = absent_facts(table)
    assert (absent.name, absent.reason, absent.entities) == ("network.nic_node", "unknown", ("nic:a", "nic:b"))


def test_a_blind_fingerprint_names_the_sources_that_it_lacks() -> None:
    (found,) = blind({"a": ["gpu.util", "network.driver_pause_rx", "cpu.cycles", "memory.thp_enabled", "cpu.user"]}, ())
    assert found.sources == ("ethtool", "facts", "gpu", "perf", "stat")


def test_a_reading_beyond_the_budget_is_too_dear(examination: Examination) -> None:
    cheap = replace(examination.sources[0], read_us=60.0, parse_us=6.0)
    assert cheap.name not in replace(examination, sources=(cheap,)).too_dear
    slow = replace(cheap, read_us=6000.0)
    assert "6.0 ms" in replace(examination, sources=(slow,)).too_dear[slow.name]


def test_what_should_work_and_does_not_is_sick(examination: Examination) -> None:
    assert examination.sick == ()
    for state in (SourceState.FAILED, SourceState.STALE):
        source = replace(examination.sources[0], state=state)
        assert replace(examination, sources=(source,)).sick == (source,)


@given(st.dictionaries(st.text(max_size=5), st.sets(names), max_size=6), st.sets(names))
def test_blind_are_exactly_those_that_lack_something(required: dict[str, set[str]], available: set[str]) -> None:
    found = blind(required, available)
    assert [each.fingerprint for each in found] == sorted(name for name, needs in required.items() if needs - available)
    assert all(set(each.missing) == required[each.fingerprint] - available for each in found)
