from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import UnveilError
from unveil.execution.places import Places
from unveil.remediation import setting

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

THP = "file:/sys/kernel/mm/transparent_hugepage/enabled"


def rows(name: str) -> Any:
    """Return a table of tests/remediation/test_setting.py: the module must answer it, too."""
    path = Path(__file__).parents[1] / "remediation/test_setting.py"
    spec = importlib.util.spec_from_file_location("_setting_rows", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return getattr(found, name)


def content(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_it_shares_with_the_engine_is_one_text() -> None:
    root = Path(__file__).parents[2]
    ours, theirs = (
        root / name for name in ("unveil/execution/device_settings.py", "playbooks/modules/unveil_device_settings.py")
    )
    assert ours.read_bytes() == theirs.read_bytes(), f"cp {ours} {theirs}"


@pytest.mark.parametrize(("address", "one", "other", "same"), rows("SAME"))
def test_it_compares_as_the_engine_does(
    loaded: Callable[[str], ModuleType], address: str, one: str, other: str, same: bool
) -> None:
    assert loaded("unveil_setting").equal(address, one, other) is same


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from([row[0] for row in rows("SAME")]))
def test_it_compares_as_the_engine_does_whatever_there_is(
    loaded: Callable[[str], ModuleType], one: str, other: str, address: str
) -> None:
    assert loaded("unveil_setting").equal(address, one, other) == setting.equal(address, one, other)


@pytest.mark.parametrize("address", [*rows("GOOD"), *rows("BAD")])
def test_it_goes_where_the_engine_goes_and_nowhere_else(
    loaded: Callable[[str], ModuleType], host_tree: Path, address: str
) -> None:
    module = loaded("unveil_setting")
    if address.startswith("nvml:GPU-5eed"):
        assert module.NVML.fullmatch(address[5:])
        return
    try:
        parsed = setting.parse_address(address)
        ours: str | None = None if parsed.scheme == "memory" else Places(host_tree).path(parsed)
    except UnveilError:
        ours = None
    try:
        theirs: str | None = module.path_of(str(host_tree), address)
    except module.SettingError:
        theirs = None
    assert ours == theirs


def test_check_mode_writes_nothing_and_tells_the_difference(module: Callable[..., Any], host_tree: Path) -> None:
    before = content(host_tree)
    wanted = [{"address": THP, "value": "always"}, {"address": "irq:24/smp_affinity_list", "value": "1,0"}]
    answer = module("unveil_setting", check=True, settings=wanted, root=str(host_tree))
    assert answer["changed"] is True
    assert [each["changed"] for each in answer["settings"]] == [True, False]
    assert [(each["before"], each["after"]) for each in answer["diff"]] == [("always [madvise] never\n", "always\n")]
    assert content(host_tree) == before


def test_apply_once_changes_and_twice_does_not_and_back_is_byte_for_byte(
    module: Callable[..., Any], host_tree: Path
) -> None:
    before = content(host_tree)
    wanted = [{"address": THP, "value": "always"}, {"address": "cgroup:/pod1/cpu.max", "value": "max"}]
    first = module("unveil_setting", settings=wanted, root=str(host_tree))
    assert first["changed"] is True
    assert first["settings"][0] == {
        "address": THP,
        "before": "always [madvise] never",
        "after": "[always] madvise never",
        "changed": True,
    }
    assert module("unveil_setting", settings=wanted, root=str(host_tree))["changed"] is False
    back = [{"address": each["address"], "value": each["before"]} for each in first["settings"]]
    assert module("unveil_setting", settings=back, root=str(host_tree))["changed"] is True
    assert content(host_tree) == before


def test_one_that_cannot_be_read_keeps_all_from_being_written(module: Callable[..., Any], host_tree: Path) -> None:
    before = content(host_tree)
    for bad in ("sysctl:vm.no_such", "file:/etc/passwd", "irq:24/../25/smp_affinity_list", "gopher:x"):
        wanted = [{"address": THP, "value": "always"}, {"address": bad, "value": "1"}]
        answer = module("unveil_setting", settings=wanted, root=str(host_tree))
        assert answer["failed"] is True
        assert "nothing was changed" in answer["msg"]
        assert content(host_tree) == before


@pytest.mark.parametrize("value", ["a\nb", "\x1b[2J", "x" * 70000, "\0"])
def test_a_value_that_no_kernel_takes_is_refused(module: Callable[..., Any], host_tree: Path, value: str) -> None:
    before = content(host_tree)
    answer = module("unveil_setting", settings=[{"address": THP, "value": value}], root=str(host_tree))
    assert answer["failed"] is True
    assert content(host_tree) == before


@pytest.mark.gcc
def test_when_one_write_fails_those_before_it_are_put_back(
    module: Callable[..., Any], nvml: Any, host_tree: Path
) -> None:
    before = content(host_tree)
    beyond = {"address": f"nvml:{nvml.uuid(0)}/power_limit", "value": "90000"}
    wanted = [{"address": THP, "value": "always"}, {"address": "irq:24/smp_affinity_list", "value": "1"}, beyond]
    answer = module("unveil_setting", settings=wanted, root=str(host_tree), env=nvml.env)
    assert answer["failed"] is True
    assert "90000 W is not within" in answer["msg"]
    assert "what was written before was put back" in answer["msg"]
    assert content(host_tree) == before


@pytest.mark.gcc
def test_a_power_limit_is_set_and_put_back(module: Callable[..., Any], nvml: Any, host_tree: Path) -> None:
    address = f"nvml:{nvml.uuid(0)}/power_limit"
    nvml.state.set_gpu(0, power_limit=350000, power_default=700000)
    wanted = [{"address": address, "value": "700"}]
    dry = module("unveil_setting", check=True, settings=wanted, env=nvml.env)
    assert (dry["changed"], nvml.state.get("gpu0.power_limit")) == (True, "350000")
    real = module("unveil_setting", settings=wanted, env=nvml.env)
    assert (real["settings"][0]["before"], real["settings"][0]["after"]) == ("350", "700")
    assert module("unveil_setting", settings=wanted, env=nvml.env)["changed"] is False
    back = [{"address": address, "value": real["settings"][0]["before"]}]
    assert module("unveil_setting", settings=back, env=nvml.env)["changed"] is True
    assert float(nvml.state.get("gpu0.power_limit")) == 350000


@pytest.mark.gcc
@pytest.mark.parametrize(
    ("item", "before", "after", "bad"),
    [("persistence_mode", "on", "off", "1"), ("applications_clocks", "2619,1980", "2619,1410", "1980")],
)
def test_other_settings_of_a_gpu_are_set_and_put_back(
    module: Callable[..., Any], nvml: Any, item: str, before: str, after: str, bad: str
) -> None:
    address = f"nvml:{nvml.uuid(0)}/{item}"
    real = module("unveil_setting", settings=[{"address": address, "value": after}], env=nvml.env)
    assert (real["settings"][0]["before"], real["settings"][0]["after"]) == (before, after)
    assert module("unveil_setting", settings=[{"address": address, "value": after}], env=nvml.env)["changed"] is False
    refused = module("unveil_setting", settings=[{"address": address, "value": bad}], env=nvml.env)
    assert "cannot be written" in refused["msg"]
    assert module("unveil_setting", settings=[{"address": address, "value": before}], env=nvml.env)["changed"] is True


@pytest.mark.gcc
def test_no_such_gpu_and_no_library_are_told(module: Callable[..., Any], nvml: Any) -> None:
    wanted = [{"address": "nvml:GPU-00000000-0000-0000-0000-000000000000/power_limit", "value": "700"}]
    assert "GPU-00000000" in module("unveil_setting", settings=wanted, env=nvml.env)["msg"]
    absent = {**nvml.env, "UNVEIL_NVML_LIBRARY": "/no/such.so"}
    assert "cannot be loaded" in module("unveil_setting", settings=wanted, env=absent)["msg"]
