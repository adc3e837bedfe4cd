"""The remediations of the interconnect and of the network, on plain files; hostile names and facts make no plan.

They all call ``unveil_setting`` once (see ``test_content``), so here the module is called as Ansible does, without the
two seconds that a playbook takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.records.run import Plan

NIC, TAP = Entity(EntityKind.NIC, "eth0"), Entity(EntityKind.NIC, "tap0")

# remediation, entity, facts, files before, files after
ON_FILES: list[tuple[str, Entity, dict[str, Any], dict[str, str], dict[str, str]]] = [
    (
        "turn_off_numa_balancing",
        HOST,
        {},
        {"proc/sys/kernel/numa_balancing": "1\n"},
        {"proc/sys/kernel/numa_balancing": "0\n"},
    ),
    ("stop_zone_reclaim", HOST, {}, {"proc/sys/vm/zone_reclaim_mode": "1\n"}, {"proc/sys/vm/zone_reclaim_mode": "0\n"}),
    (
        "spread_nic_irqs",
        NIC,
        {"network.nic_irqs_movable": ("24", "25"), "network.nic_irq_places": ("2", "3")},
        {"proc/irq/24/smp_affinity_list": "0\n", "proc/irq/25/smp_affinity_list": "0\n"},
        {"proc/irq/24/smp_affinity_list": "2\n", "proc/irq/25/smp_affinity_list": "3\n"},
    ),
    (
        "move_irqs_off_pinned_cpus",
        Entity(EntityKind.CGROUP, "/job"),
        {"network.cgroup_irqs": ("24", "25"), "network.cgroup_irq_places": ("0", "1")},
        {"proc/irq/24/smp_affinity_list": "6\n", "proc/irq/25/smp_affinity_list": "6-7\n"},
        {"proc/irq/24/smp_affinity_list": "0\n", "proc/irq/25/smp_affinity_list": "1\n"},
    ),
    (
        "steer_nic_packets",
        NIC,
        {"network.nic_rx_queue_names": ("rx-0", "rx-1"), "network.nic_local_mask": "f0"},
        {f"sys/class/net/eth0/queues/rx-{queue}/rps_cpus": "00\n" for queue in (0, 1)},
        {f"sys/class/net/eth0/queues/rx-{queue}/rps_cpus": "f0\n" for queue in (0, 1)},
    ),
    (
        "steer_transmission",
        NIC,
        {"network.nic_tx_queue_names": ("tx-0", "tx-1"), "network.nic_xps_masks": ("50", "a0")},
        {f"sys/class/net/eth0/queues/tx-{queue}/xps_cpus": "00\n" for queue in (0, 1)},
        {
            "sys/class/net/eth0/queues/tx-0/xps_cpus": "50\n",
            "sys/class/net/eth0/queues/tx-1/xps_cpus": "a0\n",
        },
    ),
    (
        "moderate_nic_interrupts",
        NIC,
        {},
        {"ethtool/eth0/coalesce/rx-usecs": "0\n"},
        {"ethtool/eth0/coalesce/rx-usecs": "16\n"},
    ),
    (
        "keep_nic_irqs_from_irqbalance",
        NIC,
        {"network.nic_irqs_movable": ("24",), "network.nic_local_cpus": "2-3"},
        {"irqbalance/24/banned": "no\n", "proc/irq/24/smp_affinity_list": "0\n"},
        {"irqbalance/24/banned": "yes\n", "proc/irq/24/smp_affinity_list": "2-3\n"},
    ),
    (
        "raise_input_queue",
        HOST,
        {},
        {"proc/sys/net/core/netdev_max_backlog": "1000\n"},
        {"proc/sys/net/core/netdev_max_backlog": "16384\n"},
    ),
    (
        "raise_softirq_budget",
        HOST,
        {},
        {"proc/sys/net/core/netdev_budget": "300\n"},
        {"proc/sys/net/core/netdev_budget": "600\n"},
    ),
    (
        "raise_accept_queue",
        HOST,
        {},
        {"proc/sys/net/core/somaxconn": "128\n"},
        {"proc/sys/net/core/somaxconn": "4096\n"},
    ),
    (
        "raise_conntrack_table",
        HOST,
        {"network.conntrack_max": 262144.0},
        {"proc/sys/net/netfilter/nf_conntrack_max": "262144\n"},
        {"proc/sys/net/netfilter/nf_conntrack_max": "524288\n"},
    ),
    (
        "raise_tcp_receive_buffers",
        HOST,
        {"network.tcp_receive_max": 6291456.0},
        {"proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n"},
        {"proc/sys/net/ipv4/tcp_rmem": "4096 131072 67108864\n"},
    ),
    (
        "raise_tx_queue_length",
        TAP,
        {},
        {"sys/class/net/tap0/tx_queue_len": "1000\n"},
        {"sys/class/net/tap0/tx_queue_len": "10000\n"},
    ),
]


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "entity", "facts", "before", "after"), ON_FILES, ids=[case[0] for case in ON_FILES])
def test_planned_tried_applied_and_undone_on_plain_files(
    name: str,
    entity: Entity,
    facts: dict[str, Any],
    before: dict[str, str],
    after: dict[str, str],
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    root = tmp_path / "host"
    for file, text in before.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    host, was = Settings(root), content(root)
    plan = plan_of(name, entity, facts, host.peek)
    asked, saved = wanted(plan), snapshot.take(plan, host.peek)

    assert module("unveil_setting", check=True, settings=asked, root=str(root))["changed"] is True
    assert content(root) == was, "check mode writes nothing"
    assert module("unveil_setting", settings=asked, root=str(root))["changed"] is True
    assert content(root) == {file: text.encode() for file, text in after.items()}
    assert module("unveil_setting", settings=asked, root=str(root))["changed"] is False
    assert all(
        each.outcome is Outcome.RESTORED for each in host.restore(saved, snapshot.written(plan, saved, host.peek))
    )
    assert content(root) == was, "byte for byte"


HOSTILE = (
    "../../proc/sys/kernel/panic",
    "eth0/../../x",
    "eth0; reboot",
    "{{ lookup('pipe','id') }}",
    "a b",
    "",
    "x" * 99,
)
FOR_NICS = (
    "steer_nic_packets", "steer_transmission", "turn_on_offloads", "moderate_nic_interrupts", "raise_rx_ring",
    "raise_tx_queue_length", "spread_nic_irqs",
)  # fmt: skip
GOOD: dict[str, Any] = {
    "network.nic_rx_queue_names": ("rx-0",),
    "network.nic_local_mask": "3",
    "network.nic_local_cpus": "0-1",
    "network.nic_irqs_movable": ("24",),
    "network.nic_irq_places": ("0",),
    "network.nic_rx_ring_max": 4096.0,
    "network.nic_tx_queue_names": ("tx-0",),
    "network.nic_xps_masks": ("3",),
}


@pytest.mark.parametrize("name", FOR_NICS)
@pytest.mark.parametrize("nic", HOSTILE)
def test_a_hostile_name_of_a_nic_makes_no_plan(name: str, nic: str, plan_of: Callable[..., Plan]) -> None:
    with pytest.raises(UnveilError):
        plan_of(name, Entity(EntityKind.NIC, nic), GOOD, lambda _: "1")


@pytest.mark.parametrize(
    ("name", "fact", "value"),
    [
        ("steer_nic_packets", "network.nic_rx_queue_names", ("rx-0", "../tx-0")),
        ("steer_nic_packets", "network.nic_local_mask", "f\n"),
        ("steer_transmission", "network.nic_tx_queue_names", ("tx-0", "tx-1")),  # more queues than masks
        ("steer_transmission", "network.nic_xps_masks", ("3; id",)),
        ("keep_nic_irqs_from_irqbalance", "network.nic_irqs_movable", ("24/../25",)),
        ("spread_nic_irqs", "network.nic_irqs_movable", ("24", "0/../1")),
        ("spread_nic_irqs", "network.nic_irqs_movable", ("24", "25")),  # more interrupts than places
        ("spread_nic_irqs", "network.nic_irq_places", ("0; id",)),
        ("raise_rx_ring", "network.nic_rx_ring_max", 1e9),
    ],
)
def test_a_hostile_fact_makes_no_plan(name: str, fact: str, value: object, plan_of: Callable[..., Plan]) -> None:
    assert plan_of(name, NIC, GOOD, lambda _: "1").changes
    with pytest.raises(UnveilError):
        plan_of(name, NIC, {**GOOD, fact: value}, lambda _: "1")


def test_the_ring_is_never_asked_for_more_than_it_can_be(plan_of: Callable[..., Plan]) -> None:
    for most, asked in ((1024.0, "1024"), (8192.0, "4096")):
        plan = plan_of("raise_rx_ring", NIC, {"network.nic_rx_ring_max": most}, lambda _: "512")
        assert {each.address: each.after for each in plan.changes}["ethtool:eth0/ring/rx"] == asked
