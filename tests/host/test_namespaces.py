"""Which cgroups have network namespaces of their own, on made hosts; on this kernel see test_real_namespaces.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unveil.host.cgroups import CgroupTrees
from unveil.host.namespaces import AT_A_TIME, MOST_OF_ONE, NetworkNamespaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.host.conftest import Procfs


def docker(number: int) -> str:
    return f"/docker-{number:064x}.scope"


@pytest.fixture
def spaces(procfs: Procfs) -> Spaces:
    return Spaces(procfs)


class Spaces:
    """Processes in namespaces: two files that are one are the same namespace, as in procfs."""

    def __init__(self, procfs: Procfs) -> None:
        self.procfs = procfs
        self.process(1)
        self.namespaces = NetworkNamespaces(procfs.root, self.trees())

    def trees(self) -> CgroupTrees:
        trees = CgroupTrees(self.procfs.root)
        trees.walk(0)
        return trees

    def process(self, pid: int, *, like: int | None = None, segments: int = 5) -> None:
        """Begin a process in a namespace of its own, or in that of another one."""
        for name in ("snmp", "netstat"):
            path = f"proc/{pid}/net/{name}"
            if like is None:
                self.procfs.write(path, f"Tcp: InSegs OutSegs\nTcp: {segments} {segments}\n")
            else:
                (self.procfs.folder / path).parent.mkdir(parents=True, exist_ok=True)
                os.link(self.procfs.folder / f"proc/{like}/net/{name}", self.procfs.folder / path)

    def end(self, pid: int) -> None:
        for name in ("snmp", "netstat"):
            self.procfs.remove(f"proc/{pid}/net/{name}")

    def cgroup(self, path: str, *pids: int) -> None:
        self.procfs.cgroup_v2(path)
        self.procfs.write(f"sys/fs/cgroup{path}/cgroup.procs", "".join(f"{pid}\n" for pid in pids))

    def look(self) -> dict[str, list[str]]:
        """Return which cgroups have namespaces of their own, and the processes that these are seen through."""
        self.namespaces = NetworkNamespaces(self.procfs.root, self.trees())
        return self.look_again()

    def look_again(self) -> dict[str, list[str]]:
        found = self.namespaces.look()
        assert found is not None
        return {member.key: [place.pid for place in member.places] for member in found}


def test_a_container_has_its_own_and_a_service_of_the_host_does_not(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(20, like=1)
    spaces.cgroup(docker(1), 10)
    spaces.cgroup("/system.slice/cron.service", 20)
    assert spaces.look() == {docker(1): ["10"]}


def test_a_service_with_a_private_network_has_its_own(spaces: Spaces) -> None:
    spaces.process(20)
    spaces.cgroup("/system.slice/private.service", 20)
    assert spaces.look() == {"/system.slice/private.service": ["20"]}


def test_without_the_hosts_own_namespace_nothing_can_be_told(spaces: Spaces) -> None:
    spaces.end(1)
    spaces.process(10)
    spaces.cgroup(docker(1), 10)
    assert NetworkNamespaces(spaces.procfs.root, spaces.trees()).look() is None


def test_containers_of_a_pod_are_one(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(11, like=10)
    pod = "/kubepods.slice/kubepods-pod0a0a0a0a_1111.slice"
    spaces.cgroup(f"{pod}/cri-containerd-{1:064x}.scope", 10)
    spaces.cgroup(f"{pod}/cri-containerd-{2:064x}.scope", 11)
    assert spaces.look() == {pod: ["10"]}


def test_a_namespace_that_containers_share_is_read_once(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(11, like=10)
    spaces.cgroup(docker(1), 10)
    spaces.cgroup(docker(2), 11)
    assert spaces.look() == {docker(1): ["10"]}
    (member,) = spaces.namespaces.look() or ()
    assert len(member.read()) == 1


def test_a_container_has_it_rather_than_a_service_that_joined_it(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(11, like=10)
    spaces.cgroup("/a.service", 11)
    spaces.cgroup(docker(1), 10)
    assert spaces.look() == {docker(1): ["10"]}


def test_several_namespaces_of_one_cgroup_are_all_taken_up_to_a_limit(spaces: Spaces) -> None:
    pids = range(10, 10 + MOST_OF_ONE + 2)
    for pid in pids:
        spaces.process(pid)
    spaces.cgroup("/system.slice/two.service", 10, 11, 10)
    spaces.cgroup("/system.slice/many.service", *pids)
    found = spaces.look()
    assert len(found["/system.slice/many.service"]) == MOST_OF_ONE
    taken = {pid for each in found.values() for pid in each}
    assert len(taken) == sum(map(len, found.values()))


def test_a_namespace_that_is_known_stays_however_many_processes_come_to_the_others(spaces: Spaces) -> None:
    for pid in (10, 20):
        spaces.process(pid)
    spaces.cgroup("/system.slice/two.service", 10, 20)
    assert spaces.look() == {"/system.slice/two.service": ["10", "20"]}
    more = range(100, 300)
    for pid in more:
        spaces.process(pid, like=10)
    spaces.cgroup("/system.slice/two.service", *more, 20)
    for _ in range(3):
        assert spaces.look_again() == {"/system.slice/two.service": ["10", "20"]}


def test_processes_of_a_container_may_be_in_cgroups_below_it(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.cgroup(docker(1))
    spaces.cgroup(f"{docker(1)}/init.scope", 10)
    assert spaces.look() == {docker(1): ["10"]}


def test_a_process_that_ends_is_replaced_by_another_of_the_cgroup(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(11, like=10)
    spaces.cgroup(docker(1), 10)
    assert spaces.look() == {docker(1): ["10"]}
    (member,) = spaces.namespaces.look() or ()
    spaces.end(10)
    assert member.read() == ()
    spaces.cgroup(docker(1), 10, 11)
    assert len(member.read()) == 1
    assert [place.pid for place in member.places] == ["11"]


def test_a_pid_that_is_another_process_now_is_not_taken_for_the_old_one(spaces: Spaces) -> None:
    spaces.process(10)
    spaces.process(20, segments=7000)
    spaces.cgroup(docker(1), 10)
    spaces.cgroup(docker(2), 20)
    assert spaces.look() == {docker(1): ["10"], docker(2): ["20"]}
    first = next(member for member in spaces.namespaces.look() or () if member.key == docker(1))
    assert b"5 5" in first.read()[0][0]
    spaces.end(10)
    spaces.process(10, like=20)
    assert first.read() == ()  # a namespace of the other's
    spaces.end(10)
    spaces.process(10, like=1)
    assert first.read() == ()  # the host's


def test_a_new_container_may_begin_in_the_hosts_namespace(spaces: Spaces) -> None:
    spaces.process(10, like=1)
    spaces.cgroup(docker(1), 10)
    assert spaces.look() == {}
    spaces.end(10)
    spaces.process(10)
    assert spaces.look_again() == {docker(1): ["10"]}


def test_services_are_looked_at_again_in_turn(spaces: Spaces) -> None:
    count = AT_A_TIME + 4
    for number in range(count):
        spaces.process(100 + number, like=1)
        spaces.cgroup(f"/system.slice/s{number:02}.service", 100 + number)
    assert spaces.look() == {}
    for number in range(count):
        spaces.end(100 + number)
        spaces.process(100 + number)
    known = [len(spaces.look_again()) for _ in range(3)]
    assert known[0] < count == known[-1]


def test_processes_that_cannot_be_seen_are_told_from_none(spaces: Spaces) -> None:
    spaces.cgroup(docker(1), 0)
    spaces.cgroup(docker(2))
    spaces.cgroup(docker(3), 4711)
    assert spaces.look() == {}
    assert spaces.namespaces.hidden == 2


@pytest.mark.parametrize("text", ["", "x\n", "../../1\n", "-1\n", "99999999999999999999\n", "\0\n", "12"])
def test_a_list_of_processes_that_is_none_gives_nothing(spaces: Spaces, text: str) -> None:
    spaces.cgroup(docker(1))
    spaces.procfs.write(f"sys/fs/cgroup{docker(1)}/cgroup.procs", text)
    assert spaces.look() == {}


def test_the_long_file_is_left_alone_where_nothing_came_or_went(
    spaces: Spaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces.process(10)
    spaces.cgroup(docker(1), 10)
    spaces.look()
    (member,) = spaces.namespaces.look() or ()
    opened: list[str] = []
    genuine: Callable[[str], int] = spaces.procfs.root.open
    monkeypatch.setattr(type(spaces.procfs.root), "open", lambda _, path: opened.append(path) or genuine(path))
    first = member.read()
    second = member.read()
    spaces.procfs.write("proc/10/net/snmp", "Tcp: InSegs OutSegs\nTcp: 6 6\n")
    third = member.read()
    assert first == second != third
    assert [path.rpartition("/")[2] for path in opened] == ["snmp", "netstat", "snmp", "snmp", "netstat"]


def test_cgroups_that_go_are_forgotten(spaces: Spaces) -> None:
    for number in range(3):
        spaces.process(10 + number)
        spaces.cgroup(docker(number), 10 + number)
    trees = spaces.trees()
    namespaces = NetworkNamespaces(spaces.procfs.root, trees)
    assert len(namespaces.look() or ()) == 3
    for name in ("cpu.stat", "memory.stat", "memory.numa_stat", "memory.max", "cgroup.procs"):
        spaces.procfs.remove(f"sys/fs/cgroup{docker(0)}/{name}")
    (spaces.procfs.folder / f"sys/fs/cgroup{docker(0)}").rmdir()
    trees.walk(10_000_000_000)
    assert len(namespaces.look() or ()) == 2
