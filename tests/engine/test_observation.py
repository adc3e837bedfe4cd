"""Samples and facts of a host, read without ever waiting: of this machine, and of a scratch tree of plain files."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from unveil.engine.observation import FACTS_EVERY_NS, Observation


def watch_for(observation: Observation, ticks: int) -> list[Any]:
    begin = time.monotonic_ns()
    blocks: list[Any] = []
    for tick in range(1, ticks + 1):
        time.sleep(max(0, begin + tick * 100_000_000 - time.monotonic_ns()) / 1e9)
        observation.tick(time.monotonic_ns())
        if tick % 10 == 0:
            blocks += observation.collect(time.monotonic_ns())
    return blocks


def test_this_machine_is_observed() -> None:
    with closing(Observation(Path("/"), gpu=False)) as observation:
        blocks = watch_for(observation, 20)
        metrics = {channel.metric for block in blocks for channel in block.layout.channels}
        assert {"cpu.user", "memory.free", "cpu.context_switches"} <= metrics
        assert observation.facts.value("cpu.online_count") == os.cpu_count()
        assert observation.gpu is None
        assert observation.gpu_settings() == {}
        health = {each.name: each for each in observation.health()}
        assert health
    assert len(health) == len(observation.health()), "closed, it still says how its sources were"


def test_facts_are_the_same_object_until_something_changed(scratch: Path) -> None:
    with closing(Observation(scratch, gpu=False)) as observation:
        first = observation.refresh_facts(0)
        assert first.value("memory.thp_enabled") == "madvise"
        assert first.value("memory.dirty_ratio") == 20
        assert not observation.facts_due(FACTS_EVERY_NS - 1)
        assert observation.facts_due(FACTS_EVERY_NS)
        observation.facts_changed()
        assert observation.facts_due(1), "a setting was written: not ten seconds later"
        assert observation.refresh_facts(7) is first
        assert not observation.facts_due(FACTS_EVERY_NS + 6)
        (scratch / "sys/kernel/mm/transparent_hugepage/enabled").write_text("[always] madvise never\n")
        second = observation.refresh_facts(8)
        assert second is not first
        assert observation.facts is second
        assert second.value("memory.thp_enabled") == "always"


def test_a_tree_with_almost_nothing_in_it_is_a_host_of_which_little_is_known(tmp_path: Path) -> None:
    with closing(Observation(tmp_path, gpu=False)) as observation:
        assert all(block.values.size == 0 or block.layout.channels for block in watch_for(observation, 10))
        assert observation.facts.value("memory.total") is None


@pytest.mark.slow
def test_it_leaves_no_file_open() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    observation = Observation(Path("/"), gpu=False)
    watch_for(observation, 10)
    assert len(set(Path("/proc/self/fd").iterdir())) > len(before)
    observation.close()
    assert len(set(Path("/proc/self/fd").iterdir())) <= len(before)


@pytest.mark.gcc
@pytest.mark.slow
def test_gpus_come_from_their_child_with_settings_of_their_newest_sample(
    nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", str(nvml.library))
    nvml.state.set_gpu(0, power_default=700_000, power_limit=350_000)
    with closing(Observation(Path("/"), gpu=True)) as observation:
        deadline = time.monotonic() + 20
        seen: set[str] = set()
        while "gpu.util" not in seen and time.monotonic() < deadline:
            blocks = watch_for(observation, 10)
            seen |= {channel.metric for block in blocks for channel in block.layout.channels}
        assert "gpu.util" in seen
        assert observation.reads_gpus
        assert observation.gpu_settings() == {f"nvml:{nvml.uuid()}/power_limit": "350\n"}
        facts = observation.refresh_facts(time.monotonic_ns())
        assert [fact.value for fact in facts.of("gpu.power_limit")] == [350.0]
        assert any("gpu" in each.name for each in observation.health())


@pytest.mark.gcc
def test_a_gpu_that_has_just_come_is_known_before_its_episode_can_be_planned_for(
    scratch: Path, nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", nvml.env["UNVEIL_NVML_LIBRARY"])
    with closing(Observation(scratch, gpu=True)) as observation:
        end = time.monotonic() + 20
        blocks: tuple[Any, ...] = ()
        observation.refresh_facts(time.monotonic_ns())
        assert not observation.facts_due(time.monotonic_ns())
        while not any(channel.metric == "gpu.util" for block in blocks for channel in block.layout.channels):
            assert time.monotonic() < end
            time.sleep(0.05)
            blocks = observation.collect(time.monotonic_ns())
        now_ns = time.monotonic_ns()
        assert observation.facts_due(now_ns), "not ten seconds later"
        observation.refresh_facts(now_ns)
        assert not observation.facts_due(now_ns)
        (default,) = observation.facts.of("gpu.power_default")
        assert (default.value, default.entity.key) == (700.0, nvml.uuid(0))
