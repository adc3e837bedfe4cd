"""Facts of cgroups: what they are, what limits them, which nodes they may use and where their memory belongs.

Source: Documentation/admin-guide/cgroup-v2.rst; scheduler/sched-bwc.rst, cgroup-v1/cpusets.rst and memory.rst for v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.cpulist import format_cpulist, parse_cpulist
from unveil.host.facts.cgroup_names import identify
from unveil.host.facts.looks import content
from unveil.host.facts.sheet import number, number_or_none, plain, why
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.sheet import FactSheet
    from unveil.host.root import HostRoot
    from unveil.records.fact import FactValue

# v1 has no word for "no limit" but the largest number of pages; it depends on the page size.
_UNLIMITED_BYTES = 1 << 62


class UnlimitedError(ValueError):
    """The file holds no limit: an answer, not a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One cgroup in the trees, and the sheet its facts go on."""

    sheet: FactSheet
    mounts: CgroupMounts
    path: str
    key: str
    entity: Entity

    def content(self, controller: str, file: str, *names: str) -> str | None:
        """Return a setting's text and keep its raw content, or tell why the facts that need it are absent."""
        folder = self.mounts.folder(controller, self.path)
        reason = f"the host has no {controller} controller"
        if folder is not None:
            try:
                data = self.sheet.looks.see(content, f"{folder}/{file}")
            except FileNotFoundError:
                reason = f"the {controller} controller is not enabled for it"
            except OSError as error:
                reason = why(error, f"{folder}/{file}")
            else:
                self.sheet.settings[self.address(file)] = data.decode("utf-8", "surrogateescape")
                return plain(data)
        for name in names:
            self.sheet.miss(name, reason, self.entity)
        return None

    def address(self, file: str) -> str:
        """Return the address of a managed setting of the cgroup."""
        return f"cgroup:{self.key}/{file}"

    def tell(self, name: str, file: str, text: str, parse: Callable[[str], FactValue]) -> None:
        """Tell a fact whose setting is a file with this text."""
        setting = self.address(file)
        try:
            self.sheet.tell(name, parse(text), self.entity, setting=setting)
        except UnlimitedError:
            self.sheet.miss(name, "unlimited", self.entity, setting=setting)
        except ValueError:
            self.sheet.miss(name, f"{file} reads {text[:40]!r}", self.entity, setting=setting)


def tell_cgroup(sheet: FactSheet, *, mounts: CgroupMounts, path: str, key: str, holds: bool) -> None:
    """Tell what one cgroup is and what limits it.

    Args:
        path: below each hierarchy.
        key: the same as text; see ``cgroup_key``.
        holds: others are in it, whose CPU time and memory are counted as its own: one that its path does not tell of
            is a slice then.
    """
    place = _Place(sheet=sheet, mounts=mounts, path=path, key=key, entity=Entity(EntityKind.CGROUP, key))
    _tell_identity(place, holds=holds)
    _read_cpu(place)
    _read_memory(place)
    _read_io(place)
    _read_cpuset(place)


def tell_dying(sheet: FactSheet, mounts: CgroupMounts) -> None:
    """Tell how many cgroups are deleted and cannot go, which makes each look at the memory of all dear.

    To the nearest hundred: facts that change all the time are a new table each time, and cost a new plan.
    """
    of_memory = mounts.unified if mounts.version("memory") == 2 else None
    stat = "" if of_memory is None else sheet.text(f"{of_memory.mount}/cgroup.stat") or ""
    words = stat.split()
    told = words[words.index("nr_dying_descendants") + 1] if "nr_dying_descendants" in words[:-1] else None
    if (dying := number_or_none(told)) is not None:
        sheet.tell("memory.dying_cgroups", round(dying, -2))
    else:
        sheet.miss("memory.dying_cgroups", "only the second version of cgroups counts them")


def _tell_identity(place: _Place, *, holds: bool) -> None:
    identity = identify(place.key)
    kind = "slice" if holds and identity.kind == "other" else identity.kind
    place.sheet.tell("cpu.cgroup_kind", kind, place.entity)
    place.sheet.tell("cpu.cgroup_name", identity.name, place.entity)
    if identity.runtime is None:
        place.sheet.miss("cpu.cgroup_runtime", "its path does not tell what made it", place.entity)
    else:
        place.sheet.tell("cpu.cgroup_runtime", identity.runtime, place.entity)


def _read_cpu(place: _Place) -> None:
    weight = "cpu.weight" if place.mounts.version("cpu") == 2 else "cpu.shares"
    text = place.content("cpu", weight, "cpu.cgroup_weight")
    if text is not None:
        place.tell("cpu.cgroup_weight", weight, text, number)
    burst = "cpu.max.burst" if place.mounts.version("cpu") == 2 else "cpu.cfs_burst_us"
    text = place.content("cpu", burst, "cpu.cgroup_burst")  # since Linux 5.14
    if text is not None:
        place.tell("cpu.cgroup_burst", burst, text, number)
    if place.mounts.version("cpu") == 2:
        text = place.content("cpu", "cpu.max", "cpu.cgroup_quota", "cpu.cgroup_period")
        if text is not None:
            quota, _, period = text.partition(" ")
            place.tell("cpu.cgroup_period", "cpu.max", period, _positive)
            place.tell("cpu.cgroup_quota", "cpu.max", text, lambda _: _cores(quota, period))
        return
    period_text = place.content("cpu", "cpu.cfs_period_us", "cpu.cgroup_period", "cpu.cgroup_quota")
    quota_text = place.content("cpu", "cpu.cfs_quota_us", "cpu.cgroup_quota")
    if period_text is not None:
        place.tell("cpu.cgroup_period", "cpu.cfs_period_us", period_text, _positive)
    if quota_text is not None and period_text is not None:
        place.tell("cpu.cgroup_quota", "cpu.cfs_quota_us", quota_text, lambda text: _cores(text, period_text))


def _positive(text: str) -> float:
    value = number(text)
    if value <= 0:
        raise ValueError(text)
    return value


def _cores(quota: str, period: str) -> float:
    if quota in ("max", "-1"):
        raise UnlimitedError
    return _positive(quota) / _positive(period)


def _read_memory(place: _Place) -> None:
    file = "memory.max" if place.mounts.version("memory") == 2 else "memory.limit_in_bytes"
    text = place.content("memory", file, "memory.cgroup_limit")
    if text is not None:
        place.tell("memory.cgroup_limit", file, text, _bytes)
    if place.mounts.version("memory") != 2:
        place.sheet.miss("memory.cgroup_high", "the first version of cgroups has no such mark", place.entity)
        return
    text = place.content("memory", "memory.high", "memory.cgroup_high")
    if text is not None:
        place.tell("memory.cgroup_high", "memory.high", text, _bytes)


def _bytes(text: str) -> float:
    value = _UNLIMITED_BYTES if text == "max" else number(text)
    if value >= _UNLIMITED_BYTES:
        raise UnlimitedError
    return value


_IO_LIMITS = {"rbps": "read_limit", "wbps": "write_limit", "riops": "reads_limit", "wiops": "writes_limit"}


def _read_io(place: _Place) -> None:
    """Read what limits its I/O, where that is one disk: a line of io.max is set as a whole, and one disk at a time."""
    names = ("storage.cgroup_io_device", *(f"storage.cgroup_{name}" for name in _IO_LIMITS.values()))
    unified = place.mounts.unified
    text = None if unified is None else place.sheet.text(f"{unified.mount}{place.path}/io.max")
    lines = [line for line in (text or "").splitlines() if not line.isspace()]
    if len(lines) != 1:
        if text is None:
            reason = "the second version of the io controller is not enabled for it"
        else:
            reason = "it is limited on several disks" if lines else "unlimited"
        for name in names:
            place.sheet.miss(name, reason, place.entity)
        return
    device, *words = lines[0].split()
    place.sheet.settings[place.address("io.max")] = f"{lines[0]}\n"
    place.tell(names[0], "io.max", device, str)
    limits = dict(word.partition("=")[::2] for word in words)
    for key, name in _IO_LIMITS.items():
        place.tell(f"storage.cgroup_{name}", "io.max", limits.get(key, ""), _io_limit)


def _io_limit(text: str) -> float:
    if text == "max":
        raise UnlimitedError
    return _positive(text)


def _read_cpuset(place: _Place) -> None:
    effective = "cpuset.{}.effective" if place.mounts.version("cpuset") == 2 else "cpuset.effective_{}"
    for name, what in (("interconnect.cgroup_mems", "mems"), ("cpu.cgroup_cpus", "cpus")):
        own = place.content("cpuset", f"cpuset.{what}", name)
        if own is None:
            continue
        if what == "cpus" and _empty(place):
            place.sheet.miss(name, "nothing runs in it", place.entity, setting=place.address(f"cpuset.{what}"))
            continue
        # What is in force: an empty cpuset.mems of v2 means the parent's, and nodes and CPUs that are offline fall out.
        text = place.sheet.text(f"{place.mounts.folder('cpuset', place.path)}/{effective.format(what)}") or own
        place.tell(name, f"cpuset.{what}", text, lambda text: format_cpulist(parse_cpulist(text)))


def _empty(place: _Place) -> bool:
    """Return whether a cgroup surely has no process, nor one below it: one that was left behind holds no CPU."""
    try:
        return not place.sheet.looks.see(_in_use, str(place.mounts.folder("cpuset", place.path)))
    except OSError:
        return False


def _in_use(root: HostRoot, folder: str) -> bool:
    if root.head(f"{folder}/cgroup.procs", 64).strip():
        return True
    return root.stat(folder).st_nlink > 2 or bool(root.directories(folder))  # some file systems count no folders
