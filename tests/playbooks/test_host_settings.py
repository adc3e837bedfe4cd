"""Fixes that are settings of the host or of a cgroup: planned, tried, applied, applied again and undone.

On a tree that stands for a host all of them are applied at once, so that the module starts three times and not sixty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

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


def test_all_are_tried_applied_applied_again_and_undone_to_the_byte(
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
    tree: Path,
) -> None:
    host, before = Settings(tree), content(tree)
    plans = [plan_of(name, entity_of(name), facts(), host.peek) for name in FILES]
    assert content(tree) == before, "planning changes nothing"
    saved = [snapshot.take(plan, host.peek) for plan in plans]

    tried = module("unveil_setting", settings=wanted(*plans), root=str(tree), check=True)
    assert tried["changed"] is True
    assert content(tree) == before, "check mode writes nothing"

    assert module("unveil_setting", settings=wanted(*plans), root=str(tree))["changed"] is True
    after = {path: f"{now}\n" for files in FILES.values() for path, (_, now) in files.items()}
    assert content(tree) == {**before, **after}, "each as planned, and nothing else"
    assert [plan.remediation for plan in plans if snapshot.missed(plan, host.peek)] == []

    assert module("unveil_setting", settings=wanted(*plans), root=str(tree))["changed"] is False

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
        plan_of(name, entity, facts({(fact, entity): (value, setting)}), Settings(tree).peek)


def test_what_a_tenant_calls_itself_reaches_no_setting(plan_of: Callable[..., Plan], tree: Path) -> None:
    for name in sorted(OF_POD):
        plan = plan_of(name, POD, facts(), Settings(tree).peek)
        assert all("lookup" not in f"{change.address} {change.after}" for change in plan.changes)


def test_limits_grow_by_whole_pages_of_any_kernel(plan_of: Callable[..., Plan], tree: Path) -> None:
    for limit in (65536.0, 1000000007.0, 4.0 * GIB - 4096):
        table = facts({("memory.cgroup_limit", POD): (limit, "cgroup:/pod1/memory.max")})
        (change,) = plan_of("raise_memory_limit", POD, table, Settings(tree).peek).changes
        assert int(change.after or 0) % 65536 == 0
        assert 1.18 * limit - 65536 < int(change.after or 0) <= 1.25 * limit
