"""Daemons that change settings by themselves: irqbalance undoes a moved interrupt within seconds, tuned its profile.

Which of them run is read from the names of processes. That is one small file per process, so a reader remembers what
it found and looks at everything only now and then.

Anybody may call a process ``irqbalance``. It is the host's own when it is in no namespace of processes below this one,
in no container's, job's or user's cgroup, and either all of its user IDs are root's or init runs it as the service of
that name. One of four IDs alone is root's in a set-user-ID program, which a link gives any name.

Source: fs/proc/array.c (``task_state``: a name has no line breaks there), proc_pid_status(5), pam_systemd(8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_names import identify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.host.facts.sheet import FactSheet
    from unveil.host.root import HostRoot

# name of the process, cut to 15 bytes by the kernel → name of the daemon
DAEMONS: dict[str, str] = {
    "irqbalance": "irqbalance",
    "tuned": "tuned",
    "numad": "numad",
    "nvidia-powerd": "nvidia-powerd",
    "nv-hostengine": "dcgm",
    "kubelet": "kubelet",
    "slurmd": "slurmd",
    "libvirtd": "libvirtd",
    "virtqemud": "libvirtd",
    "dockerd": "dockerd",
    "containerd": "containerd",
    "crio": "cri-o",
    "thermald": "thermald",
    "ksmtuned": "ksmtuned",
    "tlp": "tlp",
    "power-profiles-": "power-profiles-daemon",
    "cpufreqd": "cpufreqd",
    "systemd-oomd": "systemd-oomd",
    "earlyoom": "earlyoom",
}
_MAX_PROCESSES = 16384
_BYTES = 4096


def read_daemons(sheet: FactSheet, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Tell which daemons run, and return them by process number.

    Args:
        known: daemons of an earlier reading; given, only these are looked at.
    """
    pids = tuple(known) if known is not None else _processes(sheet)
    if known is None and not pids:
        sheet.miss("cpu.managers", "/proc shows no process")
        return {}
    found: dict[str, str] = {}
    for pid in pids:
        path = f"proc/{pid}/comm"
        name = DAEMONS.get(sheet.head(path, 64) if known is None else sheet.text(path) or "")
        if name is not None and sheet.looks.see(is_of_host, (pid, name)):
            found[pid] = name
    if found or sees_others(sheet):
        sheet.tell("cpu.managers", tuple(sorted(set(found.values()))))
    else:
        sheet.miss("cpu.managers", "/proc hides the processes of other users (hidepid, or a PID namespace)")
    return found


def is_of_host(root: HostRoot, daemon: tuple[str, str]) -> bool:
    """Tell whether a process of this number is the host's own daemon of this name; what cannot be read is not."""
    pid, name = daemon
    try:
        status = root.head(f"proc/{pid}/status", _BYTES).split(b"\n")
        cgroups = root.head(f"proc/{pid}/cgroup", _BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return False
    fields = {line.partition(b":")[0]: line.split()[1:] for line in status[:-1]}
    # in a namespace of cgroups of our own those beside it begin with ``/..``
    lines = cgroups.rstrip("\n").split("\n")
    paths = [[part for part in line.split(":", 2)[-1].split("/") if part != ".."] for line in lines]
    if len(fields.get(b"NSpid", ())) != 1 or any(map(_of_somebody, paths)):
        return False
    return fields.get(b"Uid") == [b"0"] * 4 or any(_is_service(path, name) for path in paths)


def _of_somebody(path: list[str]) -> bool:
    """Tell whether a cgroup is a user's, or one of a container, a virtual machine or a job, or in such a one."""
    if path[0] or len(path) < 2:
        return True  # no path at all
    above = [identify("/".join(path[:length])) for length in range(2, len(path) + 1)]
    return "user.slice" in path or any(each.is_unit or each.runtime == "kubernetes" for each in above)


def _is_service(path: list[str], name: str) -> bool:
    """Tell whether a cgroup is that of a service which init runs: one that users' own managers run is in theirs."""
    slices = path[1:-1]
    return path[-1] == f"{name}.service" and slices != [] and all(each.endswith(".slice") for each in slices)


def _processes(sheet: FactSheet) -> tuple[str, ...]:
    return tuple(name for name in sheet.names("proc") if name.isascii() and name.isdigit())[:_MAX_PROCESSES]


def sees_others(sheet: FactSheet) -> bool:
    """Tell whether the host's own processes are to be seen: process 2 is kthreadd in the first PID namespace only."""
    return sheet.text("proc/2/comm") == "kthreadd"
