"""What the CPUs' own counters tell of how well they work, and what only drivers of NICs count."""

from __future__ import annotations

from unveil.features.families import counters, plain, ratio
from unveil.features.feature import Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_RATE = (Stat.RATE,)

PERF_EVENTS: tuple[Feature, ...] = (
    ratio(
        "cpu.instructions_per_cycle.rate",
        "instructions per cycle of all CPUs",
        counters("cpu", "instructions"),
        counters("cpu", "cycles"),
        unit="1",
        trouble=Trouble.DOWN,
        log=False,
        detect=False,
    ),
    ratio(
        "cpu.branch_miss_share.rate",
        "share of branches that were predicted wrongly",
        counters("cpu", "branch_misses"),
        counters("cpu", "branches"),
        detect=False,
    ),
    ratio(
        "cpu.cache_miss_share.rate",
        "share of accesses that the last cache did not have",
        counters("cpu", "cache_misses"),
        counters("cpu", "cache_references"),
        detect=False,
    ),
    ratio(
        "memory.tlb_miss_share.rate",
        "share of loads that the data TLB did not have",
        counters("memory", "tlb_misses"),
        counters("memory", "tlb_loads"),
        detect=False,
    ),
    ratio(
        "memory.tlb_misses_per_instruction.rate",
        "loads that the data TLB did not have, by instruction",
        counters("memory", "tlb_misses"),
        counters("cpu", "instructions"),
        unit="1",
        detect=False,
    ),
    ratio(
        "interconnect.node_load_miss_share.rate",
        "share of loads from memory that went to another node",
        counters("interconnect", "node_load_misses"),
        counters("interconnect", "node_loads"),
        detect=False,
    ),
    *plain(
        "cpu",
        _RATE,
        "1/s",
        {
            "cycles": "cycles of all CPUs while not halted",
            "migrations": "tasks moved to another CPU",
            "alignment_faults": "accesses that the kernel had to align",
            "emulation_faults": "instructions that the kernel had to emulate",
        },
        detect=False,
    ),
)

NIC_DRIVER: tuple[Feature, ...] = plain(
    "network",
    _RATE,
    "1/s",
    {
        "driver_no_buffer": "packets that the NIC dropped for want of a buffer",
        "driver_alloc_failed": "buffers that the driver did not get",
        "driver_tx_stopped": "times a queue for sending was stopped",
        "driver_pause_rx": "pause frames received",
        "driver_pause_tx": "pause frames sent",
        "driver_link_errors": "packets damaged on the link",
        "driver_ecn_marked": "packets that a switch marked as in a queue",
        "driver_allowance_exceeded": "packets over the cloud's limit",
    },
    over=(EntityKind.NIC,),
    each=EntityKind.NIC,
    detect=False,
)
