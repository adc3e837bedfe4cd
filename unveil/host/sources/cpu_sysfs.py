"""CPUs as sysfs lists them, and an even sample of them: no reader can afford a file for each of a thousand.

Trap 5: one file per CPU took 20 ms each on some kernels, two seconds on a large host; trap 6: reading the frequency of
an idle CPU can wake it. So whoever reads a file per CPU reads few of them, one after the other, and seldom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.cpulist import parse_cpulist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.host.root import HostRoot

CPUS = "sys/devices/system/cpu"


def online_cpus(root: HostRoot) -> tuple[int, ...]:
    """Return the ids of the CPUs that are online; none where the kernel does not tell."""
    try:
        return tuple(sorted(parse_cpulist(root.read(f"{CPUS}/online"))))
    except (OSError, ValueError):  # some captured trees have only the folders
        pass
    return tuple(sorted(int(name[3:]) for name in root.names(CPUS) if name[:3] == "cpu" and name[3:].isdecimal()))


def spread(cpus: Sequence[int], most: int) -> tuple[int, ...]:
    """Return at most so many CPUs, as far apart as can be, the first of them included."""
    if len(cpus) <= most:
        return tuple(cpus)
    return tuple(cpus[place * len(cpus) // most] for place in range(most))


def package_of(root: HostRoot, cpu: int) -> str | None:
    """Return the number of the package that a CPU is on, None where the kernel does not tell."""
    try:
        package = root.read(f"{CPUS}/cpu{cpu}/topology/physical_package_id").strip()
    except OSError:
        return None
    return package.decode("ascii") if package.isdigit() else None


def first_of_packages(root: HostRoot, cpus: Sequence[int]) -> dict[str, int]:
    """Return the first CPU of each package."""
    first: dict[str, int] = {}
    for cpu in cpus:
        package = package_of(root, cpu)
        if package is not None:
            first.setdefault(package, cpu)
    return first
