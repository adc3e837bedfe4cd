from __future__ import annotations

import errno

import pytest

from unveil.host.root import HostRoot
from unveil.host.source import SourceState
from unveil.host.sources import cpu_throttle, cpufreq, cpuidle, hwmon, pressure_irq, rapl, schedstat
from unveil.host.sources.cpu_sysfs import CPUS, first_of_packages, online_cpus, spread

ABSENT = {
    "schedstat": schedstat.SOURCE,
    "pressure_irq": pressure_irq.SOURCE,
    "cpuidle": cpuidle.SOURCE,
    "cpufreq": cpufreq.SOURCE,
    "cpu_throttle": cpu_throttle.SOURCE,
    "rapl": rapl.SOURCE,
    "hwmon": hwmon.SOURCE,
}


@pytest.mark.parametrize("name", ABSENT)
def test_a_host_that_has_none_of_it_is_told_why(name: str, look) -> None:
    values, health = look(ABSENT[name])
    assert not values
    assert health.state is SourceState.ABSENT
    assert len(health.reason) > 10


def test_cpus_are_taken_by_their_ids_and_as_far_apart_as_can_be(procfs) -> None:
    assert online_cpus(procfs.root) == ()
    for cpu in (0, 1, 8, 9):
        procfs.write(f"{CPUS}/cpu{cpu}/topology/physical_package_id", f"{cpu // 8}\n")
    assert online_cpus(procfs.root) == (0, 1, 8, 9)
    procfs.write(f"{CPUS}/online", "0-1,8\n")
    assert online_cpus(procfs.root) == (0, 1, 8)
    assert spread(range(100), 4) == (0, 25, 50, 75)
    assert spread((3, 5), 4) == (3, 5)
    assert first_of_packages(procfs.root, (1, 8, 9, 77)) == {"0": 1, "1": 8}


def test_the_wait_for_cpus_is_summed_over_them(procfs, look) -> None:
    procfs.write(
        "proc/schedstat",
        "version 17\ntimestamp 4\ncpu0 0 0 0 0 0 0 2000000000 3000000000 5\ndomain0 MC 3 1 2 3\n"
        "cpu8 0 0 0 0 0 0 1000000 4000000 6\n",
    )
    values, health = look(schedstat.SOURCE)
    assert values == {"cpu.run_time": 2.001, "cpu.run_delay": 3.004, "cpu.timeslices": 11}
    assert health.state is SourceState.OK


def test_the_pressure_of_interrupts_has_one_line(procfs, look) -> None:
    procfs.write("proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n")
    assert look(pressure_irq.SOURCE)[0] == {"cpu.psi_irq_full": 1.5}


def test_idle_states_are_told_apart_by_how_long_it_takes_to_leave_them(procfs, look) -> None:
    procfs.write(f"{CPUS}/online", "0\n")
    for state, (name, latency) in enumerate((("POLL", 0), ("C1", 1), ("C6", 170))):
        folder = f"{CPUS}/cpu0/cpuidle/state{state}"
        procfs.write(f"{folder}/name", f"{name}\n")
        procfs.write(f"{folder}/latency", f"{latency}\n")
        procfs.write(f"{folder}/time", f"{state}000000\n")
        procfs.write(f"{folder}/usage", f"{state}0\n")
    values, _ = look(cpuidle.SOURCE)
    assert values["cpu.idle_state_time{cpu=0,state=2,depth=deep}"] == 2.0
    assert values["cpu.idle_state_entries{cpu=0,state=1,depth=shallow}"] == 10
    assert values["cpu.idle_state_time{cpu=0,state=0,depth=poll}"] == 0
    assert len(values) == 6, "files that an older kernel lacks are left out"


def test_the_frequency_is_asked_for_one_cpu_at_a_time_and_not_where_that_wakes_it(procfs, look) -> None:
    procfs.write(f"{CPUS}/online", "0-1\n")
    for cpu in (0, 1):
        procfs.write(f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq", f"{cpu + 2}000000\n")
    procfs.write("proc/sys/kernel/osrelease", "5.15.0-91-generic\n")
    assert "wakes" in look(cpufreq.SOURCE)[1].reason
    procfs.write("proc/sys/kernel/osrelease", "6.8.0-91-generic\n")
    values, health = look(cpufreq.SOURCE)
    assert values == {"cpu.frequency": 3000.0}, "the first reading was that of the first CPU"
    assert health.files == 1


def test_one_cpu_stands_for_its_package_and_each_core_for_itself(procfs, look) -> None:
    procfs.write(f"{CPUS}/online", "0-1,8\n")
    for cpu in (0, 1, 8):
        procfs.write(f"{CPUS}/cpu{cpu}/topology/physical_package_id", f"{cpu // 8}\n")
        procfs.write(f"{CPUS}/cpu{cpu}/thermal_throttle/package_throttle_count", f"{cpu}\n")
        procfs.write(f"{CPUS}/cpu{cpu}/thermal_throttle/core_throttle_count", f"{cpu + 100}\n")
        procfs.write(f"{CPUS}/cpu{cpu}/thermal_throttle/package_throttle_total_time_ms", "2500\n")
    values, _ = look(cpu_throttle.SOURCE)
    assert values == {
        "cpu.package_throttles{package=0}": 0,
        "cpu.package_throttles{package=1}": 8,
        "cpu.package_throttle_time{package=0}": 2.5,
        "cpu.package_throttle_time{package=1}": 2.5,
        "cpu.core_throttles{cpu=0}": 100,
        "cpu.core_throttles{cpu=1}": 101,
        "cpu.core_throttles{cpu=8}": 108,
    }


def test_energy_is_told_by_package_and_domain_and_never_twice(procfs, look) -> None:
    zones = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:0:1": "dram",
        "intel-rapl:1": "package-1-die-0",
        "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }
    for zone, name in zones.items():
        procfs.write(f"sys/class/powercap/{zone}/name", f"{name}\n")
        procfs.write(f"sys/class/powercap/{zone}/energy_uj", "1500000\n")
    values, _ = look(rapl.SOURCE)
    assert values == {
        "cpu.energy{package=0,domain=package}": 1.5,
        "cpu.energy{package=0,domain=core}": 1.5,
        "cpu.energy{package=0,domain=dram}": 1.5,
        "cpu.energy{package=1.0,domain=package}": 1.5,
    }


def test_zones_that_are_numbered_anew_are_told_apart(procfs, look_twice) -> None:
    zone = "sys/class/powercap/intel-rapl:0"
    procfs.write(f"{zone}/name", "package-0\n")
    procfs.write(f"{zone}/energy_uj", "1500000\n")
    channels = look_twice(rapl.SOURCE, lambda: procfs.write(f"{zone}/name", "package-1\n"))
    assert channels == {"cpu.energy{package=1,domain=package}"}


def test_sensors_that_hang_their_reader_are_never_touched(procfs, look) -> None:
    chips = {
        "hwmon0": ("coretemp", {"temp1_input": "45000", "temp2_input": "44000"}),
        "hwmon1": ("power_meter", {"power1_average": "9", "temp1_input": "1000"}),
        "hwmon2": ("acpitz", {"temp1_input": "27800"}),
        "hwmon3": ("w1_slave_temp", {"temp1_input": "1"}),
        "hwmon4": ("nct6798", {"fan1_input": "1200", "fan2_input": "0", "temp1_input": "30000"}),
        "hwmon5": ("nvme", {"temp1_input": "30000"}),
        "hwmon6": ("k10temp", {"temp1_input": "-5000"}),
    }
    for monitor, (chip, files) in chips.items():
        procfs.write(f"sys/class/hwmon/{monitor}/name", f"{chip}\n")
        for file, text in files.items():
            procfs.write(f"sys/class/hwmon/{monitor}/{file}", f"{text}\n")
    values, _ = look(hwmon.SOURCE)
    assert values == {
        "cpu.temperature{sensor=coretemp hwmon0 temp1}": 45.0,
        "cpu.fan_speed{sensor=nct6798 hwmon4 fan1}": 1200,
        "cpu.fan_speed{sensor=nct6798 hwmon4 fan2}": 0,
    }


def test_of_a_die_that_is_cooler_than_its_fans_are_told_the_die_counts(procfs, look) -> None:
    for file, text in (
        ("name", "k10temp"),
        ("temp1_input", "70000"),
        ("temp1_label", "Tctl"),
        ("temp2_input", "43000"),
        ("temp2_label", "Tdie"),
    ):
        procfs.write(f"sys/class/hwmon/hwmon0/{file}", f"{text}\n")
    assert look(hwmon.SOURCE)[0] == {"cpu.temperature{sensor=k10temp hwmon0 temp2}": 43.0}


def test_energy_that_only_root_may_read_is_absent_and_no_failure(procfs, look, monkeypatch) -> None:
    procfs.write("sys/class/powercap/intel-rapl:0/name", "package-0\n")
    procfs.write("sys/class/powercap/intel-rapl:0/energy_uj", "1500000\n")

    def refuse(_root: HostRoot, path: str, _size: int) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(HostRoot, "head", refuse)  # tests may run as root, whom no mode keeps out
    values, health = look(rapl.SOURCE)
    assert not values
    assert (health.state, "only root" in health.reason) == (SourceState.ABSENT, True)
