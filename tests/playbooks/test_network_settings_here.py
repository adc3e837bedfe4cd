"""The remediations of the interconnect and of the network, on this kernel, most of them in a namespace of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.records.run import Plan

NIC, TAP = Entity(EntityKind.NIC, "eth0"), Entity(EntityKind.NIC, "tap0")
_PEEK = """
import json, sys
from unveil.execution.settings import Settings
print(json.dumps({address: Settings("/").peek(address) for address in json.loads(sys.argv[1])}))
"""
_RESTORE = """
import json, sys
from unveil.execution.settings import Settings
print(json.dumps([each.outcome for each in Settings("/").restore(*map(json.loads, sys.argv[1:3]))]))
"""


def within(namespace: str, program: str, *arguments: object) -> Any:
    """Run a program in a network namespace, where sysfs and sysctls are the namespace's own."""
    words = ("ip", "netns", "exec", namespace, sys.executable, "-c", program, *map(json.dumps, arguments))
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout)


@pytest.fixture
def namespace() -> Iterator[str]:
    """Give a network namespace with a veth pair whose offloads are off and a tap with a short queue."""
    if os.geteuid() != 0:
        pytest.skip("it takes root to make a network namespace")
    name = f"unveil-{uuid.uuid4().hex[:8]}"
    subprocess.run(("ip", "netns", "add", name), check=True)
    try:
        for words in (
            "ip link add eth0 numtxqueues 2 numrxqueues 2 type veth peer name far0",
            "ip tuntap add dev tap0 mode tap",
            "ip link set tap0 txqueuelen 100",
            "ip link set eth0 up",
            "ip link set far0 up",
            "ethtool -K eth0 gro off tso off",
            "sysctl -qw net.core.somaxconn=128",
            "sysctl -qw net.ipv4.tcp_rmem=4096\t16384\t65536",
        ):
            subprocess.run(("ip", "netns", "exec", name, *words.split(" ")), check=True, capture_output=True)
        yield name
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=True)


IN_NAMESPACE: list[tuple[str, Entity, dict[str, Any], dict[str, tuple[str, str]]]] = [
    (
        "steer_nic_packets",
        NIC,
        {"network.nic_rx_queue_names": ("rx-0",), "network.nic_local_mask": "1"},
        {"file:/sys/class/net/eth0/queues/rx-0/rps_cpus": ("0", "1")},
    ),
    (
        "steer_transmission",
        NIC,
        {"network.nic_tx_queue_names": ("tx-0", "tx-1"), "network.nic_xps_masks": ("1", "2")},
        {f"file:/sys/class/net/eth0/queues/tx-{queue}/xps_cpus": ("0", f"{queue + 1}") for queue in (0, 1)},
    ),
    (
        "turn_on_offloads",
        NIC,
        {},
        {
            "ethtool:eth0/feature/rx-gro": ("off", "on"),
            "ethtool:eth0/feature/tx-tcp-segmentation": ("off", "on"),
        },
    ),
    ("raise_tx_queue_length", TAP, {}, {"file:/sys/class/net/tap0/tx_queue_len": ("100", "10000")}),
    ("raise_accept_queue", HOST, {}, {"sysctl:net.core.somaxconn": ("128", "4096")}),
    (
        "raise_tcp_receive_buffers",
        HOST,
        {"network.tcp_receive_max": 65536.0},
        {"sysctl:net.ipv4.tcp_rmem": ("4096\t16384\t65536", "4096\t131072\t67108864")},
    ),
]


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("name", "entity", "facts", "texts"), IN_NAMESPACE, ids=[case[0] for case in IN_NAMESPACE])
def test_planned_tried_applied_and_undone_on_this_kernel(
    name: str,
    entity: Entity,
    facts: dict[str, Any],
    texts: dict[str, tuple[str, str]],
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
    namespace: str,
) -> None:
    def peek() -> dict[str, str]:
        return within(namespace, _PEEK, sorted(texts))

    was = peek()
    assert was == {address: before for address, (before, _) in texts.items()}
    plan = plan_of(name, entity, facts, lambda address: within(namespace, _PEEK, [address])[address])
    asked = wanted(plan)
    assert [each["address"] for each in asked] == list(texts)
    saved = {each.address: each.before for each in plan.changes if each.before is not None}

    assert module("unveil_setting", check=True, within=namespace, settings=asked)["changed"] is True
    assert peek() == was, "check mode writes nothing"
    assert module("unveil_setting", within=namespace, settings=asked)["changed"] is True
    now = peek()
    assert now == {address: after for address, (_, after) in texts.items()}
    assert module("unveil_setting", within=namespace, settings=asked)["changed"] is False
    assert set(within(namespace, _RESTORE, saved, {**saved, **now})) == {"restored"}
    assert peek() == was


KERNEL_WIDE = {
    "turn_off_numa_balancing": {"sysctl:kernel.numa_balancing": ("1", "0")},
    "stop_zone_reclaim": {"sysctl:vm.zone_reclaim_mode": ("1", "0")},
    "raise_input_queue": {"sysctl:net.core.netdev_max_backlog": ("1000", "16384")},
    "raise_softirq_budget": {"sysctl:net.core.netdev_budget": ("300", "600")},
    "raise_socket_buffers": {
        "sysctl:net.core.rmem_max": ("212992", "16777216"),
        "sysctl:net.core.rmem_default": ("212992", "1048576"),
    },
}


@contextmanager
def set_before(host: Settings, texts: dict[str, tuple[str, str]]) -> Iterator[None]:
    """Set what the fault would have left, and put back what was there whatever happens."""
    was = {address: host.peek(address) for address in texts}
    if None in was.values():
        pytest.skip(f"this kernel has no {next(address for address, text in was.items() if text is None)}")
    try:
        for address, (before, _) in texts.items():
            host.write(address, before)
        yield
    finally:
        for address, text in was.items():
            host.write(address, str(text))


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNEL_WIDE)
def test_settings_of_the_whole_kernel_are_applied_and_undone(
    name: str,
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
) -> None:
    host, texts = Settings(), KERNEL_WIDE[name]
    with set_before(host, texts):
        plan = plan_of(name, HOST, {}, host.peek)
        asked, saved = wanted(plan), snapshot.take(plan, host.peek)
        assert module("unveil_setting", check=True, settings=asked)["changed"] is True
        assert {address: host.peek(address) for address in texts} == {at: before for at, (before, _) in texts.items()}
        assert module("unveil_setting", settings=asked)["changed"] is True
        assert {address: host.peek(address) for address in texts} == {at: after for at, (_, after) in texts.items()}
        assert module("unveil_setting", settings=asked)["changed"] is False
        undone = host.restore(saved, snapshot.written(plan, saved, host.peek))
        assert all(each.outcome is Outcome.RESTORED for each in undone)
        assert {address: host.peek(address) for address in texts} == {at: before for at, (before, _) in texts.items()}
