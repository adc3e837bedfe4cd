"""A GPU's settings through the genuine nvidia-ml-py over a stand-in for the driver."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.nvml_backend import NvmlBackend, NvmlLooks
from unveil.errors import SourceAbsentError, SourceFailedError
from unveil.execution.settings import Outcome, Settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.gcc


@pytest.fixture
def settings(nvml: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", str(nvml.library))
    monkeypatch.setattr("unveil.engine.nvml_backend.DEADLINE_S", 60.0)  # each answer takes a process its start
    nvml.state.set_gpu(0, power_default=700_000, power_limit=350_000)
    return Settings(tmp_path, backends={"nvml": NvmlBackend()})


def test_a_limit_is_read_written_and_put_back(settings: Settings, nvml: Any) -> None:
    address = f"nvml:{nvml.uuid()}/power_limit"
    assert settings.read(address) == "350"
    assert settings.write(address, "500") == "500"
    assert nvml.state.get("gpu0.power_limit") == "500000"
    (answer,) = settings.restore({address: "350"}, {address: "500"})
    assert answer.outcome is Outcome.RESTORED
    assert nvml.state.get("gpu0.power_limit") == "350000"


def test_a_gpu_that_is_not_there_is_absent_and_so_is_a_part_of_one(settings: Settings, nvml: Any) -> None:
    with pytest.raises(SourceAbsentError):
        settings.read(f"nvml:{nvml.uuid(7)}/power_limit")
    part = "nvml:MIG-00000000/power_limit"
    assert settings.peek(part) is None
    (answer,) = settings.restore({part: "1"}, {part: "2"})
    assert answer.outcome is Outcome.LEFT_ALONE


def test_a_value_that_the_gpu_does_not_take_fails_and_never_raises_in_a_rollback(settings: Settings, nvml: Any) -> None:
    address = f"nvml:{nvml.uuid()}/power_limit"
    with pytest.raises(SourceFailedError, match="outside"):
        settings.write(address, "99999")
    (answer,) = settings.restore({address: "99999"}, {address: "350"})
    assert answer.outcome is Outcome.FAILED


def test_looking_never_waits_for_the_driver(settings: Settings, nvml: Any) -> None:
    address, looks = f"nvml:{nvml.uuid()}/persistence_mode", NvmlLooks()
    assert looks.peek(address, 100.0) is None, "who waited for the driver would have its answer"
    end = time.monotonic() + 60
    while (told := looks.peek(address, 101.0)) is None and time.monotonic() < end:
        time.sleep(0.02)
    assert told == "on"
    assert looks.peek(address, 200.0) is None, "an old answer is none"
