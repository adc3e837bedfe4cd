"""How fast CPUs may run and how deep they may sleep: who steers it, within which limits.

Nothing here wakes a CPU: limits and names are read, never the frequency of the moment.

Source: Documentation/admin-guide/pm/cpufreq.rst, pm/cpuidle.rst, ABI/testing/sysfs-devices-power,
power/powercap/powercap.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.sheet import number_or_none
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.facts.sheet import FactSheet

_CPU = "sys/devices/system/cpu"
_POWERCAP = "sys/class/powercap"
# What a CPU is rated for, in kHz: without turbo where the driver tells that, else its highest.
_RATED = ("base_frequency", "cpuinfo_max_freq")
_NOT_STEERED = "this kernel does not steer the frequency"


def read_speed(sheet: FactSheet, online: Iterable[int]) -> None:
    """Read governors, limits of frequency and of sleep, and limits of power; all of them may change at any time."""
    cpus = sorted(online)
    _read_frequency(sheet, cpus)
    _read_sleep(sheet, cpus)
    _read_power(sheet)


def _read_frequency(sheet: FactSheet, cpus: list[int]) -> None:
    governors: dict[str, str] = {}
    for cpu in cpus:
        path, entity = f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor", Entity(EntityKind.CPU, str(cpu))
        governor = sheet.read("cpu.governor", path, str, entity, setting=f"file:/{path}")
        if governor is None:
            sheet.miss("cpu.governor", _NOT_STEERED, entity)
        else:
            governors[str(cpu)] = str(governor)
    if not governors:
        for name in ("frequency_driver", "frequency_rated", "frequency_limit_share", "governors", "steered",
                     "energy_preference"):  # fmt: skip
            sheet.miss(f"cpu.{name}", _NOT_STEERED)
        return
    sheet.tell("cpu.governors", tuple(sorted(set(governors.values()))))
    sheet.tell("cpu.steered", tuple(governors))
    folder = f"{_CPU}/cpu{next(iter(governors))}/cpufreq"
    sheet.read("cpu.frequency_driver", f"{folder}/scaling_driver", str)
    preference = f"{folder}/energy_performance_preference"  # of one CPU: some kernels ask the CPU itself, and wake it
    sheet.read("cpu.energy_preference", preference, str, setting=f"file:/{preference}")
    rated = next((khz for file in _RATED if (khz := _positive(sheet, f"{folder}/{file}"))), None)
    if rated is None:
        sheet.miss("cpu.frequency_rated", "the driver does not tell what the CPU is rated for")
        sheet.miss("cpu.frequency_limit_share", "the driver does not tell what the CPU is rated for")
        return
    sheet.tell("cpu.frequency_rated", rated / 1000)
    limits = [_positive(sheet, f"{_CPU}/cpu{cpu}/cpufreq/scaling_max_freq") for cpu in governors]
    if known := [khz for khz in limits if khz is not None]:
        sheet.tell("cpu.frequency_limit_share", min(known) / rated)
    else:
        sheet.miss("cpu.frequency_limit_share", "the driver does not tell its limit")


def _positive(sheet: FactSheet, path: str) -> float | None:
    value = number_or_none(sheet.text(path))
    return value if value is not None and value > 0 else None


def _read_sleep(sheet: FactSheet, cpus: list[int]) -> None:
    """Read how long the deepest sleep takes to leave, and which CPUs can be told how long is too long."""
    states = f"{_CPU}/cpu{cpus[0] if cpus else 0}/cpuidle"
    latencies = [
        latency
        for state in sheet.names(states)
        if sheet.text(f"{states}/{state}/disable") == "0"
        and (latency := number_or_none(sheet.text(f"{states}/{state}/latency"))) is not None
    ]
    if latencies:
        sheet.tell("cpu.sleep_latency", max(latencies))
    else:
        sheet.miss("cpu.sleep_latency", "this kernel does not choose idle states by itself")
    limited = "power/pm_qos_resume_latency_us"
    limits = {str(cpu): sheet.text(f"{_CPU}/cpu{cpu}/{limited}") for cpu in cpus}
    able = tuple(cpu for cpu, text in limits.items() if text is not None)
    if not able:
        sheet.miss("cpu.sleep_limited", f"this kernel has no {limited} of CPUs")
        sheet.miss("cpu.sleep_steered", f"this kernel has no {limited} of CPUs")
        return
    for cpu in able:
        sheet.settings[f"file:/{_CPU}/cpu{cpu}/{limited}"] = f"{limits[cpu]}\n"
    sheet.tell("cpu.sleep_steered", able)
    sheet.tell("cpu.sleep_limited", all(limits[cpu] != "0" for cpu in able))  # 0 is "no limit", n/a is "none at all"


def _read_power(sheet: FactSheet) -> None:
    """Read the lowest long-term power limit of a package against what its maker set as the most."""
    shares = []
    for zone in sheet.names(_POWERCAP):
        if not zone.startswith("intel-rapl:") or zone.count(":") != 1:
            continue  # other zones are parts of a package
        limit = _positive(sheet, f"{_POWERCAP}/{zone}/constraint_0_power_limit_uw")
        most = _positive(sheet, f"{_POWERCAP}/{zone}/constraint_0_max_power_uw")
        if limit is not None and most is not None:
            shares.append(limit / most)
    if shares:
        sheet.tell("cpu.power_limit_share", min(shares))
    else:
        sheet.miss("cpu.power_limit_share", "no CPU package tells its power limit")
