"""The GPU reader with a real child, the genuine nvidia-ml-py and the stand-in for the driver's library."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.host import gpu_process
from unveil.host.driver_process import reap
from unveil.host.gpu import GpuReader
from unveil.host.gpu_health import GpuCondition
from unveil.host.root import HostRoot
from unveil.host.source import SourceState
from unveil.records.entity import Entity, EntityKind
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.gpu_process import GpuProcess
    from unveil.records.sample import SampleBlock

pytestmark = pytest.mark.gcc
INTERVAL_NS = 100_000_000
HOLD_NS = 500_000_000


def waited_for_a_cpu_ns() -> int:
    """Return how long this thread was ready to run, and other programs ran instead."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])


class Watch:
    """A watcher that does nothing but poll its GPU reader, and remembers what came and how long polls took."""

    def __init__(self, reader: GpuReader) -> None:
        self.reader = reader
        self.blocks: list[SampleBlock] = []
        self.slowest_s = 0.0

    def until(self, done: Callable[[], bool], *, within_s: float = 10.0) -> None:
        end = time.monotonic() + within_s
        while True:
            starts, others_ns = self.reader.health().starts, waited_for_a_cpu_ns()
            now_ns = time.monotonic_ns()
            block = self.reader.poll(now_ns)
            spent_ns = time.monotonic_ns() - now_ns
            if self.reader.health().starts == starts:  # a start of a process costs what it costs
                self.slowest_s = max(self.slowest_s, (spent_ns - (waited_for_a_cpu_ns() - others_ns)) / 1e9)
            if block is not None:
                self.blocks.append(block)
            if done():
                return
            assert time.monotonic() < end, self.reader.health()
            time.sleep(0.01)

    def for_s(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, within_s=seconds + 5)

    def last(self, metric: str, uuid: str) -> float | None:
        """Return the newest value of a channel; None when the newest block has no such channel."""
        if not self.blocks:
            return None
        column = self.blocks[-1].layout.column.get(Channel(metric, (("gpu", uuid),)))
        return None if column is None else float(self.blocks[-1].values[-1, column])


@pytest.fixture
def watch_of(nvml, tmp_path: Path) -> Iterator[Callable[..., Watch]]:
    readers = []

    def make(**keywords: object) -> Watch:
        options = {"interval_ns": INTERVAL_NS, "hold_ns": HOLD_NS, "environ": nvml.env} | keywords
        reader = GpuReader(HostRoot(tmp_path), **options)
        readers.append(reader)
        return Watch(reader)

    yield make
    for key in [line.partition("=")[0] for line in nvml.state.path.read_text().splitlines() if ".delay." in line]:
        nvml.state.update({key: None})
    ended = [reader.close(10.0) for reader in readers]
    assert all(ended)


def test_all_gpus_are_read_by_their_uuid(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(util=97, memory_util=41, memory_used=6e10, temperature=61, pcie_tx=1000, ecc_corrected=3)
    nvml.state.set_gpu(0, power_demand=650000)
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 2)
    first, second = nvml.uuid(0), nvml.uuid(1)
    assert watch.last("gpu.util", first) == 0.97
    assert watch.last("gpu.memory_util", first) == 0.41
    assert watch.last("gpu.memory_used", first) == 6e10  # without the reserve that version 1 of the record counts
    assert watch.last("gpu.power", first) == 650.0
    assert watch.last("gpu.power", second) == 90.0
    assert watch.last("gpu.power_limit", first) == watch.last("gpu.power_default", first) == 700.0
    assert watch.last("gpu.throttle_power", first) == 0.0
    assert watch.last("gpu.pcie_tx", first) == 1_000_000.0
    assert watch.last("gpu.ecc_corrected", first) == 3.0
    assert watch.last("gpu.nvml_latency", first) < 0.5
    assert watch.last("gpu.value_age", first) < 0.5
    assert watch.reader.health().condition is GpuCondition.READING
    assert len({id(block.layout) for block in watch.blocks}) == 1
    times = np.concatenate([block.times_ns for block in watch.blocks])
    assert (np.diff(times) > 0).all()


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
    energy = np.concatenate([block.values[:, column] for block in watch.blocks])
    times = np.concatenate([block.times_ns for block in watch.blocks]) / 1e9
    assert (energy[-1] - energy[1]) / (times[-1] - times[1]) == pytest.approx(400.0, rel=0.1)


def test_a_driver_that_hangs_makes_values_old_then_absent_and_never_holds_the_watcher(nvml, watch_of) -> None:
    uuid = nvml.uuid()
    nvml.state.set_gpu(util=50)
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.util", uuid) == 0.5)
    before = len(watch.blocks)
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerUsage": 60})
    watch.until(lambda: (watch.last("gpu.nvml_latency", uuid) or 0.0) > 1.0)
    assert watch.slowest_s < 0.005
    rows = [
        {metric: block.values[row, block.layout.column[Channel(metric, (("gpu", uuid),))]] for metric in METRICS_SEEN}
        for block in watch.blocks[before + 1 :]
        for row in range(len(block.times_ns))
    ]
    real = max((number for number, row in enumerate(rows) if row["gpu.value_age"] <= 0.15), default=-1)
    late = rows[real + 1 :]
    held = [row for row in late if row["gpu.value_age"] <= HOLD_NS / 1e9]
    gone = [row for row in late if row["gpu.value_age"] > HOLD_NS / 1e9]
    assert held
    assert gone
    assert all(row["gpu.util"] == 0.5 for row in held)
    assert all(np.isnan(row["gpu.util"]) for row in gone)
    assert all(np.isnan(row["gpu.energy"]) for row in late), "a counter that stands still would read as a rate of zero"
    ages = [row["gpu.value_age"] for row in late]
    assert ages == sorted(ages)
    assert late[-1]["gpu.nvml_latency"] > 0.8
    health = watch.reader.health()
    assert health.condition is GpuCondition.STALE
    assert uuid in health.reason
    assert health.starts == 2, "a hanging driver is no reason to start another caller"
    limit = next(fact for fact in watch.reader.facts() if fact.name == "gpu.power_limit")
    assert limit.value is None
    assert uuid in limit.reason
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerUsage": None})
    watch.until(lambda: watch.last("gpu.util", uuid) == 0.5 and watch.reader.health().condition is GpuCondition.READING)
    times = np.concatenate([block.times_ns for block in watch.blocks])
    assert (np.diff(times) > 0).all()


def child_of(watch: Watch, uuid: str) -> GpuProcess:
    return watch.reader._children[uuid]


METRICS_SEEN = ("gpu.value_age", "gpu.nvml_latency", "gpu.util", "gpu.energy")


def test_a_gpu_that_hangs_hides_no_other(nvml, watch_of) -> None:
    nvml.state.set(gpus=3)
    nvml.state.set_gpu(util=50)
    watch = watch_of()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.READING)
    nvml.state.update({"gpu1.delay.*": 60})
    watch.for_s(1.2)
    nvml.state.set_gpu(0, util=51)
    nvml.state.set_gpu(2, util=52)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(0)) == 0.51 and watch.last("gpu.util", nvml.uuid(2)) == 0.52)
    assert np.isnan(watch.last("gpu.util", nvml.uuid(1)))
    assert watch.last("gpu.value_age", nvml.uuid(1)) > 0.9
    assert watch.last("gpu.value_age", nvml.uuid(0)) < 0.3
    health = watch.reader.health()
    assert health.condition is GpuCondition.STALE
    assert health.reason == f"the driver does not answer for {nvml.uuid(1)}"
    assert health.starts == 4, "a list and three readers, and no storm of new ones"
    told = {fact.entity.key: fact for fact in watch.reader.facts() if fact.name == "gpu.power_limit"}
    assert told[nvml.uuid(0)].value == 700.0
    assert told[nvml.uuid(1)].value is None
    times = np.concatenate([block.times_ns for block in watch.blocks])
    assert (np.diff(times) > 0).all()
    assert len(times) < 10 * (times[-1] - times[0]) / 1e9 + 5, "one row an interval, not one a GPU"


@pytest.mark.slow
def test_a_gpu_that_hangs_from_the_start_is_told_and_hides_no_other(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerUsage": 60})
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.temperature", nvml.uuid(1)) == 40.0)
    watch.until(lambda: watch.reader.health().condition is GpuCondition.STALE)
    assert nvml.uuid(0) in watch.reader.health().reason
    watch.for_s(0.3)
    assert watch.last("gpu.nvml_latency", nvml.uuid(0)) > 0.3


@pytest.mark.slow
def test_several_gpus_are_released_and_found_again_with_one_more(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    watch = watch_of()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.READING)
    watch.reader.release()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.RELEASED)
    nvml.state.set(gpus=3)
    watch.reader.resume()
    watch.until(lambda: watch.last("gpu.temperature", nvml.uuid(2)) == 40.0)
    assert len(watch.reader.health().gpus) == 3


def test_a_child_in_a_driver_call_is_left_and_ends_by_itself(nvml, watch_of, caplog) -> None:
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 1)
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": 60})
    watch.for_s(0.4)
    pid = child_of(watch, nvml.uuid()).pid
    assert watch.reader.close(0.2) is False
    assert f"PID {pid}" in caplog.text
    assert "left" in caplog.text
    os.kill(pid, 0)  # it lives
    assert pid in reap()
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": None})
    end = time.monotonic() + 5
    while pid in reap():
        assert time.monotonic() < end
        time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_lost_gpu_is_gone_and_the_others_continue(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(util=80)
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(0)) == 0.8)
    nvml.state.set_gpu(0, lost=1)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(0)) is None)
    nvml.state.set_gpu(1, util=81)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(1)) == 0.81)
    health = watch.reader.health()
    assert health.condition is GpuCondition.READING
    assert health.lost == {nvml.uuid(0): "GPU is lost"}
    assert health.as_source().state is SourceState.FAILED, "what should work does not"
    assert "GPU is lost" in health.as_source().reason
    assert health.gpus == (nvml.uuid(1),)
    assert {fact.entity.key for fact in watch.reader.facts()} == {nvml.uuid(1)}


@pytest.mark.slow
def test_a_lost_gpu_that_was_reset_is_read_again_after_resume(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    watch = watch_of()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.READING)
    nvml.state.set_gpu(0, lost=1)
    watch.until(lambda: nvml.uuid(0) in watch.reader.health().lost)
    nvml.state.set_gpu(0, lost=0, util=5)
    watch.for_s(0.5)
    assert watch.reader.health().gpus == (nvml.uuid(1),), "for good, until a person says otherwise"
    watch.reader.resume()
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(0)) == 0.05)
    assert watch.reader.health().lost == {}


def test_a_gpu_that_was_lost_from_the_start_does_not_hide_the_others(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(0, lost=1)
    nvml.state.set_gpu(1, util=70)
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(1)) == 0.7)


def test_a_reloaded_driver_is_read_again_by_a_fresh_process(nvml, watch_of) -> None:
    nvml.state.set_gpu(util=60)
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.util", nvml.uuid()) == 0.6)
    pid, layout = child_of(watch, nvml.uuid()).pid, watch.blocks[-1].layout
    nvml.state.set(**{"driver.generation": 2})
    nvml.state.set_gpu(util=61)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid()) == 0.61)
    assert child_of(watch, nvml.uuid()).pid != pid
    assert child_of(watch, nvml.uuid()).starts == 2
    assert watch.blocks[-1].layout is layout, "the same GPUs are the same channels"


def test_a_driver_that_is_not_loaded_is_asked_again_after_longer_and_longer_pauses(nvml, watch_of, monkeypatch) -> None:
    monkeypatch.setattr(gpu_process, "_FIRST_PAUSE_NS", 100_000_000)
    nvml.state.set(**{"driver.loaded": 0})
    watch = watch_of()
    watch.for_s(1.6)
    health = watch.reader.health()
    assert health.condition is GpuCondition.FAILED
    assert "Driver Not Loaded" in health.reason
    assert 2 <= health.starts <= 5, "0, 0.1, 0.3, 0.7, 1.5 s at the most"
    assert watch.blocks == []
    nvml.state.set(**{"driver.loaded": 1})
    watch.until(lambda: len(watch.blocks) > 0)


def test_gpus_that_change_their_index_keep_their_channels(nvml, watch_of) -> None:
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(0, util=10)
    nvml.state.set_gpu(1, util=20)
    watch = watch_of()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.READING)
    nvml.state.set(**{"order": "1,0", "driver.generation": 2})
    nvml.state.set_gpu(0, util=11)
    nvml.state.set_gpu(1, util=21)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(1)) == 0.21)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid(0)) == 0.11)
    assert [child_of(watch, nvml.uuid(number)).starts for number in (0, 1)] == [2, 2]


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


def test_handles_are_released_on_request_and_taken_again(nvml, watch_of) -> None:
    nvml.state.set_gpu(util=30)
    watch = watch_of()
    watch.until(lambda: watch.last("gpu.util", nvml.uuid()) == 0.3)
    pid = child_of(watch, nvml.uuid()).pid
    watch.reader.release()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.RELEASED)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    watch.for_s(0.9)
    assert watch.last("gpu.value_age", nvml.uuid()) > 0.5
    assert np.isnan(watch.last("gpu.util", nvml.uuid()))
    watch.reader.resume()
    nvml.state.set_gpu(util=31)
    watch.until(lambda: watch.last("gpu.util", nvml.uuid()) == 0.31)


def test_resuming_while_the_old_child_is_in_the_driver_starts_no_second_one(nvml, watch_of) -> None:
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 1)
    pid = child_of(watch, nvml.uuid()).pid
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": 60})
    watch.for_s(0.3)
    watch.reader.release()
    watch.for_s(0.2)
    assert watch.reader.health().condition is GpuCondition.RELEASING
    watch.reader.resume()
    watch.for_s(0.3)
    assert child_of(watch, nvml.uuid()).pid == pid
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": None})
    watch.until(
        lambda: watch.reader.health().condition is GpuCondition.READING and child_of(watch, nvml.uuid()).pid != pid
    )


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


def test_a_child_that_dies_is_started_again_with_what_killed_it_told(nvml, watch_of) -> None:
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 1)
    os.kill(child_of(watch, nvml.uuid()).pid, 11)
    watch.until(lambda: watch.reader.health().condition is GpuCondition.FAILED)
    assert "SIGSEGV" in watch.reader.health().reason
    watch.until(lambda: child_of(watch, nvml.uuid()).starts == 2)


def test_the_child_imports_neither_numpy_nor_the_watcher_pynvml() -> None:
    for module, banned in (("unveil.host.gpu_child", "numpy"), ("unveil.host.gpu", "pynvml")):
        code = f"import sys, {module}; sys.exit({banned!r} in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, module


def test_two_readers_do_not_share_anything(nvml, watch_of) -> None:
    one, two = watch_of(), watch_of()
    one.until(lambda: len(one.blocks) >= 1)
    two.until(lambda: len(two.blocks) >= 1)
    one.reader.release()
    two.for_s(0.3)
    assert two.reader.health().condition is GpuCondition.READING
