from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.cpu_speed import read_speed
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

CPU = "sys/devices/system/cpu"


def _cpu(tree: Tree, number: int, **files: str) -> None:
    for name, text in files.items():
        tree.write(f"{CPU}/cpu{number}/cpufreq/{name}", text + "\n")


def test_governors_are_settings_of_each_cpu(tree: Tree) -> None:
    _cpu(tree, 0, scaling_driver="acpi-cpufreq", scaling_governor="powersave")
    sheet = tree.sheet()
    read_speed(sheet, (0, 1))
    path = f"{CPU}/cpu0/cpufreq/scaling_governor"
    fact = sheet.table().find("cpu.governor", Entity(EntityKind.CPU, "0"))
    assert fact is not None
    assert (fact.value, fact.setting) == ("powersave", f"file:/{path}")
    assert sheet.settings[f"file:/{path}"] == "powersave\n"
    assert sheet.value("cpu.governor", Entity(EntityKind.CPU, "1")) is None
    assert (sheet.value("cpu.governors"), sheet.value("cpu.steered")) == (("powersave",), ("0",))
    assert sheet.value("cpu.frequency_driver") == "acpi-cpufreq"
    assert sheet.value("cpu.frequency_rated") is None
    assert sheet.value("cpu.energy_preference") is None
    _cpu(tree, 0, energy_performance_preference="balance_power")
    read_speed(sheet, (0, 1))
    assert sheet.value("cpu.energy_preference") == "balance_power"


def test_a_limit_is_held_against_what_the_cpu_is_rated_for_without_turbo(tree: Tree) -> None:
    files = {"scaling_driver": "intel_pstate", "scaling_governor": "performance", "cpuinfo_max_freq": "4000000"}
    _cpu(tree, 0, base_frequency="2000000", scaling_max_freq="4000000", **files)
    _cpu(tree, 1, base_frequency="2000000", scaling_max_freq="800000", **files)
    sheet = tree.sheet()
    read_speed(sheet, (1, 0))
    assert sheet.value("cpu.frequency_rated") == 2000
    assert sheet.value("cpu.frequency_limit_share") == 0.4


def test_a_package_with_a_power_limit_far_below_its_makers_is_told(tree: Tree) -> None:
    for zone, limit in (("intel-rapl:0", "200000000"), ("intel-rapl:1", "875000"), ("intel-rapl:1:0", "1")):
        tree.write(f"sys/class/powercap/{zone}/constraint_0_power_limit_uw", f"{limit}\n")
        tree.write(f"sys/class/powercap/{zone}/constraint_0_max_power_uw", "250000000\n")
    sheet = tree.sheet()
    read_speed(sheet, (0,))
    assert sheet.value("cpu.power_limit_share") == 0.0035


def test_sleep_is_as_deep_as_the_deepest_state_that_is_allowed(tree: Tree) -> None:
    for state, latency, disable in ((0, 0, 0), (1, 2, 0), (2, 133, 0), (3, 600, 1)):
        tree.write(f"{CPU}/cpu0/cpuidle/state{state}/latency", f"{latency}\n")
        tree.write(f"{CPU}/cpu0/cpuidle/state{state}/disable", f"{disable}\n")
    for cpu, limit in ((0, "20"), (1, "n/a")):
        tree.write(f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us", f"{limit}\n")
    sheet = tree.sheet()
    read_speed(sheet, (0, 1, 2))
    assert sheet.value("cpu.sleep_latency") == 133
    assert sheet.value("cpu.sleep_steered") == ("0", "1")
    assert sheet.value("cpu.sleep_limited") is True
    assert sheet.settings[f"file:/{CPU}/cpu1/power/pm_qos_resume_latency_us"] == "n/a\n"
    tree.write(f"{CPU}/cpu1/power/pm_qos_resume_latency_us", "0\n")
    read_speed(sheet, (0, 1))
    assert sheet.value("cpu.sleep_limited") is False


def test_a_kernel_that_steers_nothing_says_so(tree: Tree) -> None:
    sheet = tree.sheet()
    read_speed(sheet, (0,))
    for name in ("governors", "frequency_rated", "frequency_limit_share", "sleep_latency", "sleep_limited",
                 "power_limit_share"):  # fmt: skip
        fact = sheet.table().find(f"cpu.{name}")
        assert fact is not None
        assert fact.value is None
        assert fact.reason
