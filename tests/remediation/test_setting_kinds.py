from __future__ import annotations

import pytest

from unveil.remediation.setting import parse_address
from unveil.remediation.setting_kinds import KINDS, coupled_with, kind_of, lock_of, observed

EXAMPLES = {
    "CPU frequency": "file:/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
    "CPU idle state": "file:/sys/devices/system/cpu/cpu3/cpuidle/state2/disable",
    "CPU wake-up latency": "file:/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us",
    "I/O scheduler": "file:/sys/block/vda/queue/scheduler",
    "block queue": "file:/sys/block/vda/queue/read_ahead_kb",
    "receive packet steering": "file:/sys/class/net/eth0/queues/rx-0/rps_cpus",
    "transmit packet steering": "file:/sys/class/net/eth0/queues/tx-0/xps_cpus",
    "network interface": "file:/sys/class/net/eth0/tx_queue_len",
    "kernel file": "file:/sys/kernel/mm/transparent_hugepage/enabled",
    "limit of dirty memory": "sysctl:vm.dirty_bytes",
    "background limit of dirty memory": "sysctl:vm.dirty_background_ratio",
    "limit of overcommitted memory": "sysctl:vm.overcommit_ratio",
    "kernel parameter": "sysctl:net.core.somaxconn",
    "CPUs of an interrupt": "irq:24/smp_affinity_list",
    "ban of an interrupt from irqbalance": "irqbalance:24/banned",
    "memory limit of a cgroup": "cgroup:/pod1/memory.limit_in_bytes",
    "cpuset of a cgroup": "cgroup:/pod1/cpuset.mems",
    "control file of a cgroup": "cgroup:/pod1/cpu.max",
    "rings of a NIC": "ethtool:eth0/ring/rx",
    "channels of a NIC": "ethtool:eth0/channels/combined",
    "interrupt moderation of a NIC": "ethtool:eth0/coalesce/rx-usecs",
    "offload of a NIC": "ethtool:eth0/feature/rx-gro",
    "power limit of a GPU": "nvml:GPU-1/power_limit",
    "persistence mode of a GPU": "nvml:GPU-1/persistence_mode",
    "application clocks of a GPU": "nvml:GPU-1/applications_clocks",
    "service": "service:irqbalance.service/active",
    "memory of a cgroup by node": "memory:/pod1/nodes",
    "huge pages of a cgroup": "memory:/pod1/huge_pages",
}


def test_every_kind_has_an_example_and_is_found_by_it() -> None:
    assert {kind.name for kind in KINDS} == set(EXAMPLES)
    for name, address in EXAMPLES.items():
        assert kind_of(str(parse_address(address))).name == name


@pytest.mark.parametrize("address", EXAMPLES.values())
def test_what_moves_along_are_addresses_too_and_never_the_setting_itself(address: str) -> None:
    for other in coupled_with(address):
        assert str(parse_address(other)) == other
        assert other != address
        assert kind_of(other).name == kind_of(address).name or "scheduler" in address
    assert observed(address) is kind_of(address).observed


def test_a_policy_shared_by_cpus_keeps_its_own_folder() -> None:
    policy = "file:/sys/devices/system/cpu/cpufreq/policy0"
    assert f"{policy}/scaling_max_freq" in coupled_with(f"{policy}/scaling_governor")


def test_a_list_and_a_mask_of_an_interrupt_are_one_lock() -> None:
    assert lock_of("irq:24/smp_affinity") == lock_of("irq:24/smp_affinity_list")
