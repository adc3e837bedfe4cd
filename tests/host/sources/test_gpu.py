"""The NVML source in this process: the genuine nvidia-ml-py, and the stand-in for the driver's library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import SourceFailedError
from unveil.host.sources.gpu import METRICS, GpuSource, open_nvml
from unveil.host.sources.gpu_activity import watching_queries
from unveil.host.sources.gpu_queries import QUERIES, pci_address
from unveil.host.sources.gpu_state_queries import STATE_QUERIES
from unveil.records.metric import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def source(nvml, monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuSource]:
    monkeypatch.setenv("UNVEIL_NVML_STATE", str(nvml.state.path))  # one library a process, one state a test
    opened = GpuSource(open_nvml(nvml.env))
    opened.discover()
    opened.read(nvml.uuid(), slow=False)  # activity is measured between two readings
    yield opened
    opened.close()


def test_the_catalogue_and_the_queries_name_the_same_metrics() -> None:
    asked = [name for query in (*QUERIES, *STATE_QUERIES, *watching_queries()) for name in query.metrics]
    assert len(asked) == len(set(asked))
    assert {metric.name for metric in METRICS} == {*asked, "gpu.nvml_latency", "gpu.value_age"}
    counted = {metric.name for metric in METRICS if metric.kind is Kind.COUNTER}
    assert {"gpu.energy", "gpu.ecc_corrected", "gpu.violation_power", "gpu.xid_errors"} <= counted
    assert "gpu.xid_last" not in counted
    assert all(metric.labels == ("gpu",) for metric in METRICS)


@pytest.mark.gcc
@pytest.mark.parametrize(
    ("bits", "named"),
    [
        (0x0, set()),
        (0x1, set()),  # idle
        (0x4, {"power"}),
        (0x20, {"thermal"}),
        (0x40 | 0x8, {"thermal", "hw_slowdown"}),
        (0x80, {"hw_slowdown"}),
        (0x2, {"other"}),
        (0x400, {"other"}),
        (0x4 | 0x10, {"power", "other"}),
    ],
)
def test_reasons_for_low_clocks_are_told_apart(nvml, source: GpuSource, bits: int, named: set[str]) -> None:
    nvml.state.set_gpu(util=50, reasons=bits)
    values = source.read(nvml.uuid(), slow=False).values
    assert {name for name in ("power", "thermal", "hw_slowdown", "other") if values[f"gpu.throttle_{name}"]} == named


@pytest.mark.gcc
def test_old_drivers_are_asked_by_the_old_names(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(memory_used=1e9, reasons=4)
    nvml.state.update(
        {"gpu.error.nvmlDeviceGetMemoryInfo_v2": 13, "gpu.error.nvmlDeviceGetCurrentClocksEventReasons": 13}
    )
    values = source.read(nvml.uuid(), slow=False).values
    assert values["gpu.memory_used"] == 1e9 + 308 * 1024 * 1024  # all that such a driver can tell
    assert values["gpu.throttle_power"] == 1.0


@pytest.mark.gcc
def test_a_value_that_makes_no_sense_is_absent(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(util=4294967295, temperature=5000, memory_util=3)
    reading = source.read(nvml.uuid(), slow=True)
    assert "gpu.util" not in reading.values
    assert "gpu.temperature" not in reading.values
    assert reading.values["gpu.memory_util"] == 0.03
    assert set(reading.reasons) == {"gpu.util", "gpu.temperature"}


@pytest.mark.gcc
def test_what_is_not_supported_is_not_asked_again_every_second(nvml, source: GpuSource) -> None:
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerUsage": 3})
    assert source.read(nvml.uuid(), slow=False).reasons == {"gpu.power": "Not Supported"}
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerUsage": None})
    assert source.read(nvml.uuid(), slow=False).reasons == {"gpu.power": "Not Supported"}
    assert "gpu.power" in source.read(nvml.uuid(), slow=True).values


@pytest.mark.gcc
def test_a_passing_error_costs_one_value_once(nvml, source: GpuSource) -> None:
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerUsage": 999})
    reading = source.read(nvml.uuid(), slow=False)
    assert "gpu.power" not in reading.values
    assert "gpu.util" in reading.values
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerUsage": None})
    assert "gpu.power" in source.read(nvml.uuid(), slow=False).values


@pytest.mark.gcc
def test_slow_values_are_repeated_until_they_are_read_again(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(pcie_rx=7)
    assert source.read(nvml.uuid(), slow=True).values["gpu.pcie_rx"] == 7000.0
    nvml.state.set_gpu(pcie_rx=8)
    assert source.read(nvml.uuid(), slow=False).values["gpu.pcie_rx"] == 7000.0
    assert source.read(nvml.uuid(), slow=True).values["gpu.pcie_rx"] == 8000.0


@pytest.mark.gcc
def test_a_link_that_the_driver_does_not_know_is_none(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(pcie_width=0, pcie_gen=0)
    reading = source.read(nvml.uuid(), slow=True)
    assert not {"gpu.pcie_width", "gpu.pcie_gen"} & reading.values.keys()
    assert reading.reasons["gpu.pcie_width"] == "the driver answered a blank"
    nvml.state.set_gpu(pcie_width=63, pcie_gen=4)
    values = source.read(nvml.uuid(), slow=True).values
    assert (values.get("gpu.pcie_width"), values["gpu.pcie_gen"]) == (None, 4)


@pytest.mark.gcc
def test_measuring_pcie_is_no_latency_of_the_driver(nvml, source: GpuSource) -> None:
    nvml.state.update({"gpu.delay.nvmlDeviceGetPcieThroughput": 0.1})
    assert any(source.read(nvml.uuid(), slow=True).latency_s < 0.1 for _ in range(20)), "it takes twice as long"
    nvml.state.update({"gpu.delay.nvmlDeviceGetPcieThroughput": None})
    nvml.state.update({"gpu.delay.nvmlDeviceGetTemperature": 0.05})
    assert source.read(nvml.uuid(), slow=False).latency_s >= 0.05


@pytest.mark.gcc
def test_a_lost_gpu_is_told_and_forgotten(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(lost=1)
    assert source.read(nvml.uuid(), slow=False).lost == "GPU is lost"
    with pytest.raises(KeyError):
        source.read(nvml.uuid(), slow=False)


@pytest.mark.gcc
@pytest.mark.parametrize("change", [{"driver.loaded": 0}, {"driver.generation": 77}])
def test_a_driver_that_is_gone_ends_the_reading(nvml, source: GpuSource, change: dict[str, object]) -> None:
    nvml.state.update(change)
    with pytest.raises(SourceFailedError, match="driver is gone"):
        source.read(nvml.uuid(), slow=False)
    with pytest.raises(SourceFailedError, match="driver is gone"):
        source.identify(nvml.uuid())


@pytest.mark.gcc
def test_a_driver_without_gpus_is_a_failure_with_the_reason(nvml, source: GpuSource) -> None:
    nvml.state.set(gpus=0)
    with pytest.raises(SourceFailedError, match="counts none"):
        GpuSource(open_nvml(nvml.env)).discover()


@pytest.mark.gcc
def test_identity_says_what_is_absent_and_why(nvml, source: GpuSource) -> None:
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerManagementLimitConstraints": 3})
    nvml.state.set_gpu(pci="nonsense", processes="9:1,9:2,12:0")
    identity = source.identify(nvml.uuid())
    assert identity.facts["gpu.pids"] == ("9", "12")
    assert set(identity.reasons) == {"gpu.power_min", "gpu.power_max", "gpu.pci"}
    assert not set(identity.reasons) & set(identity.facts)


@pytest.mark.gcc
def test_identity_tells_the_modes_the_clocks_and_what_waits_for_a_repair(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(persistence_mode=0, compute_mode=3, mig=1, applications_sm=1410, repair_pending=1)
    facts = source.identify(nvml.uuid()).facts
    assert (facts["gpu.persistence"], facts["gpu.mig"]) == (False, True)
    assert facts["gpu.compute_mode"] == "exclusive_process"
    assert (facts["gpu.applications_clock"], facts["gpu.applications_clock_share"]) == (1410, 1410 / 1980)
    assert facts["gpu.applications_clocks_default"] == "2619,1980"
    assert (facts["gpu.sm_clock_max"], facts["gpu.bar1_total"]) == (1980, 128 << 30)
    assert (facts["gpu.repair_pending"], facts["gpu.repair_failed"]) == (True, False)
    nvml.state.set_gpu(compute_mode=9)
    nvml.state.update({"gpu.error.nvmlDeviceGetRemappedRows": 3, "gpu.error.nvmlDeviceGetRetiredPagesPendingStatus": 3})
    identity = source.identify(nvml.uuid())
    assert identity.facts["gpu.compute_mode"] == "mode 9"
    assert {"gpu.repair_pending", "gpu.repair_failed"} <= set(identity.reasons)


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_a_pci_address_is_written_as_sysfs_writes_it(domain: int, bus: int, device: int, function: int) -> None:
    written = pci_address(f"{domain:08X}:{bus:02X}:{device:02X}.{function}")
    assert written == f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert pci_address(written) == written


def test_the_pci_address_of_nvml_loses_its_long_domain() -> None:
    assert pci_address("00000000:19:00.0") == "0000:19:00.0"


@pytest.mark.gcc
def test_tensor_activity_and_the_clock_make_the_tensor_throughput_delivered(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(tensor_active=60, sm_active=95, power_demand=700000, power_limit=350000, sm_clock_max=1980)
    values = source.read(nvml.uuid(), slow=True).values
    assert (values["gpu.tensor_active"], values["gpu.sm_active"]) == (0.6, 0.95)
    assert values["gpu.ofu"] == pytest.approx(0.6 * values["gpu.sm_clock"] / 1980)
    assert values["gpu.ofu"] < 0.5, "a clock that is held down delivers less at the same activity"


@pytest.mark.gcc
def test_activity_is_absent_with_the_reason_where_the_gpu_does_not_measure_it(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(gpm=0)
    older = GpuSource(open_nvml(nvml.env))
    older.attach(nvml.uuid())
    reading = older.read(nvml.uuid(), slow=True)
    assert "Hopper" in reading.reasons["gpu.ofu"]
    assert "gpu.tensor_active" not in reading.values


@pytest.mark.gcc
def test_an_activity_that_is_no_number_is_absent(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(tensor_active="nan", sm_active=4294967295, dram_active=50)
    values = source.read(nvml.uuid(), slow=False).values
    assert values["gpu.dram_active"] == 0.5
    assert not {"gpu.tensor_active", "gpu.ofu", "gpu.sm_active"} & values.keys()


@pytest.mark.gcc
def test_errors_are_counted_as_they_happen_and_those_of_programs_apart(nvml, source: GpuSource) -> None:
    def errors() -> tuple[float, ...]:
        values = source.read(nvml.uuid(), slow=False).values
        return values["gpu.xid_errors"], values["gpu.xid_application"], values["gpu.xid_last"]

    assert errors() == (0.0, 0.0, 0.0)
    nvml.state.set_gpu(xids="79,31,31")
    assert errors() == (1.0, 2.0, 31.0)
    assert errors() == (1.0, 2.0, 31.0), "the last error stays, the counts do not grow"
    nvml.state.set_gpu(xids="79,31,31,94")
    assert errors() == (2.0, 2.0, 94.0)


@pytest.mark.gcc
def test_links_fabric_lost_time_and_margins_are_read_in_their_units(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(
        nvlinks=18, nvlinks_down=2, nvlink_tx=3, nvlink_crc=7, memory_temperature=88, violation_power=2.5e9, margin=-2,
        fabric_state=2, remapped_uncorrected=1, pcie_replays=4, ecc_uncorrected=9,
    )  # fmt: skip
    values = source.read(nvml.uuid(), slow=True).values
    assert (values["gpu.nvlink_links"], values["gpu.nvlink_tx"], values["gpu.nvlink_crc_errors"]) == (16, 3072, 7)
    assert (values["gpu.memory_temperature"], values["gpu.temperature_margin"]) == (88, -2)
    assert values["gpu.violation_power"] == 2.5
    assert values["gpu.fabric_ready"] == 0.0
    assert (values["gpu.remapped_uncorrected"], values["gpu.pcie_replays"], values["gpu.ecc_uncorrected"]) == (1, 4, 9)


@pytest.mark.gcc
def test_a_gpu_without_links_or_fabric_says_so(nvml, source: GpuSource) -> None:
    nvml.state.set_gpu(nvlinks=0, fabric_state=0)
    reading = source.read(nvml.uuid(), slow=True)
    assert reading.reasons["gpu.nvlink_links"] == "Not Supported"
    assert "no NVLink fabric" in reading.reasons["gpu.fabric_ready"]
    assert "gpu.nvlink_tx" not in reading.values
    assert "gpu.memory_temperature" in reading.values


@pytest.mark.gcc
def test_one_gpu_is_taken_without_a_call_for_another_that_hangs(nvml, source: GpuSource) -> None:
    nvml.state.set(gpus=2)
    nvml.state.update({"gpu0.delay.*": 60})
    alone = GpuSource(open_nvml(nvml.env))
    alone.attach(nvml.uuid(1))
    assert alone.read(nvml.uuid(1), slow=True).values["gpu.temperature"] == 40.0
    nvml.state.update({"gpu0.delay.*": None})


@pytest.mark.gcc
def test_the_peers_of_active_links_are_named_by_their_address(nvml, source: GpuSource) -> None:
    assert source.identify(nvml.uuid()).facts["gpu.nvlink_peers"] == ("0000:08:00.0", "0000:09:00.0")
    nvml.state.set_gpu(nvlinks=2, nvlinks_down=1)
    assert source.identify(nvml.uuid()).facts["gpu.nvlink_peers"] == ("0000:09:00.0",)
    nvml.state.set_gpu(nvlinks=0)
    assert source.identify(nvml.uuid()).reasons["gpu.nvlink_peers"] == "Not Supported"
