from __future__ import annotations

import pytest

from unveil.host.catalogue import METRICS, SOURCES, metric_of
from unveil.records.entity import EntityKind
from unveil.records.metric import Channel, Kind

# What a channel may be told apart by besides an entity.
QUALIFIERS = {
    "vector",
    "package",
    "domain",
    "sensor",
    "state",
    "depth",
    "size",
    "controller",
    "pci",
    "port",
    "vcpu",
    "vhost",
}
PROMISED = {
    "cpu": "user nice system idle iowait irq softirq steal context_switches forks interrupts running blocked psi_some"
    " psi_full softirqs irq ipi cgroup_usage cgroup_periods cgroup_throttled cgroup_throttled_time watcher_late"
    " watcher_missed",
    "memory": "psi_some psi_full free available cached dirty writeback anon anon_huge mapped slab swap_free file_huge"
    " shmem page_tables huge_total huge_free page_faults major_faults pgscan pgsteal alloc_stall swap_in swap_out"
    " page_in page_out thp_fault_alloc thp_fault_fallback thp_collapse_alloc thp_split compact_stall compact_fail"
    " compact_success oom_kill dirtied written dirty_threshold dirty_background_threshold node_free node_anon node_file"
    " node_total cgroup_anon cgroup_anon_huge cgroup_file cgroup_limit cgroup_page_faults cgroup_major_faults",
    "interconnect": "numa_hit numa_miss numa_foreign numa_local numa_other numa_pte_updates numa_hint_faults"
    " numa_hint_faults_local numa_pages_migrated cgroup_node_anon",
    "network": "rx_bytes rx_packets rx_errors rx_dropped tx_bytes tx_packets tx_errors tx_dropped tcp_in_segs"
    " tcp_out_segs tcp_retrans tcp_in_errors tcp_timeouts tcp_listen_drops tcp_backlog_drop tcp_ofo_queue"
    " tcp_fast_retrans udp_in_errors udp_rcvbuf_errors",
    "storage": "psi_some psi_full reads writes read_bytes write_bytes read_time write_time io_time in_flight",
    "gpu": "util memory_util memory_used sm_clock memory_clock power power_limit power_default energy temperature"
    " throttle_power throttle_thermal throttle_hw_slowdown throttle_other pcie_tx pcie_rx pcie_width pcie_gen"
    " ecc_corrected nvml_latency value_age",
}


@pytest.mark.parametrize("subsystem", PROMISED)
def test_the_vocabulary_is_there(subsystem: str) -> None:
    assert {f"{subsystem}.{name}" for name in PROMISED[subsystem].split()} <= METRICS.keys()


def test_every_metric_is_complete_and_named_for_its_subsystem() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert name.startswith(f"{metric.subsystem}.")
        assert metric.unit
        assert metric.source
        assert metric.meaning
        assert set(metric.labels) <= {*EntityKind, *QUALIFIERS}


def test_a_metric_for_the_host_and_for_each_node_names_both_sources() -> None:
    hits = METRICS["interconnect.numa_hit"]
    assert hits.labels == ("node",)
    assert "vmstat" in hits.source
    assert "numastat" in hits.source
    assert hits.kind is Kind.COUNTER


def test_sources_have_names_of_their_own() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)


def test_time_in_handlers_and_interrupts_of_a_device_are_told_apart() -> None:
    told = {}
    for labels in ({}, {"cpu": "0"}, {"irq": "24", "cpu": "0"}, {"irq": "24", "node": "1"}, {"irq": "24"}):
        metric = metric_of(Channel("cpu.irq", tuple(labels.items())))
        assert metric is not None
        told[(*labels,)] = metric.unit
    count = "1"
    assert told == {(): "s", ("cpu",): "s", ("irq", "cpu"): count, ("irq", "node"): count, ("irq",): count}
    assert metric_of(Channel("cpu.nothing")) is None
