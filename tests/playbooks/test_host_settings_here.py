"""Fixes that are settings of the host or of a cgroup, on this machine's own kernel, one by one; all is put back."""

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
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.remediation import lifecycle, planner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.records.run import Plan

CPU, THP = "sys/devices/system/cpu", "sys/kernel/mm/transparent_hugepage"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
OF_DISK = frozenset({"raise_read_ahead", "lengthen_request_queue", "pass_requests_on"})

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
    name: str,
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
    kernel: Settings,
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
    plan = plan_of(name, entity, table, kernel.peek)
    assert plan.changes
    saved = snapshot.take(plan, kernel.peek)
    ill = {change.address: kernel.read(change.address) for change in plan.changes}

    assert module("unveil_setting", settings=wanted(plan), check=True)["changed"] is True
    assert {address: kernel.read(address) for address in ill} == ill, "check mode writes nothing"
    assert module("unveil_setting", settings=wanted(plan))["changed"] is True
    assert snapshot.missed(plan, kernel.peek) == ()
    assert module("unveil_setting", settings=wanted(plan))["changed"] is False
    assert planner.needs_change(plan_of(name, entity, read_facts(HostRoot("/")), kernel.peek)) is False

    restored = kernel.restore(saved, snapshot.written(plan, saved, kernel.peek))
    assert {each.outcome for each in restored} == {Outcome.RESTORED}
    assert {address: kernel.read(address) for address in ill} == ill, "byte for byte"
    assert lifecycle.new_run("r000000000001", plan, "uid:0", 1.0).plan == plan


@pytest.mark.root
@pytest.mark.slow
def test_a_cgroup_of_this_kernel_gets_more_and_gives_it_back(
    plan_of: Callable[..., Plan], wanted: Callable[..., list[dict[str, str]]], module: Callable[..., dict[str, Any]]
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
            plan = plan_of(name, group, table, host.peek)
            saved = snapshot.take(plan, host.peek)
            assert module("unveil_setting", settings=wanted(plan))["changed"] is True
            assert path.read_text().strip() == now
            assert module("unveil_setting", settings=wanted(plan))["changed"] is False
            restored = host.restore(saved, snapshot.written(plan, saved, host.peek))
            assert {each.outcome for each in restored} == {Outcome.RESTORED}
            assert path.read_bytes() == before
    finally:
        for folder in made:
            folder.rmdir()


@pytest.mark.root
@pytest.mark.slow
def test_the_interrupts_of_a_nic_of_this_kernel_are_moved_and_put_back(
    plan_of: Callable[..., Plan], wanted: Callable[..., list[dict[str, str]]], module: Callable[..., dict[str, Any]]
) -> None:
    host, own = Settings("/"), read_facts(HostRoot("/")).facts
    found = {fact.entity: fact.value for fact in own if fact.name == "network.nic_irqs_movable" and fact.value}
    if not found or (os.cpu_count() or 1) < 2:
        pytest.skip("this machine has no NIC whose interrupts it lets be moved, or nowhere to move them")
    nic, irqs = found.popitem()
    assert isinstance(irqs, tuple)
    before = {f"irq:{irq}/smp_affinity_list": host.read(f"irq:{irq}/smp_affinity_list").strip() for irq in irqs}
    # A machine of one node says of all CPUs that they are near: here the first is, and the interrupts are away from it.
    near = {"network.nic_irqs_movable": irqs, "network.nic_local_cpus": "0"}
    try:
        for address in before:
            host.write(address, "1")
        plan = plan_of("pin_nic_irqs_local", nic, near, host.peek)
        assert {change.address for change in plan.changes} == set(before)
        saved = snapshot.take(plan, host.peek)
        ill = {address: host.read(address) for address in before}

        assert module("unveil_setting", settings=wanted(plan), check=True)["changed"] is True
        assert {address: host.read(address) for address in ill} == ill, "check mode writes nothing"
        assert module("unveil_setting", settings=wanted(plan))["changed"] is True
        assert {host.read(address).strip() for address in before} == {"0"}
        assert module("unveil_setting", settings=wanted(plan))["changed"] is False

        restored = host.restore(saved, snapshot.written(plan, saved, host.peek))
        assert {each.outcome for each in restored} == {Outcome.RESTORED}
        assert {address: host.read(address) for address in ill} == ill, "byte for byte"
    finally:
        for address, text in before.items():
            host.write(address, text)
