"""Facts of virtual machines: how many virtual CPUs each has, and which taps carry its packets.

To find the process, its threads and its taps takes dozens of small files. It is done when a machine is new, and again
when its process is another one; otherwise one small file tells that it is still the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_names import identify
from unveil.host.facts.machines import find_machine, started, taps
from unveil.host.facts.sheet import why
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.sheet import FactSheet
    from unveil.host.root import HostRoot

AT_A_TIME = 4
"""Machines that are looked into in one reading of the facts; the others have their turn in the next ones."""
_VCPUS, _TAPS = "cpu.cgroup_vcpus", "network.cgroup_taps"
_NO_NAMES = "no thread in it is named as a virtual CPU, as QEMU's are with debug-threads=on"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What was found: the process and when it began, its virtual CPUs; its taps, None with the reason."""

    pid: str
    started: str
    vcpus: int
    taps: tuple[str, ...] | None
    reason: str = ""


class MachineFacts:
    """What was found out about the machines of one host, by the key of their cgroup."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._looked: dict[str, int] = {}  # key → number of the reading
        self._readings = 0

    def forget(self) -> None:
        """Have all of them looked into again: a NIC may have been plugged in."""
        self._known.clear()

    def tell(self, sheet: FactSheet, mounts: CgroupMounts, cgroups: Iterable[str]) -> None:
        """Write down what is known of the machines among some cgroups.

        Args:
            cgroups: keys of those that have facts.
        """
        keys = [key for key in cgroups if identify(key).kind == "vm"]
        self._readings += 1
        self._looked = {key: self._looked.get(key, 0) for key in keys}
        self._known = {key: known for key in keys if (known := self._known.get(key)) and _lives(sheet.root, known)}
        waiting = sorted((key for key in keys if key not in self._known), key=lambda key: self._looked[key])
        for key in waiting[:AT_A_TIME]:
            self._looked[key] = self._readings
            if (found := _look(sheet.root, mounts, key)) is not None:
                self._known[key] = found
        for key in keys:
            entity, known = Entity(EntityKind.CGROUP, key), self._known.get(key)
            if known is None:
                reason = _NO_NAMES if self._looked[key] else "its turn to be looked into is still to come"
                sheet.miss(_VCPUS, reason, entity)
                sheet.miss(_TAPS, reason, entity)
                continue
            sheet.tell(_VCPUS, float(known.vcpus), entity)
            if known.taps is None:
                sheet.miss(_TAPS, known.reason, entity)
            else:
                sheet.tell(_TAPS, known.taps, entity)


def _lives(root: HostRoot, known: _Known) -> bool:
    return started(root, f"proc/{known.pid}") == known.started


def _look(root: HostRoot, mounts: CgroupMounts, key: str) -> _Known | None:
    """Look into a machine, in whichever hierarchy holds its process; None where no thread there is a virtual CPU."""
    hierarchies = (*mounts.by_controller.values(), mounts.unified)
    for mount in dict.fromkeys(each.mount for each in hierarchies if each is not None):
        machine = find_machine(root, f"{mount}{key}")
        if machine is None:
            continue
        began = started(root, f"proc/{machine.pid}")
        try:
            found: tuple[str, ...] | None = taps(root, machine.pid)
            reason = ""
        except OSError as error:
            found, reason = None, why(error, f"proc/{machine.pid}/fdinfo")
        return _Known(pid=machine.pid, started=began, vcpus=len(machine.vcpus), taps=found, reason=reason)
    return None
