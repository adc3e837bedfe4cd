"""What the host sees of its guests' virtual CPUs."""

from __future__ import annotations

import os

import pytest

from unveil.host.sampler import Sampler
from unveil.host.source import SourceState
from unveil.host.sources import vm_threads
from unveil.host.sources.vm_threads import SOURCE

KEY = "/machine.slice/machine-qemu-1-web.scope"
FOLDER = f"sys/fs/cgroup{KEY}"


def machine(procfs, pid: int, *vcpus: str, key: str = KEY, started: int = 900) -> None:
    """Write a virtual machine whose first virtual CPU is the thread after its process."""
    procfs.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    procfs.write(f"sys/fs/cgroup{key}/cgroup.procs", f"{pid}\n")
    procfs.write(f"proc/{pid}/comm", "qemu-system-x86\n")
    procfs.write(f"proc/{pid}/stat", f"{pid} (qemu) S 1 " + " ".join(["7"] * 17) + f" {started} 5\n")
    names = ["qemu-system-x86", *(f"CPU {number}/KVM" for number in range(len(vcpus))), f"vhost-{pid}"]
    for thread, (name, text) in enumerate(zip(names, ["1 1 1", *vcpus, "500000000 0 9"], strict=True), pid):
        procfs.write(f"proc/{pid}/task/{thread}/comm", f"{name}\n")
        procfs.write(f"proc/{pid}/task/{thread}/schedstat", f"{text}\n")


def test_each_virtual_cpu_tells_how_long_it_ran_and_waited(procfs, look) -> None:
    machine(procfs, 5000, "2000000000 3000000000 40", "1000000 2000000 3")
    procfs.write("proc/stat", "cpu  1 2 3 4 5 6 7 8 250 50\ncpu0 1 2 3 4 5 6 7 8 9 9\nintr 5 4 3\n")
    values, health = look(SOURCE)
    assert health.state is SourceState.OK
    assert values == {
        "cpu.guest": 300 / os.sysconf("SC_CLK_TCK"),
        f"cpu.vcpu_run{{cgroup={KEY},vcpu=0}}": 2.0,
        f"cpu.vcpu_wait{{cgroup={KEY},vcpu=0}}": 3.0,
        f"cpu.vcpu_slices{{cgroup={KEY},vcpu=0}}": 40.0,
        f"cpu.vcpu_run{{cgroup={KEY},vcpu=1}}": 0.001,
        f"cpu.vcpu_wait{{cgroup={KEY},vcpu=1}}": 0.002,
        f"cpu.vcpu_slices{{cgroup={KEY},vcpu=1}}": 3.0,
        f"cpu.vhost_run{{cgroup={KEY},vhost=0}}": 0.5,
        f"cpu.vhost_wait{{cgroup={KEY},vhost=0}}": 0.0,
        f"cpu.vhost_slices{{cgroup={KEY},vhost=0}}": 9.0,
    }


def test_a_host_without_machines_reads_nothing_and_one_whose_threads_have_no_names_is_told_why(procfs, look) -> None:
    procfs.cgroup_v2("/system.slice/a.service")
    values, health = look(SOURCE)
    assert (values, health.state, health.files) == ({}, SourceState.ABSENT, 0)
    machine(procfs, 5000)
    procfs.write("proc/5000/task/5001/comm", "qemu-system-x86\n")
    values, health = look(SOURCE)
    assert (values, health.state) == ({}, SourceState.ABSENT)
    assert "debug-threads=on" in health.reason


@pytest.mark.parametrize("text", ["", "1 2", "1 2 3 4", "a b c", "1 2 3\n1 2 3"])
def test_a_text_of_another_form_gives_nothing(procfs, look, text: str) -> None:
    machine(procfs, 5000, text)
    assert not [name for name in look(SOURCE)[0] if "vcpu" in name]


def test_with_too_many_machines_some_virtual_cpus_of_each_stand_for_all(
    procfs, look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vm_threads, "MOST_THREADS", 8)
    keys = [f"/machine.slice/machine-qemu-{number}-vm.scope" for number in range(3)]
    for number, key in enumerate(keys):
        machine(procfs, 5000 + 100 * number, *["1 2 3"] * (1 if not number else 8), key=key)
    values, _ = look(SOURCE)
    read = [name for name in values if name.startswith("cpu.vcpu_run")]
    assert [sum(key in name for name in read) for key in keys] == [1, 3, 2]
    assert sum(name.startswith("cpu.vhost_run") for name in values) == 2


def test_a_machine_that_began_anew_with_the_numbers_of_the_old_one_counts_anew(procfs) -> None:
    sampler = Sampler(procfs.root, sources=(SOURCE,))
    second = 1_000_000_000

    def run_time(begin_s: int, end_s: int) -> list[float]:
        seen = []
        for at_s in range(begin_s, end_s):
            sampler.tick(at_s * second)
            for block in sampler.collect(at_s * second):
                for column, channel in enumerate(block.layout.channels):
                    if channel.metric == "cpu.vcpu_run":
                        seen += block.values[:, column].tolist()
        return seen

    try:
        assert run_time(0, 8) == []
        machine(procfs, 5000, "9000000000 1 2")
        assert set(run_time(8, 80)) == {9.0}, "found within a minute, or as soon as its cgroup comes"
        machine(procfs, 5000, "1000000000 1 2", started=1234)
        before = {file.feed.identity for source in sampler._sources for file in source.files} - {""}
        assert set(run_time(80, 160)[-3:]) == {1.0}
        assert not before & {file.feed.identity for source in sampler._sources for file in source.files}
    finally:
        sampler.close()
