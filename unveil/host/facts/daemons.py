"""Daemons that change settings by themselves: irqbalance undoes a moved interrupt within seconds, tuned its profile.

Which of them run is read from the names of processes. That is one small file per process, so a reader remembers what
it found and looks at everything only now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.host.facts.sheet import FactSheet

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
        if name is not None:
            found[pid] = name
    if found or sees_others(sheet):
        sheet.tell("cpu.managers", tuple(sorted(set(found.values()))))
    else:
        sheet.miss("cpu.managers", "/proc hides the processes of other users (hidepid, or a PID namespace)")
    return found


def _processes(sheet: FactSheet) -> tuple[str, ...]:
    return tuple(name for name in sheet.names("proc") if name.isascii() and name.isdigit())[:_MAX_PROCESSES]


def sees_others(sheet: FactSheet) -> bool:
    """Tell whether the host's own processes are to be seen: process 2 is kthreadd in the first PID namespace only."""
    return sheet.text("proc/2/comm") == "kthreadd"
