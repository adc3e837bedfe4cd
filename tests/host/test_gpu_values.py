"""What the GPU reader gives: values, facts, absences, with a real child and the stand-in for the driver's library."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.host.gpu_health import GpuCondition
from unveil.records.entity import Entity, EntityKind
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gcc


def test_all_gpus_are_read_by_their_uuid(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(util=97, memory_util=41, memory_used=6e10, temperature=61, pcie_tx=1000, ecc_corrected=3)
    nvml.state.set_gpu(0, power_demand=650000)
    watch = watch_of()
    first, second = nvml.uuid(0), nvml.uuid(1)
    # what is asked for seldom comes with a later reading
    watch.until(lambda: len(watch.blocks) >= 2 and watch.last("gpu.ecc_corrected", first) == 3.0)
    assert watch.last("gpu.util", first) == 0.97
    assert watch.last("gpu.memory_util", first) == 0.41
    assert watch.last("gpu.memory_used", first) == 6e10  # without the reserve that version 1 of the record counts
    assert watch.last("gpu.power", first) == 650.0
    assert watch.last("gpu.power", second) == 90.0
    assert watch.last("gpu.power_limit", first) == watch.last("gpu.power_default", first) == 700.0
    assert watch.last("gpu.throttle_power", first) == 0.0
    assert watch.last("gpu.pcie_tx", first) == 1_000_000.0
    assert watch.last("gpu.ecc_corrected", first) == 3.0
    watch.until(lambda: watch.last("gpu.nvml_latency", first) < 0.5 and watch.last("gpu.value_age", first) < 0.5)
    assert watch.reader.health().condition is GpuCondition.READING
    assert len({id(block.layout) for block in watch.blocks}) == 1
    times = np.concatenate([block.times_ns for block in watch.blocks])
    assert (np.diff(times) > 0).all()


def test_what_a_gpu_does_not_support_is_absent_with_the_reason(nvml, watch_of) -> None:
    nvml.state.update({"gpu0.error.nvmlDeviceGetUtilizationRates": 3, "gpu0.error.nvmlDeviceGetTotalEccErrors": 3})
    nvml.state.set_gpu(memory_clock=4294967295)
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 2)
    for metric in ("gpu.util", "gpu.memory_util", "gpu.ecc_corrected", "gpu.memory_clock"):
        assert np.isnan(watch.last(metric, nvml.uuid())), metric
    assert watch.last("gpu.temperature", nvml.uuid()) == 40.0
    absences = watch.reader.absences()
    assert absences[Channel("gpu.util", (("gpu", nvml.uuid()),))] == "Not Supported"
    assert "blank" in absences[Channel("gpu.memory_clock", (("gpu", nvml.uuid()),))]


def test_facts_name_the_gpu_its_place_its_limits_and_its_processes(nvml, watch_of, tmp_path: Path) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(0, processes="4242:1073741824,17:1")
    device = tmp_path / "sys/bus/pci/devices/0000:19:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    other = tmp_path / "sys/bus/pci/devices/0000:29:00.0"
    other.mkdir(parents=True)
    (other / "numa_node").write_text("-1\n")
    watch = watch_of()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.READING)
    facts = {(fact.name, fact.entity.key): fact for fact in watch.reader.facts()}
    first, second = nvml.uuid(0), nvml.uuid(1)
    assert {entity for _, entity in facts} == {first, second}
    assert facts["gpu.name", first].value == "NVIDIA H100 80GB HBM3"
    assert facts["gpu.pci", first].value == "0000:19:00.0"
    assert facts["gpu.node", first].value == 1.0
    assert facts["gpu.node", second].value is None
    assert facts["gpu.node", second].reason == "the platform does not say"
    assert facts["gpu.power_min", first].value == 200.0
    assert facts["gpu.power_max", first].value == facts["gpu.power_default", first].value == 700.0
    assert facts["gpu.pids", first].value == ("17", "4242")
    assert facts["gpu.pids", second].value == ()
    assert facts["gpu.name", first].entity == Entity(EntityKind.GPU, first)
    assert watch.reader.facts() is watch.reader.facts()


def test_a_limit_that_another_process_sets_is_seen(nvml, watch_of) -> None:
    nvml.state.set_gpu(util=100, power_demand=650000)
    watch = watch_of()
    uuid = nvml.uuid()
    watch.until(lambda: watch.last("gpu.power", uuid) == 650.0)
    free_clock = watch.last("gpu.sm_clock", uuid)
    subprocess.run(
        [sys.executable, "-m", "unveil.host.sources.nvml_settings", "set", f"nvml:{uuid}/power_limit", "350"],
        env=nvml.env,
        check=True,
    )
    watch.until(lambda: watch.last("gpu.power", uuid) == 350.0)
    assert watch.last("gpu.throttle_power", uuid) == 1.0
    assert watch.last("gpu.sm_clock", uuid) < free_clock
    limit = next(fact for fact in watch.reader.facts() if fact.name == "gpu.power_limit")
    assert (limit.value, limit.setting) == (350.0, f"nvml:{uuid}/power_limit")
    assert watch.reader.settings() == {f"nvml:{uuid}/power_limit": "350\n"}


def test_the_energy_between_two_rows_is_the_power_times_the_time(nvml, watch_of) -> None:
    nvml.state.set_gpu(util=100, power_demand=400000)
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 6)
    column = watch.blocks[0].layout.column[Channel("gpu.energy", (("gpu", nvml.uuid()),))]

    def power() -> float:
        energy = np.concatenate([block.values[:, column] for block in watch.blocks])
        read = np.flatnonzero(np.isfinite(energy))[1:]
        times = np.concatenate([block.times_ns for block in watch.blocks]) / 1e9
        return (energy[read[-1]] - energy[read[0]]) / (times[read[-1]] - times[read[0]]) if len(read) > 3 else np.nan

    # A child that is held up between the clock and the driver tells a little more energy: the longer, the less it is.
    watch.until(lambda: power() == pytest.approx(400.0, rel=0.1), within_s=90.0)


def test_a_host_without_the_library_is_normal_and_costs_one_probe(watch_of) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    watch = watch_of(environ=environ)
    watch.until(lambda: watch.reader.health().condition is GpuCondition.ABSENT)
    watch.for_s(0.5)
    watch.reader.poll(time.monotonic_ns() + 3600 * 1_000_000_000)
    health = watch.reader.health()
    assert health.starts == 1
    assert "no NVML library" in health.reason
    assert watch.blocks == []
    assert watch.reader.facts() == ()


def test_the_library_is_found_by_the_linkers_own_path_too(nvml, watch_of) -> None:
    environ = {name: value for name, value in nvml.env.items() if name != "UNVEIL_NVML_LIBRARY"}
    environ["UNVEIL_NVML_STATE"] = str(nvml.state.path)
    watch = watch_of(environ=environ | {"LD_LIBRARY_PATH": str(nvml.library.parent)})
    watch.until(lambda: len(watch.blocks) >= 1)


def test_a_library_that_cannot_be_loaded_is_said(nvml, watch_of) -> None:
    watch = watch_of(environ=nvml.env | {"UNVEIL_NVML_LIBRARY": "/no/such/libnvidia-ml.so.1"})
    watch.until(lambda: watch.reader.health().condition is GpuCondition.FAILED)
    assert "/no/such/libnvidia-ml.so.1" in watch.reader.health().reason


def test_two_readers_do_not_share_anything(nvml, watch_of) -> None:
    one, two = watch_of(), watch_of()
    one.until(lambda: len(one.blocks) >= 1)
    two.until(lambda: len(two.blocks) >= 1)
    one.reader.release()
    before = len(two.blocks)
    two.until(lambda: len(two.blocks) > before + 2 and two.reader.health().condition is GpuCondition.READING)


def test_the_child_imports_neither_numpy_nor_the_watcher_pynvml() -> None:
    for module, banned in (("unveil.host.gpu_child", "numpy"), ("unveil.host.gpu", "pynvml")):
        code = f"import sys, {module}; sys.exit({banned!r} in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, module
