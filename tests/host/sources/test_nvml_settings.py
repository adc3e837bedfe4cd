"""The short-lived process that reads or writes one setting of a GPU."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from unveil.errors import (
    BadInputError,
    RefusedError,
    SourceAbsentError,
    SourceFailedError,
    UsageError,
)
from unveil.host.driver_process import reap
from unveil.host.sources.nvml_settings import parse_address, read_setting, write_setting

pytestmark = pytest.mark.gcc


@pytest.fixture
def address(nvml) -> str:
    return f"nvml:{nvml.uuid()}/power_limit"


def command(nvml, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "unveil.host.sources.nvml_settings", *arguments]
    return subprocess.run(words, env=nvml.env, capture_output=True, text=True, check=False)


def test_a_limit_is_read_as_text(nvml, address: str) -> None:
    nvml.state.set_gpu(power_limit=350000)
    assert read_setting(address, 10.0, environ=nvml.env) == "350\n"
    nvml.state.set_gpu(power_limit=350123)
    assert read_setting(address, 10.0, environ=nvml.env) == "350.123\n"


def test_what_was_read_can_be_written_back_exactly(nvml, address: str) -> None:
    nvml.state.set_gpu(power_limit=612345)
    saved = read_setting(address, 10.0, environ=nvml.env)
    write_setting(address, "350\n", 10.0, environ=nvml.env)
    assert nvml.state.get("gpu0.power_limit") == "350000"
    write_setting(address, saved, 10.0, environ=nvml.env)
    assert nvml.state.get("gpu0.power_limit") == "612345"


def test_only_the_named_gpu_is_changed(nvml) -> None:
    nvml.state.set(gpus=2, order="1,0")
    write_setting(f"nvml:{nvml.uuid(1)}/power_limit", "300", 10.0, environ=nvml.env)
    assert nvml.state.get("gpu1.power_limit") == "300000"
    assert nvml.state.get("gpu0.power_limit") is None


@pytest.mark.parametrize(
    "text", ["9000", "-5", "0", "nan", "inf", "much", "", "350 W", "3_50", "3.5e2", "\u0663\u0665\u0660"]
)
def test_a_value_that_the_gpu_does_not_allow_changes_nothing(nvml, address: str, text: str) -> None:
    with pytest.raises(BadInputError):
        write_setting(address, text, 10.0, environ=nvml.env)
    assert nvml.state.get("gpu0.power_limit") is None


def test_the_error_names_the_range(nvml, address: str) -> None:
    with pytest.raises(BadInputError) as caught:
        write_setting(address, "9000", 10.0, environ=nvml.env)
    assert caught.value.hint == "200 to 700 W"


def test_missing_rights_are_a_refusal(nvml, address: str) -> None:
    nvml.state.update({"gpu0.error.nvmlDeviceSetPowerManagementLimit": 4})
    with pytest.raises(RefusedError, match="does not permit"):
        write_setting(address, "350", 10.0, environ=nvml.env)


def test_a_driver_that_fails_is_said_with_its_own_word(nvml, address: str) -> None:
    nvml.state.update({"gpu0.error.nvmlDeviceSetPowerManagementLimit": 999})
    with pytest.raises(SourceFailedError, match="Unknown Error"):
        write_setting(address, "350", 10.0, environ=nvml.env)


def test_a_limit_that_does_not_stick_is_a_failure(nvml, address: str) -> None:
    nvml.state.update({"gpu0.power_cap_firm": 300000})
    with pytest.raises(SourceFailedError, match="took 350 W and reads 300 W"):
        write_setting(address, "350", 10.0, environ=nvml.env)


def test_a_gpu_or_a_library_that_is_not_there_is_absent(nvml) -> None:
    with pytest.raises(SourceAbsentError, match="no GPU"):
        read_setting(f"nvml:{nvml.uuid(7)}/power_limit", 10.0, environ=nvml.env)
    environ = {name: value for name, value in nvml.env.items() if name != "UNVEIL_NVML_LIBRARY"}
    with pytest.raises(SourceAbsentError, match="no NVML library"):
        read_setting(f"nvml:{nvml.uuid()}/power_limit", 10.0, environ=environ)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nvml:0/power_limit",
        "nvml:GPU-1/power_limit",
        "file:/etc/passwd",
        "nvml:--help/power_limit",
        "nvml:{}/clocks",
    ],
)
def test_an_address_that_names_no_setting_never_reaches_a_process(nvml, address: str) -> None:
    with pytest.raises(UsageError):
        parse_address(address.format(nvml.uuid()))
    with pytest.raises(UsageError):
        read_setting(address.format(nvml.uuid()), 10.0, environ=nvml.env)


def test_a_driver_that_hangs_costs_the_deadline_and_its_caller_is_left(nvml, address: str) -> None:
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerManagementLimit": 60})
    for patience_s in (0.8, 8.0):  # a busy machine may need more to start it
        with pytest.raises(SourceFailedError, match=rf"within {patience_s:g} s") as caught:
            read_setting(address, patience_s, environ=nvml.env)
        time.sleep(0.1)
        if left := reap():
            break
    assert left, "it is inside the driver and must not be killed"
    assert str(left[0]) in (caught.value.hint or "")
    nvml.state.update({"gpu0.delay.nvmlDeviceGetPowerManagementLimit": None})
    end = time.monotonic() + 60
    while reap():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_command_has_the_exit_codes_of_all_commands(nvml, address: str) -> None:
    assert command(nvml, "get", address).stdout == "700\n"
    assert command(nvml, "set", address, "350").returncode == 0
    assert command(nvml, "get", address).stdout == "350\n"
    for arguments, code in (
        (("set", address, "9000"), 2),
        (("get", "bla"), 3),
        (("set", address), 3),
        (("get", address, "350"), 3),
        (("frob", address), 3),
        ((), 3),
        (("get", f"nvml:{nvml.uuid(7)}/power_limit"), 1),
    ):
        ended = command(nvml, *arguments)
        assert ended.returncode == code, arguments
        assert "Traceback" not in ended.stderr
        assert ended.stderr.strip(), arguments
