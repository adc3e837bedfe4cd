"""Fixes that are settings of the host or of a cgroup: planned, tried, applied, applied again and undone.

On a tree that stands for a host all of them are applied at once, so that the module starts three times and not sixty;
those that this machine's kernel has are applied to it, too, one by one, and everything is put back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot
from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.remediation import lifecycle, planner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from unveil.records.fact import FactValue
    from unveil.records.run import Plan

POD, DISK, NVME = (
    Entity(EntityKind.CGROUP, "/pod1"),
    Entity(EntityKind.DISK, "sda"),
    Entity(EntityKind.DISK, "nvme0n1"),
)
CPU, THP, VM = "sys/devices/system/cpu", "sys/kernel/mm/transparent_hugepage", "proc/sys/vm"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
GIB = 1 << 30

# what the settings read before, and after the fix
FILES: dict[str, dict[str, tuple[str, str]]] = {
    "raise_cpu_weight": {"sys/fs/cgroup/pod1/cpu.weight": ("100", "400")},
    "allow_quota_burst": {"sys/fs/cgroup/pod1/cpu.max.burst": ("0", "50000")},
    "prefer_performance": {
        f"{CPU}/cpu{cpu}/cpufreq/energy_performance_preference": (was, "performance")
        for cpu, was in enumerate(("balance_power", "power"))
    },
    "set_performance_governor": {
        f"{CPU}/cpu0/cpufreq/scaling_governor": ("powersave", "performance"),
        f"{CPU}/cpu1/cpufreq/scaling_governor": ("conservative", "performance"),
    },
    "limit_sleep_latency": {
        f"{CPU}/cpu0/power/pm_qos_resume_latency_us": ("0", "20"),
        f"{CPU}/cpu1/power/pm_qos_resume_latency_us": ("n/a", "20"),
    },
    "use_fast_clocksource": {CLOCK: ("hpet", "tsc")},
    "compact_in_background": {f"{VM}/compaction_proactiveness": ("20", "60")},
    "defer_huge_page_compaction": {
        f"{THP}/defrag": (
            "[always] defer defer+madvise madvise never",
            "always defer [defer+madvise] madvise never",
        )
    },
    "huge_pages_on_request": {f"{THP}/enabled": ("[always] madvise never", "always [madvise] never")},
    "wake_khugepaged": {
        f"{THP}/khugepaged/scan_sleep_millisecs": ("60000", "1000"),
        f"{THP}/khugepaged/pages_to_scan": ("4096", "16384"),
        f"{THP}/khugepaged/defrag": ("0", "1"),
    },
    "release_huge_page_pool": {f"{VM}/nr_hugepages": ("30000", "0")},
    "lower_swappiness": {f"{VM}/swappiness": ("60", "10")},
    "widen_watermarks": {f"{VM}/watermark_scale_factor": ("10", "100")},
    "raise_memory_high": {"sys/fs/cgroup/pod1/memory.high": (str(4 * GIB), str(5 * GIB))},
    "raise_memory_limit": {"sys/fs/cgroup/pod1/memory.max": (str(8 * GIB), str(10 * GIB))},
    "start_writeback_sooner": {f"{VM}/dirty_background_ratio": ("20", "5")},
    "raise_read_ahead": {"sys/block/sda/queue/read_ahead_kb": ("0", "128")},
    "raise_nfs_read_ahead": {
        "sys/class/bdi/0:45/read_ahead_kb": ("128", "15360"),
        "sys/class/bdi/0:46/read_ahead_kb": ("15360", "15360"),
    },
    "pass_requests_on": {
        "sys/block/nvme0n1/queue/scheduler": ("none mq-deadline kyber [bfq]", "[none] mq-deadline kyber bfq")
    },
    "lengthen_request_queue": {"sys/block/sda/queue/nr_requests": ("4", "128")},
    "raise_io_limit": {
        "sys/fs/cgroup/pod1/io.max": (
            "254:0 rbps=1048576 wbps=max riops=max wiops=200",
            "254:0 rbps=4194304 wbps=max riops=max wiops=800",
        )
    },
}
OF_POD = {
    "raise_cpu_weight", "allow_quota_burst", "raise_memory_high", "raise_memory_limit", "raise_io_limit",
}  # fmt: skip
OF_DISK = {"raise_read_ahead": DISK, "lengthen_request_queue": DISK, "pass_requests_on": NVME}


def entity_of(name: str) -> Entity:
    return POD if name in OF_POD else OF_DISK.get(name, HOST)


def facts(changes: Mapping[tuple[str, Entity], tuple[FactValue, str | None]] | None = None) -> FactTable:
    found: dict[tuple[str, Entity], tuple[FactValue, str | None]] = {
        ("cpu.cgroup_weight", POD): (100.0, "cgroup:/pod1/cpu.weight"),
        ("cpu.cgroup_burst", POD): (0.0, "cgroup:/pod1/cpu.max.burst"),
        ("cpu.cgroup_quota", POD): (0.5, "cgroup:/pod1/cpu.max"),
        ("cpu.cgroup_period", POD): (100000.0, "cgroup:/pod1/cpu.max"),
        ("cpu.cgroup_name", POD): ("web\x1b[2J {{ lookup('pipe', 'id') }}; reboot", None),
        ("cpu.steered", HOST): (("0", "1"), None),
        ("cpu.sleep_steered", HOST): (("0", "1"), None),
        ("memory.cgroup_high", POD): (4.0 * GIB, "cgroup:/pod1/memory.high"),
        ("memory.cgroup_limit", POD): (8.0 * GIB, "cgroup:/pod1/memory.max"),
        ("storage.cgroup_io_device", POD): ("254:0", "cgroup:/pod1/io.max"),
        ("storage.cgroup_read_limit", POD): (1048576.0, "cgroup:/pod1/io.max"),
        ("storage.cgroup_writes_limit", POD): (200.0, "cgroup:/pod1/io.max"),
        ("storage.read_ahead", DISK): (0.0, "file:/sys/block/sda/queue/read_ahead_kb"),
        ("storage.nr_requests", DISK): (4.0, "file:/sys/block/sda/queue/nr_requests"),
        ("storage.scheduler", NVME): ("bfq", "file:/sys/block/nvme0n1/queue/scheduler"),
        ("storage.nfs_mounts", HOST): (("0:45", "0:46"), None),
        **(changes or {}),
    }
    return FactTable(
        facts=tuple(
            Fact(name=name, entity=entity, value=value, setting=setting)
            for (name, entity), (value, setting) in found.items()
        )
    )


@pytest.fixture(scope="module")
def plan_of() -> Callable[..., Plan]:
    """Plan a remediation for an episode of the fingerprint that it is made for."""
    knowledge = load(shipped_root()).knowledge
    assert knowledge is not None

    def plan(name: str, entity: Entity, table: FactTable, host: Settings) -> Plan:
        remediation = next(each for each in knowledge.remediations if each.name == name)
        fingerprint = remediation.remediates[0]
        match = Match(
            window=1,
            wall_s=1.0,
            fingerprint=fingerprint,
            entity=entity,
            answer=Answer.MATCH,
            clauses=(),
            bindings={} if entity is HOST else {str(entity.kind): entity.key},
        )
        episode = Episode(
            id="e000000000001",
            fingerprint=fingerprint,
            revision="1",
            entity=entity,
            state=EpisodeState.FIRING,
            started_s=0.0,
            fired_s=1.0,
            last_s=1.0,
            cleared_s=None,
            windows=1,
            last=match,
        )
        return planner.plan(
            remediation, episode, facts=table, site={}, read=host.peek, baseline=lambda *_: None, now_s=1.0
        )

    return plan


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "host"
    extra = {
        "sys/fs/cgroup/cgroup.controllers": "cpu memory io",
        "sys/fs/cgroup/pod1/cgroup.procs": "",
        f"{VM}/dirty_background_bytes": "0",
    }
    before = {path: was for files in FILES.values() for path, (was, _) in files.items()}
    for path, text in {**extra, **before}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n")
    return root


def content(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def wanted(plans: list[Plan]) -> list[dict[str, str]]:
    return [
        {"address": change.address, "value": change.after}
        for plan in plans
        for change in plan.changes
        if change.after is not None
    ]


def test_all_are_tried_applied_applied_again_and_undone_to_the_byte(
    plan_of: Callable[..., Plan], module: Callable[..., dict[str, Any]], tree: Path
) -> None:
    host, before = Settings(tree), content(tree)
    plans = [plan_of(name, entity_of(name), facts(), host) for name in FILES]
    assert content(tree) == before, "planning changes nothing"
    saved = [snapshot.take(plan, host.peek) for plan in plans]

    tried = module("unveil_setting", settings=wanted(plans), root=str(tree), check=True)
    assert tried["changed"] is True
    assert content(tree) == before, "check mode writes nothing"

    assert module("unveil_setting", settings=wanted(plans), root=str(tree))["changed"] is True
    after = {path: f"{now}\n" for files in FILES.values() for path, (_, now) in files.items()}
    assert content(tree) == {**before, **after}, "each as planned, and nothing else"
    assert [plan.remediation for plan in plans if snapshot.missed(plan, host.peek)] == []

    assert module("unveil_setting", settings=wanted(plans), root=str(tree))["changed"] is False

    for plan, values in zip(plans, saved, strict=True):
        restored = host.restore(values, snapshot.written(plan, values, host.peek))
        assert {each.outcome for each in restored} == {Outcome.RESTORED}, plan.remediation
    assert content(tree) == before, "byte for byte"


@pytest.mark.parametrize(
    ("name", "fact", "entity", "value", "setting"),
    [
        ("raise_cpu_weight", "cpu.cgroup_weight", POD, 100.0, "cgroup:/../etc/cpu.weight"),
        ("raise_cpu_weight", "cpu.cgroup_weight", POD, 100.0, "cgroup:/pod1/cgroup.procs"),
        ("raise_cpu_weight", "cpu.cgroup_weight", POD, 0.0, "cgroup:/pod1/cpu.weight"),
        ("raise_cpu_weight", "cpu.cgroup_weight", POD, 1e9, "cgroup:/pod1/cpu.weight"),
        ("allow_quota_burst", "cpu.cgroup_burst", POD, 0.0, "cgroup:/pod1/cpu.max"),
        ("allow_quota_burst", "cpu.cgroup_period", POD, -1.0, None),
        ("set_performance_governor", "cpu.steered", HOST, ("0", "1/../../cpu1"), None),
        ("set_performance_governor", "cpu.steered", HOST, ("{{ 7 * 7 }}",), None),
        ("set_performance_governor", "cpu.steered", HOST, (), None),
        ("limit_sleep_latency", "cpu.sleep_steered", HOST, ("0\n",), None),
        ("raise_memory_high", "memory.cgroup_high", POD, 4.0 * GIB, "cgroup:/pod1/memory.max"),
        ("raise_memory_limit", "memory.cgroup_limit", POD, 12.0, "cgroup:/pod1/memory.max"),
        ("raise_read_ahead", "storage.read_ahead", DISK, 0.0, "file:/sys/block/../../etc/read_ahead_kb"),
        ("raise_read_ahead", "storage.read_ahead", DISK, 0.0, "file:/sys/block/sda/queue/scheduler"),
        ("pass_requests_on", "storage.scheduler", NVME, "bfq", "file:/sys/block/a;b/queue/scheduler"),
        ("lengthen_request_queue", "storage.nr_requests", DISK, 4.0, "file:/sys/block/sda/queue/nr_requests\n"),
        ("raise_nfs_read_ahead", "storage.nfs_mounts", HOST, ("0:45", "../../etc"), None),
        ("raise_io_limit", "storage.cgroup_io_device", POD, "254:0 wbps=1", "cgroup:/pod1/io.max"),
        ("raise_io_limit", "storage.cgroup_read_limit", POD, -4.0, "cgroup:/pod1/io.max"),
    ],
)
def test_values_that_its_author_did_not_foresee_are_refused(
    plan_of: Callable[..., Plan],
    tree: Path,
    name: str,
    fact: str,
    entity: Entity,
    value: FactValue,
    setting: str | None,
) -> None:
    with pytest.raises(UnveilError):
        plan_of(name, entity, facts({(fact, entity): (value, setting)}), Settings(tree))


def test_what_a_tenant_calls_itself_reaches_no_setting(plan_of: Callable[..., Plan], tree: Path) -> None:
    for name in sorted(OF_POD):
        plan = plan_of(name, POD, facts(), Settings(tree))
        assert all("lookup" not in f"{change.address} {change.after}" for change in plan.changes)


def test_limits_grow_by_whole_pages_of_any_kernel(plan_of: Callable[..., Plan], tree: Path) -> None:
    for limit in (65536.0, 1000000007.0, 4.0 * GIB - 4096):
        table = facts({("memory.cgroup_limit", POD): (limit, "cgroup:/pod1/memory.max")})
        (change,) = plan_of("raise_memory_limit", POD, table, Settings(tree)).changes
        assert int(change.after or 0) % 65536 == 0
        assert 1.18 * limit - 65536 < int(change.after or 0) <= 1.25 * limit


# --- this machine's own kernel ----------------------------------------------------------------------------------------

# what each is made ill with: address below "file:/" or sysctl → what is written before it is cured
ILL: dict[str, dict[str, str]] = {
    "limit_sleep_latency": {f"file:/{CPU}/cpu0/power/pm_qos_resume_latency_us": "0"},
    "use_fast_clocksource": {f"file:/{CLOCK}": "kvm-clock"},
    "compact_in_background": {"sysctl:vm.compaction_proactiveness": "20"},
    "defer_huge_page_compaction": {f"file:/{THP}/defrag": "always"},
    "wake_khugepaged": {
        f"file:/{THP}/khugepaged/scan_sleep_millisecs": "60000",
        f"file:/{THP}/khugepaged/defrag": "0",
    },
    "release_huge_page_pool": {"sysctl:vm.nr_hugepages": "4"},
    "lower_swappiness": {"sysctl:vm.swappiness": "60"},
    "widen_watermarks": {"sysctl:vm.watermark_scale_factor": "10"},
    "start_writeback_sooner": {"sysctl:vm.dirty_background_ratio": "20"},
    "raise_read_ahead": {"file:/sys/block/vda/queue/read_ahead_kb": "0"},
    "pass_requests_on": {"file:/sys/block/vda/queue/scheduler": "bfq"},
    "lengthen_request_queue": {"file:/sys/block/vda/queue/nr_requests": "8"},
}
COUPLED = {"start_writeback_sooner": ("sysctl:vm.dirty_background_bytes",)}


@pytest.fixture
def kernel() -> Iterator[Settings]:
    """Give the settings of this machine; each that a test touches reads afterwards as it did before."""
    host = Settings("/")
    touched = {address for ill in ILL.values() for address in ill} | {
        f"file:/{THP}/khugepaged/pages_to_scan",
        "sysctl:vm.dirty_background_bytes",
        f"file:/{CPU}/cpu1/power/pm_qos_resume_latency_us",
    }
    before = {address: text for address in sorted(touched) if (text := host.peek(address)) is not None}
    yield host
    # Of a ratio and its bytes the one that is 0 follows from the other and cannot be written.
    for address, text in before.items():
        if not host.equal(address, host.read(address), text) and not (text.strip() == "0" and "dirty" in address):
            host.write(address, text.strip() if "[" not in text else text[text.index("[") + 1 : text.index("]")])
    for address, text in before.items():
        assert host.equal(address, host.read(address), text), f"{address} was {text}"


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ILL))
def test_it_is_done_and_undone_on_this_kernel(
    name: str, plan_of: Callable[..., Plan], module: Callable[..., dict[str, Any]], kernel: Settings
) -> None:
    for address, text in ILL[name].items():
        if kernel.peek(address) is None:
            pytest.skip(f"this machine has no {address}")
        try:
            kernel.write(address, text)
        except UnveilError as error:
            pytest.skip(f"this machine does not take {text} for {address}: {error}")
    table = read_facts(HostRoot("/"))
    entity = Entity(EntityKind.DISK, "vda") if name in OF_DISK else HOST
    plan = plan_of(name, entity, table, kernel)
    assert plan.changes
    saved = snapshot.take(plan, kernel.peek)
    ill = {change.address: kernel.read(change.address) for change in plan.changes}

    assert module("unveil_setting", settings=wanted([plan]), check=True)["changed"] is True
    assert {address: kernel.read(address) for address in ill} == ill, "check mode writes nothing"
    assert module("unveil_setting", settings=wanted([plan]))["changed"] is True
    assert snapshot.missed(plan, kernel.peek) == ()
    assert module("unveil_setting", settings=wanted([plan]))["changed"] is False
    assert planner.needs_change(plan_of(name, entity, read_facts(HostRoot("/")), kernel)) is False

    restored = kernel.restore(saved, snapshot.written(plan, saved, kernel.peek))
    assert {each.outcome for each in restored} == {Outcome.RESTORED}
    assert {address: kernel.read(address) for address in ill} == ill, "byte for byte"
    assert lifecycle.new_run("r000000000001", plan, "uid:0", 1.0).plan == plan


@pytest.mark.root
@pytest.mark.slow
def test_a_cgroup_of_this_kernel_gets_more_and_gives_it_back(
    plan_of: Callable[..., Plan], module: Callable[..., dict[str, Any]]
) -> None:
    made = []
    for controller, file in (("cpu", "cpu.shares"), ("memory", "memory.limit_in_bytes"), ("cpu", "cpu.cfs_burst_us")):
        folder = Path("/sys/fs/cgroup") / controller / "unveil_settings_test"
        if not (Path("/sys/fs/cgroup") / controller / "cgroup.procs").exists():
            pytest.skip("this machine has no cgroups of the first version")
        if not folder.exists():
            folder.mkdir()
            made.append(folder)
        assert (folder / file).exists()
    try:
        cpu, memory = (Path("/sys/fs/cgroup") / each / "unveil_settings_test" for each in ("cpu", "memory"))
        (cpu / "cpu.shares").write_text("200")
        (cpu / "cpu.cfs_quota_us").write_text("50000")
        (memory / "memory.limit_in_bytes").write_text(str(256 << 20))
        group, host = Entity(EntityKind.CGROUP, "/unveil_settings_test"), Settings("/")
        table = read_facts(HostRoot("/"), follow=(group.key,))
        for name, path, now in (
            ("raise_cpu_weight", cpu / "cpu.shares", "800"),
            ("raise_memory_limit", memory / "memory.limit_in_bytes", str(320 << 20)),
            ("allow_quota_burst", cpu / "cpu.cfs_burst_us", "50000"),
        ):
            before = path.read_bytes()
            plan = plan_of(name, group, table, host)
            saved = snapshot.take(plan, host.peek)
            assert module("unveil_setting", settings=wanted([plan]))["changed"] is True
            assert path.read_text().strip() == now
            assert module("unveil_setting", settings=wanted([plan]))["changed"] is False
            restored = host.restore(saved, snapshot.written(plan, saved, host.peek))
            assert {each.outcome for each in restored} == {Outcome.RESTORED}
            assert path.read_bytes() == before
    finally:
        for folder in made:
            folder.rmdir()


@pytest.mark.root
@pytest.mark.slow
def test_the_interrupts_of_a_nic_of_this_kernel_are_moved_and_put_back(
    plan_of: Callable[..., Plan], module: Callable[..., dict[str, Any]]
) -> None:
    host, own = Settings("/"), read_facts(HostRoot("/")).facts
    found = {fact.entity: fact.value for fact in own if fact.name == "network.nic_irqs_movable" and fact.value}
    if not found or (os.cpu_count() or 1) < 2:
        pytest.skip("this machine has no NIC whose interrupts it lets be moved, or nowhere to move them")
    nic, irqs = found.popitem()
    assert isinstance(irqs, tuple)
    before = {f"irq:{irq}/smp_affinity_list": host.read(f"irq:{irq}/smp_affinity_list").strip() for irq in irqs}
    # A machine of one node says of all CPUs that they are near: here the first is, and the interrupts are away from it.
    near = facts({("network.nic_irqs_movable", nic): (irqs, None), ("network.nic_local_cpus", nic): ("0", None)})
    try:
        for address in before:
            host.write(address, "1")
        plan = plan_of("pin_nic_irqs_local", nic, near, host)
        assert {change.address for change in plan.changes} == set(before)
        saved = snapshot.take(plan, host.peek)
        ill = {address: host.read(address) for address in before}

        assert module("unveil_setting", settings=wanted([plan]), check=True)["changed"] is True
        assert {address: host.read(address) for address in ill} == ill, "check mode writes nothing"
        assert module("unveil_setting", settings=wanted([plan]))["changed"] is True
        assert {host.read(address).strip() for address in before} == {"0"}
        assert module("unveil_setting", settings=wanted([plan]))["changed"] is False

        restored = host.restore(saved, snapshot.written(plan, saved, host.peek))
        assert {each.outcome for each in restored} == {Outcome.RESTORED}
        assert {address: host.read(address) for address in ill} == ill, "byte for byte"
    finally:
        for address, text in before.items():
            host.write(address, text)
