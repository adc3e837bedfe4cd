"""GPUs and drivers that hang, are lost, released or loaded again, under a GPU reader with real children.

The genuine nvidia-ml-py asks the stand-in for the driver's library. What is read in good times: test_gpu_values.py.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.host import gpu_process
from unveil.host.driver_process import reap
from unveil.host.gpu_health import GpuCondition
from unveil.host.source import SourceState
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from unveil.host.gpu_process import GpuProcess

pytestmark = pytest.mark.gcc
HOLD_NS = 3_000_000_000  # longer than a busy machine lets a watcher wait


def test_a_driver_that_hangs_makes_values_old_then_absent_and_never_holds_the_watcher(nvml, watch_of) -> None:
    uuid = nvml.uuid()
    nvml.state.set_gpu(util=50)
    watch = watch_of(hold_ns=HOLD_NS)
    watch.until(lambda: watch.last("gpu.util", uuid) == 0.5)
    before = len(watch.blocks)
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerUsage": 60})
    watch.until(lambda: (watch.last("gpu.value_age", uuid) or 0.0) > HOLD_NS / 1e9 + 0.5)
    assert watch.slowest_s < 20, "of the driver's 60 s: what a busy machine takes, and no wait"
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


def child_of(watch: Any, uuid: str) -> GpuProcess:
    return watch.reader._children[uuid]


def in_driver(watch: Any, uuid: str) -> bool:
    return (watch.last("gpu.nvml_latency", uuid) or 0.0) > 1.0


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
    watch.until(lambda: watch.reader.health().reason == f"the driver does not answer for {nvml.uuid(1)}")
    health = watch.reader.health()
    assert health.condition is GpuCondition.STALE
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
    watch.until(lambda: in_driver(watch, nvml.uuid()))
    pid = child_of(watch, nvml.uuid()).pid
    assert watch.reader.close(0.2) is False
    assert f"PID {pid}" in caplog.text
    assert "left" in caplog.text
    os.kill(pid, 0)  # it lives
    assert pid in reap()
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": None})
    end = time.monotonic() + 60
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
    watch, began = watch_of(), time.monotonic()
    watch.until(lambda: watch.reader.health().condition is GpuCondition.FAILED)
    watch.for_s(1.2)
    watch.until(lambda: watch.reader.health().condition is GpuCondition.FAILED)
    health = watch.reader.health()
    assert "Driver Not Loaded" in health.reason
    passed_s = time.monotonic() - began
    most = sum(0.1 * (2**number - 1) <= passed_s for number in range(12))
    assert health.starts <= most, "0, 0.1, 0.3, 0.7, 1.5 s after the first at the earliest"
    watch.until(lambda: watch.reader.health().starts >= 2)
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
    watch.until(lambda: in_driver(watch, nvml.uuid()))
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


def test_a_child_that_dies_is_started_again_with_what_killed_it_told(nvml, watch_of) -> None:
    watch = watch_of()
    watch.until(lambda: len(watch.blocks) >= 1)
    os.kill(child_of(watch, nvml.uuid()).pid, 11)
    watch.until(lambda: watch.reader.health().condition is GpuCondition.FAILED)
    assert "SIGSEGV" in watch.reader.health().reason
    watch.until(lambda: child_of(watch, nvml.uuid()).starts == 2)
