"""Managed settings as text: the syntax of their addresses, and when two contents mean the same.

Pure: nothing is read or written here. The kernel does not give back what was written to it (``0-1,3`` for ``0,1,3``,
``always [madvise] never`` for ``madvise``, ``max 100000`` for ``max``), so plans, verification and rollback compare
meanings, never texts. `playbooks/modules/unveil_setting.py` stands alone and so has the same rules a second time; a
test holds the two together.

Sources: kernel documentation admin-guide/mm/transhuge, admin-guide/cgroup-v2, core-api/irq/irq-affinity; sysctl(8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from unveil.errors import BadInputError

MAX_ADDRESS = 4096  # PATH_MAX
MAX_VALUE = 4096  # no kernel setting takes more than a page
POWER_TOLERANCE_W = 0.5  # drivers round a limit to whole watts
MAX_CPU = 1 << 16  # far above NR_CPUS: a list that names more is no list of CPUs


class Scheme(StrEnum):
    """Where a setting lives."""

    FILE = "file"  # file:/sys/… , below /sys
    SYSCTL = "sysctl"  # sysctl:vm.dirty_bytes
    IRQ = "irq"  # irq:24/smp_affinity_list
    CGROUP = "cgroup"  # cgroup:/kubepods/pod1/cpu.max
    ETHTOOL = "ethtool"  # ethtool:eth0/ring/rx, …/coalesce/rx-usecs, …/channels/combined, …/feature/rx-gro
    NVML = "nvml"  # nvml:GPU-…/power_limit, in watts
    SERVICE = "service"  # service:irqbalance.service/active
    IRQBALANCE = "irqbalance"  # irqbalance:24/banned, yes or no
    MEMORY = "memory"  # memory:/pod1/nodes, memory:/pod1/huge_pages: seen, never written


FILES = frozenset({Scheme.FILE, Scheme.SYSCTL, Scheme.IRQ, Scheme.CGROUP})


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A parsed address.

    Attributes:
        key: the path (file), the dotted name (sysctl), the number (irq), the path below the controller's hierarchy
            (cgroup, memory; ``/`` is its root), the interface (ethtool), the UUID (nvml), the unit (service) or the
            interrupt (irqbalance).
        item: file or property below the key; empty for file and sysctl.
    """

    scheme: Scheme
    key: str
    item: str = ""

    def __str__(self) -> str:
        if not self.item:
            return f"{self.scheme}:{self.key}"
        return f"{self.scheme}:{self.key.rstrip('/')}/{self.item}"


_FILE = re.compile(r"/(?:sys|proc/sys|proc/irq)/[\w.,:@+=!/-]+", re.ASCII)
_SYSCTL = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)+")
_CGROUP_FILE = re.compile(r"(?:cpu|cpuset|memory|io|blkio|pids|hugetlb)\.[A-Za-z0-9_.]{1,64}")
_KEYED: dict[Scheme, re.Pattern[str]] = {
    Scheme.IRQ: re.compile(r"(?P<key>[0-9]{1,9})/(?P<item>smp_affinity(?:_list)?)"),
    Scheme.ETHTOOL: re.compile(
        r"(?P<key>[\w.:@-]{1,15})/(?P<item>ring/(?:rx|tx|rx-mini|rx-jumbo)(?:-max)?"
        r"|channels/(?:rx|tx|other|combined)(?:-max)?"
        r"|coalesce/(?:(?:rx|tx)-(?:usecs|frames)(?:-irq)?|adaptive-(?:rx|tx))"
        r"|feature/[a-z0-9][a-z0-9-]{1,31})",
        re.ASCII,
    ),
    Scheme.NVML: re.compile(
        r"(?P<key>(?:GPU|MIG)-[0-9A-Za-z-]{1,64})/(?P<item>power_limit|persistence_mode|applications_clocks)"
    ),
    Scheme.IRQBALANCE: re.compile(r"(?P<key>[0-9]{1,9})/(?P<item>banned)"),
    Scheme.SERVICE: re.compile(
        r"(?P<key>[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,127}\.(?:service|timer|socket))/(?P<item>active|enabled)"
    ),
}
_SWAPPED = {ord("."): "/", ord("/"): "."}
_MEMORY_ITEMS = ("nodes", "huge_pages")
_ALIASES = (  # one setting has one address: whoever holds it, holds it under every name
    (re.compile(r"file:/proc/sys/(?P<rest>.+)"), "sysctl:"),
    (re.compile(r"file:/proc/irq/(?P<rest>[0-9]+/smp_affinity(?:_list)?)"), "irq:"),
)


def parse_address(text: str) -> Address:
    """Return a parsed address.

    Raises:
        BadInputError: it names no known place, or could lead out of the places that a remediation may change.
    """
    scheme, colon, rest = text.partition(":")
    hint = (
        "an address is file:/sys/…, sysctl:NAME, irq:N/smp_affinity_list, cgroup:PATH/FILE, ethtool:NIC/ring/rx, "
        "nvml:UUID/power_limit, service:UNIT/active or memory:CGROUP/nodes"
    )
    if not colon or scheme not in tuple(Scheme):
        raise BadInputError(f"{_shown(text)} is no address of a setting", hint=hint)
    if len(text) > MAX_ADDRESS or not text.isprintable():
        raise BadInputError(f"{_shown(text)} is too long, or holds characters that cannot be printed", hint=hint)
    if any(part in ("..", ".") for part in rest.split("/")) or "//" in rest:
        raise BadInputError(f"{_shown(text)} holds '.', '..' or an empty part", hint="write the path out in full")
    for alias, prefix in _ALIASES:
        if found := alias.fullmatch(text):
            return parse_address(prefix + found["rest"])
    address = _parse(Scheme(scheme), rest)
    if address is None:
        if scheme == Scheme.NVML and rest.endswith("/locked_clocks"):
            hint = "NVML does not tell which clocks are locked, so they could not be put back; use applications_clocks"
        raise BadInputError(f"{_shown(text)} is no {scheme} setting that may be changed", hint=hint)
    return address


def _parse(scheme: Scheme, rest: str) -> Address | None:
    match scheme:
        case Scheme.FILE:
            return Address(scheme=scheme, key=rest) if _FILE.fullmatch(rest) else None
        case Scheme.SYSCTL:
            if "." not in rest.partition("/")[0]:  # net/ipv4/conf/eth0.5/rp_filter is net.ipv4.conf.eth0/5.rp_filter
                rest = rest.translate(_SWAPPED)
            return Address(scheme=scheme, key=rest) if _SYSCTL.fullmatch(rest) else None
        case Scheme.CGROUP | Scheme.MEMORY:
            path, _, item = rest.rpartition("/")
            known = item in _MEMORY_ITEMS if scheme is Scheme.MEMORY else _CGROUP_FILE.fullmatch(item) is not None
            return Address(scheme=scheme, key=path or "/", item=item) if rest.startswith("/") and known else None
        case _:
            found = _KEYED[scheme].fullmatch(rest)
            return Address(scheme=scheme, key=found["key"], item=found["item"]) if found else None


def sysctl_path(name: str) -> str:
    """Return the path below ``/proc/sys``, as sysctl(8) reads names.

    Whichever of dot and slash comes first parts the path, and the other stands for a dot within a name:
    ``net.ipv4.conf.eth0/5.rp_filter`` and ``net/ipv4/conf/eth0.5/rp_filter`` are the same.
    """
    separator = next((character for character in name if character in "./"), ".")
    return name.translate(_SWAPPED) if separator == "." else name


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else f"{text[:77]}…")


# --- contents ---------------------------------------------------------------------------------------------------------

_CHOICE = re.compile(r"(?:[\w+./-]+[ \t]+)*\[[\w+./-]+\](?:[ \t]+[\w+./-]+)*")
_LIST_NAMES = ("_list", "cpulist", "cpuset.cpus", "cpuset.mems", ".effective_cpus", ".effective_mems")
_MASK_NAMES = ("smp_affinity", "rps_cpus", "xps_cpus")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}")
_IDS = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?)*")


def content(text: str) -> str:
    """Return what would have to be written to get a content: of a choice the selected word, else the trimmed text."""
    trimmed = text.strip()
    if _CHOICE.fullmatch(trimmed):
        return trimmed[trimmed.index("[") + 1 : trimmed.index("]")]
    return trimmed


def choices(text: str) -> tuple[str, ...]:
    """Return the words that a choice file offers, empty for any other content."""
    trimmed = text.strip()
    return tuple(word.strip("[]") for word in trimmed.split()) if _CHOICE.fullmatch(trimmed) else ()


def parse_ids(text: str) -> frozenset[int] | None:
    """Return the CPUs or nodes of a list such as ``0-3,8``, None when the text is none."""
    trimmed = text.strip()
    if not trimmed:
        return frozenset()
    if not _IDS.fullmatch(trimmed):
        return None
    ids: set[int] = set()
    for part in trimmed.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= MAX_CPU:
            return None
        ids.update(range(int(first), int(last or first) + 1))
    return frozenset(ids)


def equal(address: str, one: str, other: str) -> bool:
    """Tell whether two contents of a setting mean the same, whichever of them was read or is wanted.

    Args:
        address: decides how the contents are read: lists and masks of CPUs, quotas, watts, choices, numbers.
        one, other: contents, with or without a newline at the end.
    """
    first, second = content(one), content(other)
    if first == second:
        return True
    item = address.rpartition("/")[2]
    if item.endswith(_LIST_NAMES):
        ids, others = parse_ids(first), parse_ids(second)
        return ids is not None and ids == others
    if item in _MASK_NAMES:
        mask, other_mask = _mask(first), _mask(second)
        return mask is not None and mask == other_mask
    if item == "power_limit":
        watts, other_watts = _watts(first), _watts(second)
        return watts is not None and other_watts is not None and abs(watts - other_watts) <= POWER_TOLERANCE_W
    words, other_words = first.split(), second.split()
    if item == "cpu.max" and 1 in (len(words), len(other_words)):
        words, other_words = words[:1], other_words[:1]  # a quota without a period keeps the period that is there
    return len(words) == len(other_words) > 0 and all(map(_same_word, words, other_words))


def _same_word(one: str, other: str) -> bool:
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
        return int(one) == int(other)
    return one == other


def _mask(text: str) -> int | None:
    digits = text.replace(",", "")
    return int(digits, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,2048}", digits) else None


def _watts(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", text) else None
