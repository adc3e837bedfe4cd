"""Virtual machines found from outside, by the names of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.host.facts import machines
from unveil.host.facts.machines import Machines, find_machine, taps

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = "sys/fs/cgroup"


def process(tree, pid: int, threads: Sequence[str], *, started: int = 900, name: str = "qemu-system-x86") -> None:
    """Write a process: its threads are numbered from its own number on."""
    tree.write(f"proc/{pid}/comm", f"{name}\n")
    for number, thread in enumerate(threads, pid):
        tree.write(f"proc/{pid}/task/{number}/comm", f"{thread}\n")
    tree.write(f"proc/{pid}/stat", f"{pid} ({name}) S 1 " + " ".join(["7"] * 17) + f" {started} 5 6\n")


@pytest.mark.parametrize("part", ["", "/libvirt", "/libvirt/emulator", "/emulator"])
def test_a_machine_is_found_wherever_libvirt_put_its_process(tree, part: str) -> None:
    tree.write(f"{BASE}/vm/cgroup.procs", "")
    tree.write(f"{BASE}/vm{part}/cgroup.procs", "4999\n5000\n")
    process(tree, 4999, ["swtpm"], name="swtpm")
    process(tree, 5000, ["qemu-system-x86", "call_rcu", "CPU 1/KVM", "CPU 0/KVM", "IO iothread1", "vhost-5000"])
    found = find_machine(tree.root, f"{BASE}/vm")
    assert found is not None
    assert found.pid == "5000"
    assert [(each.number, each.path) for each in found.vcpus] == [
        ("0", "proc/5000/task/5003"), ("1", "proc/5000/task/5002")
    ]  # fmt: skip
    assert [each.path for each in found.vhosts] == ["proc/5000/task/5005"]
    assert {each.started for each in (*found.vcpus, *found.vhosts)} == {"900"}


def test_what_carries_packets_on_older_kernels_is_a_process_of_the_same_cgroup(tree) -> None:
    tree.write(f"{BASE}/vm/cgroup.procs", "5000\n5100\n5101\n")
    process(tree, 5000, ["qemu-system-x86", "CPU 0/TCG"])
    process(tree, 5100, ["vhost-5000"], name="vhost-5000", started=1000)
    process(tree, 5101, ["vhost-77"], name="vhost-77")
    found = find_machine(tree.root, f"{BASE}/vm")
    assert found is not None
    assert [(each.number, each.path, each.started) for each in found.vhosts] == [("0", "proc/5100", "1000")]


@pytest.mark.parametrize(
    "threads",
    [
        ["qemu-system-x86"] * 3,  # started without names
        ["CPU 0/KVMX", "CPU x/KVM", "CPU 123456/KVM", "XCPU 0/KVM", "CPU 0/KVM\nCPU 1/KVM"],
        [],
    ],
)
def test_without_a_thread_of_the_right_name_there_is_none(tree, threads: list[str]) -> None:
    tree.write(f"{BASE}/vm/cgroup.procs", "5000\nno number\n../1\n")
    process(tree, 5000, threads)
    assert find_machine(tree.root, f"{BASE}/vm") is None
    assert find_machine(tree.root, f"{BASE}/gone") is None


def test_one_thread_that_runs_all_virtual_cpus_is_said_to(tree) -> None:
    tree.write(f"{BASE}/vm/cgroup.procs", "5000\n")
    process(tree, 5000, ["qemu-system-x86", "ALL CPUs/TCG"])
    found = find_machine(tree.root, f"{BASE}/vm")
    assert found is not None
    assert [each.number for each in found.vcpus] == ["all"]


def test_a_crowd_of_processes_and_threads_is_cut_off(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "MOST_PROCESSES", 3)
    monkeypatch.setattr(machines, "MOST_THREADS", 4)
    tree.write(f"{BASE}/vm/cgroup.procs", "".join(f"{pid}\n" for pid in range(5000, 5100, 10)))
    process(tree, 5020, [f"CPU {number}/KVM" for number in range(9)])
    process(tree, 5040, ["CPU 0/KVM"])
    found = find_machine(tree.root, f"{BASE}/vm")
    assert found is not None
    assert len(found.vcpus) == 4


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.binary(max_size=16), stat=st.binary(max_size=60))
def test_names_and_states_of_any_kind_do_no_harm(tree, name: bytes, stat: bytes) -> None:
    for path, data in {"comm": name, "task/5000/comm": name, "stat": stat, "fdinfo/3": name}.items():
        tree.write(f"proc/5000/{path}", "")
        (tree.folder / f"proc/5000/{path}").write_bytes(data)
    tree.write(f"{BASE}/vm/cgroup.procs", "5000\n")
    found = find_machine(tree.root, f"{BASE}/vm")
    assert found is None or found.vcpus
    assert all(len(each) <= 60 for each in taps(tree.root, "5000"))


def test_taps_are_what_its_open_files_say(tree) -> None:
    tree.write("proc/5000/fdinfo/3", "pos:\t0\nflags:\t02104002\nmnt_id:\t9\nino:\t4\niff:\tvnet3\n")
    tree.write("proc/5000/fdinfo/4", "pos:\t0\nflags:\t02\n")
    tree.write("proc/5000/fdinfo/5", "iff:\tvnet1\n")
    tree.write("proc/5000/fdinfo/6", "iff:\ta b\niff:\ta-name-that-is-too-long\n")
    assert taps(tree.root, "5000") == ("vnet1", "vnet3")
    with pytest.raises(FileNotFoundError):
        taps(tree.root, "1")


def test_what_was_found_stands_while_its_process_does_for_a_minute(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    known, folders = Machines(tree.root), [f"{BASE}/cpu/vm", f"{BASE}/memory/vm"]
    assert known.of(folders) is None
    tree.write(f"{BASE}/memory/vm/cgroup.procs", "5000\n")
    process(tree, 5000, ["CPU 0/KVM"])
    found = known.of(folders)
    assert found is not None
    process(tree, 5000, ["CPU 0/KVM", "CPU 1/KVM"])
    assert known.of(folders) is found
    process(tree, 5000, ["CPU 0/KVM", "CPU 1/KVM"], started=901)
    again = known.of(folders)
    assert again is not None
    assert len(again.vcpus) == 2, "another process"
    process(tree, 5000, ["CPU 0/KVM", "CPU 1/KVM", "CPU 2/KVM"], started=901)
    monkeypatch.setattr(machines, "REMEMBERED_S", -1.0)
    assert known.of(folders) != again, "long ago"
    monkeypatch.undo()
    known.forget(but=[])
    tree.write(f"{BASE}/memory/vm/cgroup.procs", "")
    assert known.of(folders) is None
