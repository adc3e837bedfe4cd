"""The remediations of GPUs, of the interconnect and of the network: on plain files, on this kernel, over the stand-in.

They all call ``unveil_setting`` once (see ``test_content``), so here the module is called as Ansible does, without the
two seconds that a playbook takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.nvml_backend import NvmlBackend
from unveil.errors import UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.knowledge.loading import load
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.remediation import planner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.run import Plan

ROOT = Path(__file__).parents[2]
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
        {"network.nic_irqs_movable": ("24", "25"), "network.nic_local_cpus": "2-3"},
        {"proc/irq/24/smp_affinity_list": "0\n", "proc/irq/25/smp_affinity_list": "0\n"},
        {"proc/irq/24/smp_affinity_list": "2-3\n", "proc/irq/25/smp_affinity_list": "2-3\n"},
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
SETTING_OF = {"network.tcp_receive_max": "sysctl:net.ipv4.tcp_rmem"}


@cache
def knowledge() -> KnowledgeBase:
    found = load(ROOT).knowledge
    assert found is not None
    return found


def plan_of(name: str, entity: Entity, facts: dict[str, Any], read: Callable[[str], str | None]) -> Plan:
    remediation = knowledge().remediation(name)
    assert remediation is not None
    table = FactTable(
        facts=tuple(
            Fact(name=fact, entity=HOST if fact in ("network.conntrack_max", *SETTING_OF) else entity, value=value,
                 setting=SETTING_OF.get(fact))
            for fact, value in facts.items()
        )
    )  # fmt: skip
    bindings = {} if entity is HOST else {str(entity.kind): entity.key}
    fingerprint = remediation.remediates[0]
    match = Match(
        window=1, wall_s=1.0, fingerprint=fingerprint, entity=entity, answer=Answer.MATCH, clauses=(), bindings=bindings
    )
    episode = Episode(
        id="e000000000001", fingerprint=fingerprint, revision="1", entity=entity, state=EpisodeState.FIRING,
        started_s=0.0, fired_s=1.0, last_s=1.0, cleared_s=None, windows=1, last=match,
    )  # fmt: skip
    return planner.plan(remediation, episode, facts=table, site={}, read=read, baseline=lambda *_: None, now_s=1.0)


def asked(plan: Plan) -> list[dict[str, str]]:
    """Return what the playbook hands to the module."""
    return [{"address": each.address, "value": each.after} for each in plan.changes if each.after is not None]


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
    module: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    root = tmp_path / "host"
    for file, text in before.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    host, was = Settings(root), content(root)
    plan = plan_of(name, entity, facts, host.peek)
    wanted, saved = asked(plan), snapshot.take(plan, host.peek)

    assert module("unveil_setting", check=True, settings=wanted, root=str(root))["changed"] is True
    assert content(root) == was, "check mode writes nothing"
    assert module("unveil_setting", settings=wanted, root=str(root))["changed"] is True
    assert content(root) == {file: text.encode() for file, text in after.items()}
    assert module("unveil_setting", settings=wanted, root=str(root))["changed"] is False
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
    "network.nic_rx_ring_max": 4096.0,
    "network.nic_tx_queue_names": ("tx-0",),
    "network.nic_xps_masks": ("3",),
}


@pytest.mark.parametrize("name", FOR_NICS)
@pytest.mark.parametrize("nic", HOSTILE)
def test_a_hostile_name_of_a_nic_makes_no_plan(name: str, nic: str) -> None:
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
        ("spread_nic_irqs", "network.nic_local_cpus", "0-1; id"),
        ("raise_rx_ring", "network.nic_rx_ring_max", 1e9),
    ],
)
def test_a_hostile_fact_makes_no_plan(name: str, fact: str, value: object) -> None:
    assert plan_of(name, NIC, GOOD, lambda _: "1").changes
    with pytest.raises(UnveilError):
        plan_of(name, NIC, {**GOOD, fact: value}, lambda _: "1")


def test_the_ring_is_never_asked_for_more_than_it_can_be() -> None:
    for most, wanted in ((1024.0, "1024"), (8192.0, "4096")):
        plan = plan_of("raise_rx_ring", NIC, {"network.nic_rx_ring_max": most}, lambda _: "512")
        assert {each.address: each.after for each in plan.changes}["ethtool:eth0/ring/rx"] == wanted


# --- this kernel ------------------------------------------------------------------------------------------------------

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
    module: Callable[..., dict[str, Any]],
    namespace: str,
) -> None:
    def peek() -> dict[str, str]:
        return within(namespace, _PEEK, sorted(texts))

    was = peek()
    assert was == {address: before for address, (before, _) in texts.items()}
    plan = plan_of(name, entity, facts, lambda address: within(namespace, _PEEK, [address])[address])
    wanted = asked(plan)
    assert [each["address"] for each in wanted] == list(texts)
    saved = {each.address: each.before for each in plan.changes if each.before is not None}

    assert module("unveil_setting", check=True, within=namespace, settings=wanted)["changed"] is True
    assert peek() == was, "check mode writes nothing"
    assert module("unveil_setting", within=namespace, settings=wanted)["changed"] is True
    now = peek()
    assert now == {address: after for address, (_, after) in texts.items()}
    assert module("unveil_setting", within=namespace, settings=wanted)["changed"] is False
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
def test_settings_of_the_whole_kernel_are_applied_and_undone(name: str, module: Callable[..., dict[str, Any]]) -> None:
    host, texts = Settings(), KERNEL_WIDE[name]
    with set_before(host, texts):
        plan = plan_of(name, HOST, {}, host.peek)
        wanted, saved = asked(plan), snapshot.take(plan, host.peek)
        assert module("unveil_setting", check=True, settings=wanted)["changed"] is True
        assert {address: host.peek(address) for address in texts} == {at: before for at, (before, _) in texts.items()}
        assert module("unveil_setting", settings=wanted)["changed"] is True
        assert {address: host.peek(address) for address in texts} == {at: after for at, (_, after) in texts.items()}
        assert module("unveil_setting", settings=wanted)["changed"] is False
        undone = host.restore(saved, snapshot.written(plan, saved, host.peek))
        assert all(each.outcome is Outcome.RESTORED for each in undone)
        assert {address: host.peek(address) for address in texts} == {at: before for at, (before, _) in texts.items()}


# --- GPUs, over the stand-in for the driver ---------------------------------------------------------------------------


@pytest.mark.gcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "facts", "keys", "before", "after"),
    [
        (
            "reset_gpu_clocks",
            {"gpu.applications_clocks_default": "2619,1980"},
            {"applications_memory": 2619, "applications_sm": 1410},
            "2619,1410",
            "2619,1980",
        ),
        ("turn_on_gpu_persistence", {}, {"persistence_mode": 0}, "off", "on"),
    ],
)
def test_a_gpu_is_set_and_put_back(
    name: str,
    facts: dict[str, Any],
    keys: dict[str, int],
    before: str,
    after: str,
    module: Callable[..., dict[str, Any]],
    nvml: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml.state.set_gpu(0, **keys)
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", nvml.env["UNVEIL_NVML_LIBRARY"])
    gpu, host = Entity(EntityKind.GPU, nvml.uuid(0)), Settings(backends={"nvml": NvmlBackend()})
    plan = plan_of(name, gpu, facts, host.peek)
    ((address, was),) = [(each.address, each.before) for each in plan.changes if each.after is not None]
    wanted, saved = asked(plan), snapshot.take(plan, host.peek)
    assert was == before
    assert module("unveil_setting", check=True, settings=wanted)["changed"] is True
    assert host.read(address) == before
    assert module("unveil_setting", settings=wanted)["changed"] is True
    assert host.read(address) == after
    assert module("unveil_setting", settings=wanted)["changed"] is False
    undone = host.restore(saved, snapshot.written(plan, saved, host.peek))
    assert all(each.outcome is Outcome.RESTORED for each in undone)
    assert host.read(address) == before
