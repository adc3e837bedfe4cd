"""Facts of virtual machines, looked up once and told until another process takes the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.facts.machine_facts import AT_A_TIME, MachineFacts
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.records.fact import FactTable

BASE = "sys/fs/cgroup"
KEY = "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope"


def process(tree, pid: int, threads: Sequence[str], *, started: int = 900) -> None:
    """Write a process: its threads are numbered from its own number on."""
    tree.write(f"proc/{pid}/comm", "qemu-system-x86\n")
    for number, thread in enumerate(threads, pid):
        tree.write(f"proc/{pid}/task/{number}/comm", f"{thread}\n")
    tree.write(f"proc/{pid}/stat", f"{pid} (qemu) S 1 " + " ".join(["7"] * 17) + f" {started} 5 6\n")


def told(tree, facts: MachineFacts, keys: Sequence[str]) -> FactTable:
    sheet = tree.sheet()
    facts.tell(sheet, find_cgroup_mounts(tree.root), keys)
    return sheet.table()


def test_facts_are_of_the_process_that_is_there_now(tree) -> None:
    tree.write(f"{BASE}/cgroup.controllers", "cpu memory\n")
    tree.write(f"{BASE}{KEY}/cgroup.procs", "5000\n")
    process(tree, 5000, ["CPU 0/KVM", "CPU 1/KVM"])
    tree.write("proc/5000/fdinfo/3", "iff:\tvnet0\n")
    facts, entity = MachineFacts(), Entity(EntityKind.CGROUP, KEY)
    table = told(tree, facts, [KEY, "/system.slice/a.service"])
    assert table.value("cpu.cgroup_vcpus", entity) == 2
    assert table.value("network.cgroup_taps", entity) == ("vnet0",)
    assert len(table.facts) == 2, "nothing is told of what is no machine"
    tree.write("proc/5000/fdinfo/4", "iff:\tvnet9\n")
    assert told(tree, facts, [KEY]).value("network.cgroup_taps", entity) == ("vnet0",), "known already"
    process(tree, 5000, ["CPU 0/KVM", "CPU 1/KVM", "CPU 2/KVM"], started=901)  # the number was given out again
    assert told(tree, facts, [KEY]).value("cpu.cgroup_vcpus", entity) == 3
    tree.write(f"{BASE}{KEY}/cgroup.procs", "")
    tree.write("proc/5000/stat", "")
    absent = told(tree, facts, [KEY]).find("cpu.cgroup_vcpus", entity)
    assert absent is not None
    assert absent.value is None
    assert "debug-threads" in str(absent.reason)


def test_of_many_machines_a_few_are_looked_into_at_a_time_and_each_has_its_turn(tree) -> None:
    tree.write(f"{BASE}/cgroup.controllers", "cpu memory\n")
    keys = [f"/machine.slice/machine-qemu\\x2d{number}\\x2dvm.scope" for number in range(3 * AT_A_TIME)]
    for number, key in enumerate(keys):
        tree.write(f"{BASE}{key}/cgroup.procs", f"{5000 + 10 * number}\n")
        process(tree, 5000 + 10 * number, ["CPU 0/KVM"] if number >= AT_A_TIME else ["no name"])
    facts = MachineFacts()
    for known in (0, AT_A_TIME, 2 * AT_A_TIME, 2 * AT_A_TIME):
        table = told(tree, facts, keys)
        assert sum(fact.value == 1.0 for fact in table.of("cpu.cgroup_vcpus")) == known
