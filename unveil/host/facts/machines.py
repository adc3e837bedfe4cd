"""The virtual machines of a host: the QEMU process in each cgroup of one, its threads by their task, its taps.

A virtual machine is a process whose threads QEMU names: ``CPU 0/KVM`` runs the first virtual CPU (``CPU 0/TCG`` where
it is emulated), ``vhost-PID`` carries packets; older kernels run that one as a process by itself, in the same cgroup.
All of it is read from outside. QEMU gives these names where it was started with ``-name …,debug-threads=on``, as
libvirt does.

Source: qemu softmmu/cpus.c and accel/*/…-accel-ops.c; drivers/vhost/vhost.c; drivers/net/tun.c (``iff:`` in fdinfo);
libvirt's cgroups have the process in themselves, in ``libvirt``, or in ``emulator`` in one of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unveil.host.root import HostRoot

MOST_PROCESSES = 64
"""Processes of one cgroup that are looked at; a virtual machine's has a handful."""
MOST_THREADS = 1024
"""Threads of one process that are looked at: many virtual CPUs, and workers for the disks."""
MOST_FILES = 512
"""Open files of one process that are looked at for taps."""
REMEMBERED_S = 50.0
"""A little less than the time after which all files are looked for again."""
_PARTS = ("", "/libvirt", "/libvirt/emulator", "/emulator")

_VCPU = re.compile(rb"CPU ([0-9]{1,4})/(?:KVM|TCG)")
_ALL_VCPUS = b"ALL CPUs/TCG"
_VHOST = re.compile(rb"vhost-([0-9]{1,10})")
_PID = re.compile(r"[0-9]{1,10}")
_TAP = re.compile(rb"^iff:\s*(\S{1,15})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread of a virtual machine.

    Attributes:
        number: of the virtual CPU (``all`` where one thread runs all of them), or of the vhost worker.
        path: its folder in procfs.
        started: tells it from a later one with the same number: when its process began, in ticks since boot.
    """

    number: str
    path: str
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A virtual machine; *pid* is that of its process."""

    pid: str
    vcpus: tuple[Thread, ...] = ()
    vhosts: tuple[Thread, ...] = ()


class Machines:
    """Virtual machines that were found: where containers come and go, they are asked for every few seconds."""

    def __init__(self, root: HostRoot) -> None:
        self._root = root
        self._known: dict[str, tuple[Machine, str, float]] = {}  # folder → it, when its process began, when found

    def of(self, folders: Iterable[str]) -> Machine | None:
        """Return the virtual machine whose cgroup lies in the first of some folders that has one.

        What was found in the last minute stands while its process does: a virtual CPU that is plugged in comes late.
        """
        return next(filter(None, map(self._in, folders)), None)

    def forget(self, but: Iterable[str]) -> None:
        """Forget what lies elsewhere than in some folders."""
        self._known = {folder: self._known[folder] for folder in but if folder in self._known}

    def _in(self, folder: str) -> Machine | None:
        machine, began, found_s = self._known.get(folder, (None, "", 0.0))
        now_s = monotonic()
        if machine and now_s - found_s < REMEMBERED_S and started(self._root, f"proc/{machine.pid}") == began:
            return machine
        self._known.pop(folder, None)
        machine = find_machine(self._root, folder)
        if machine is not None:
            self._known[folder] = machine, started(self._root, f"proc/{machine.pid}"), now_s
        return machine


def find_machine(root: HostRoot, folder: str) -> Machine | None:
    """Return the virtual machine whose cgroup lies in a folder; None where no thread there runs a virtual CPU."""
    kernels: list[tuple[str, str]] = []
    machine: Machine | None = None
    for pid in _processes(root, folder):
        if (owner := _VHOST.fullmatch(_name(root, f"proc/{pid}"))) is not None:
            kernels.append((pid, owner[1].decode("ascii")))
        elif machine is None:
            machine = _machine(root, pid)
    if machine is None:
        return None
    own = [f"proc/{pid}" for pid, owner in kernels if owner == machine.pid]
    later = tuple(
        Thread(number=str(number), path=path, started=started(root, path))
        for number, path in enumerate(own, len(machine.vhosts))
    )
    return Machine(pid=machine.pid, vcpus=machine.vcpus, vhosts=machine.vhosts + later)


def taps(root: HostRoot, pid: str) -> tuple[str, ...]:
    """Return the taps that a process has open, by name, sorted. Hostile text.

    A macvtap is none of them: its file does not tell its name, and its counters run the other way round.

    Raises:
        OSError: its open files are not to be seen; that takes the rights of its user, or root's.
    """
    found = set()
    for number in root.list(f"proc/{pid}/fdinfo")[:MOST_FILES]:
        try:
            text = root.head(f"proc/{pid}/fdinfo/{number}", 512)
        except OSError:  # closed in the meantime
            continue
        if tap := _TAP.search(text):
            found.add(tap[1].decode("utf-8", "backslashreplace"))
    return tuple(sorted(found))


def _processes(root: HostRoot, folder: str) -> Iterator[str]:
    """Yield the processes of a cgroup, or of the part of it that libvirt put them into."""
    for part in _PARTS:
        try:
            pids = root.head(f"{folder}{part}/cgroup.procs", 1 << 14).decode("ascii", "replace").split()
        except OSError:  # no such part; or EOPNOTSUPP, as its threads are dealt out
            continue
        known = [pid for pid in dict.fromkeys(pids) if _PID.fullmatch(pid)]
        if known:
            yield from known[:MOST_PROCESSES]
            return


def _machine(root: HostRoot, pid: str) -> Machine | None:
    """Return the virtual machine that a process is, None where it runs no virtual CPU."""
    path = f"proc/{pid}"
    began = started(root, path)
    try:
        threads = sorted(root.list(f"{path}/task"), key=_order)[:MOST_THREADS]
    except OSError:
        return None
    vcpus: dict[str, Thread] = {}
    vhosts: list[Thread] = []
    for thread in threads:
        if not _PID.fullmatch(thread):
            continue
        place = f"{path}/task/{thread}"
        name = _name(root, place)
        if (vcpu := _VCPU.fullmatch(name)) or name == _ALL_VCPUS:
            number = str(int(vcpu[1])) if vcpu else "all"
            vcpus.setdefault(number, Thread(number=number, path=place, started=began))
        elif _VHOST.fullmatch(name):
            vhosts.append(Thread(number=str(len(vhosts)), path=place, started=began))
    if not vcpus:
        return None
    return Machine(pid=pid, vcpus=tuple(sorted(vcpus.values(), key=lambda each: _order(each.number))),
                   vhosts=tuple(vhosts))  # fmt: skip


def _order(name: str) -> tuple[int, str]:
    return len(name), name


def _name(root: HostRoot, path: str) -> bytes:
    """Return the name of a task, empty where it is gone."""
    try:
        return root.head(f"{path}/comm", 64).rstrip(b"\n")
    except OSError:
        return b""


def started(root: HostRoot, path: str) -> str:
    """Return when a process began, in clock ticks since boot; empty where it is gone."""
    try:
        text = root.head(f"{path}/stat", 4096)
    except OSError:
        return ""
    fields = text[text.rfind(b")") + 1 :].split()  # the name before it may hold anything
    return fields[19].decode("ascii", "replace") if len(fields) > 19 else ""
