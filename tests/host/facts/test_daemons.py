from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.daemons import DAEMONS, read_daemons, sees_others
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from conftest import Tree


ROOT = "0\t0\t0\t0"
USER = "1000\t1000\t1000\t1000"
ID = "a1" * 32


def _process(tree: Tree, pid: int, name: str, cgroup: str = "0::/", *, uid: str = ROOT, inner: str = "") -> None:
    tree.write(f"proc/{pid}/comm", name + "\n")
    tree.write(f"proc/{pid}/status", f"Name:\t{name}\nPid:\t{pid}\nUid:\t{uid}\nGid:\t{ROOT}\nNSpid:\t{pid}{inner}\n")
    tree.write(f"proc/{pid}/cgroup", cgroup + "\n")


def test_daemons_are_known_by_the_names_of_their_processes(tree: Tree) -> None:
    for pid, name in (
        (2, "kthreadd"),
        (700, "irqbalance"),
        (701, "tuned"),
        (702, "power-profiles-"),
        (9, "irqbalance2"),
    ):
        _process(tree, pid, name)
    sheet = tree.sheet()
    found = read_daemons(sheet)
    assert sheet.value("cpu.managers") == ("irqbalance", "power-profiles-daemon", "tuned")
    (tree.folder / "proc/701/comm").unlink()
    sheet = tree.sheet()
    assert read_daemons(sheet, found) == {"700": "irqbalance", "702": "power-profiles-daemon"}
    assert sheet.value("cpu.managers") == ("irqbalance", "power-profiles-daemon")


@pytest.mark.parametrize(
    ("cgroup", "uid"),
    [
        ("0::/", ROOT),  # no systemd
        ("0::/system.slice/irqbalance.service", ROOT),
        ("0::/system.slice/cron.service", ROOT),
        ("9:name=systemd:/system.slice/irqbalance.service\n8:pids:/\n0::/", ROOT),
        ("0::/system.slice/irqbalance.service", "997\t997\t997\t997"),  # DynamicUser=
        ("0::/../../system.slice/system-x.slice/irqbalance.service", "997\t997\t997\t997"),
    ],
)
def test_a_process_of_the_hosts_init_or_of_root_is_the_daemon(tree: Tree, cgroup: str, uid: str) -> None:
    _process(tree, 2, "kthreadd")
    _process(tree, 700, "irqbalance", cgroup, uid=uid)
    sheet = tree.sheet()
    assert read_daemons(sheet) == {"700": "irqbalance"}
    assert sheet.value("cpu.managers") == ("irqbalance",)


@pytest.mark.parametrize(
    ("cgroup", "uid", "inner"),
    [
        ("0::/", USER, ""),
        ("0::/", ROOT, "\t7"),  # root of a container that hides its cgroup from nobody, but its processes
        ("0::/", "1000\t0\t0\t0", ""),  # a link of this name to a set-user-ID program
        ("0::/system.slice/cron.service", USER, ""),
        ("0::/user.slice/user-1000.slice/session-3.scope", ROOT, ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/irqbalance.service", USER, ""),
        ("0::/x.service/app.slice/irqbalance.service", USER, ""),
        ("0::/irqbalance.service", USER, ""),
        (f"0::/system.slice/docker-{ID}.scope", ROOT, ""),  # sees the host's processes: hostPID
        (f"0::/docker/{ID}/system.slice/irqbalance.service", ROOT, ""),
        (f"9:name=systemd:/\n8:cpu:/kubepods/pod01234567-89ab/{ID}\n0::/", ROOT, ""),
        ("0::/kubepods.slice/system.slice/irqbalance.service", ROOT, ""),
        ("0::/system.slice/slurmstepd.scope/job_7/step_0", ROOT, ""),
    ],
)
def test_a_tenants_process_of_a_daemons_name_is_none(tree: Tree, cgroup: str, uid: str, inner: str) -> None:
    _process(tree, 2, "kthreadd")
    _process(tree, 700, "irqbalance", cgroup, uid=uid, inner=inner)
    sheet = tree.sheet()
    assert read_daemons(sheet) == {}
    assert sheet.value("cpu.managers") == ()


@pytest.mark.parametrize("file", ["status", "cgroup"])
def test_a_process_of_which_too_little_is_seen_is_none(tree: Tree, file: str) -> None:
    _process(tree, 2, "kthreadd")
    _process(tree, 700, "irqbalance")
    (tree.folder / f"proc/700/{file}").unlink()
    assert read_daemons(tree.sheet()) == {}
    tree.write(f"proc/700/{file}", b"\xff\0:\n\n")
    assert read_daemons(tree.sheet()) == {}


def test_a_daemon_whose_number_a_tenant_has_got_is_gone(tree: Tree) -> None:
    _process(tree, 2, "kthreadd")
    _process(tree, 700, "irqbalance")
    found = read_daemons(tree.sheet())
    _process(tree, 700, "irqbalance", uid=USER)
    assert read_daemons(tree.sheet(), found) == {}


def test_none_running_is_an_answer_only_where_all_processes_are_seen(tree: Tree) -> None:
    _process(tree, 1, "systemd")
    sheet = tree.sheet()
    read_daemons(sheet)
    assert sheet.value("cpu.managers") is None
    _process(tree, 2, "kthreadd")
    sheet = tree.sheet()
    read_daemons(sheet)
    assert sheet.value("cpu.managers") == ()
    assert sees_others(sheet)


def test_a_process_name_may_be_any_bytes(tree: Tree) -> None:
    tree.write("proc/2/comm", b"kthreadd\n")
    tree.write("proc/8/comm", b"caf\xc3\n")
    sheet = tree.sheet()
    assert read_daemons(sheet) == {}


@pytest.mark.parametrize("comm", DAEMONS)
def test_names_are_as_long_as_the_kernel_keeps_them(comm: str) -> None:
    assert len(comm.encode()) <= 15


def test_this_machine_is_looked_at() -> None:
    read_daemons(FactSheet(HostRoot()))
