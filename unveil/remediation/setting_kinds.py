"""The registry of managed settings: every kind that there is, and what the kernel or a driver moves along with it.

Pure text: which kind an address is of is read from the address alone. `unveil/execution/settings.py` reads, writes and
restores them; `setting.equal` says when two contents mean the same.

What is coupled is saved, compared and put back together: `ethtool -C rx-usecs` turns adaptive moderation off in some
drivers, a byte limit of dirty memory sets the ratio to 0, another I/O scheduler brings its own queue length. A
rollback that wrote only what was asked for would leave the rest behind.

Sources: kernel documentation admin-guide/sysctl/vm, block/queue-sysfs, admin-guide/pm/cpufreq,
networking/ethtool-netlink.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.remediation.setting import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of managed setting.

    Attributes:
        pattern: what an address of this kind looks like, the whole of it.
        unit: what its content is in, for a person.
        coupled: addresses that move along, as templates over the pattern's groups (``\\g<name>``); those that a host
            does not have are left out when a plan is drawn.
        observed: it is a state, not a knob: saved, compared and shown, never written, so never put back.
        note: what a person should know before writing it.
    """

    name: str
    pattern: re.Pattern[str]
    unit: str = ""
    coupled: tuple[str, ...] = ()
    observed: bool = False
    note: str = ""


def _kind(
    name: str, pattern: str, unit: str = "", *, coupled: Iterable[str] = (), observed: bool = False, note: str = ""
) -> Kind:
    return Kind(name=name, pattern=re.compile(pattern), unit=unit, coupled=tuple(coupled), observed=observed, note=note)


_CPU = "file:/sys/devices/system/cpu/cpu[0-9]+"
_FREQUENCY = r"file:(?P<policy>/sys/devices/system/cpu/(?:cpu[0-9]+/cpufreq|cpufreq/policy[0-9]+))"
_GOVERNING = ("scaling_governor", "energy_performance_preference", "scaling_min_freq", "scaling_max_freq")
_QUEUE = r"file:(?P<queue>/sys/block/[^/]+/queue)"
_NIC = r"(?P<nic>/sys/class/net/[^/]+)"
_OFFLOADS = (
    "rx-gro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-lro", "rx-checksum", "rx-hashing",
    "rx-ntuple-filter", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation", "tx-udp-segmentation", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6",
    "tx-scatter-gather", "tx-nocache-copy",
)  # fmt: skip
_MODERATION = ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames", "adaptive-rx", "adaptive-tx")

# The first that fits holds; the last of each scheme takes what no other names.
KINDS: tuple[Kind, ...] = (
    _kind(
        "CPU frequency",
        f"{_FREQUENCY}/(?:{'|'.join(_GOVERNING)})",
        "kHz, or a name",
        coupled=(rf"file:\g<policy>/{name}" for name in _GOVERNING),
        note="CPUs of one policy share it",
    ),
    _kind("CPU idle state", _CPU + r"/cpuidle/state[0-9]+/disable", note="states have names: /cpuidle/stateN/name"),
    _kind("CPU wake-up latency", _CPU + r"/power/pm_qos_resume_latency_us", "us, or n/a"),
    _kind(
        "I/O scheduler",
        _QUEUE + "/scheduler",
        coupled=(r"file:\g<queue>/nr_requests", r"file:\g<queue>/wbt_lat_usec"),
        note="each scheduler brings its own queue length",
    ),
    _kind("block queue", _QUEUE + "/.+"),
    _kind("receive packet steering", rf"file:{_NIC}/queues/rx-[0-9]+/rps_(?:cpus|flow_cnt)", "mask of CPUs, or flows"),
    _kind("transmit packet steering", rf"file:{_NIC}/queues/tx-[0-9]+/xps_(?:cpus|rxqs)", "mask of CPUs or queues"),
    _kind("network interface", rf"file:{_NIC}/.+"),
    _kind("kernel file", "file:.+"),
    _kind("limit of dirty memory", r"sysctl:vm\.dirty_(?:bytes|ratio)", "bytes, or per cent",
          coupled=("sysctl:vm.dirty_bytes", "sysctl:vm.dirty_ratio"), note="of the two one is 0"),
    _kind("background limit of dirty memory", r"sysctl:vm\.dirty_background_(?:bytes|ratio)", "bytes, or per cent",
          coupled=("sysctl:vm.dirty_background_bytes", "sysctl:vm.dirty_background_ratio"), note="of the two one is 0"),
    _kind("limit of overcommitted memory", r"sysctl:vm\.overcommit_(?:kbytes|ratio)", "kB, or per cent",
          coupled=("sysctl:vm.overcommit_kbytes", "sysctl:vm.overcommit_ratio"), note="of the two one is 0"),
    _kind("kernel parameter", "sysctl:.+"),
    _kind("CPUs of an interrupt", "irq:.+", "CPUs",
          note="interrupts that the kernel manages refuse it; irqbalance writes it, too"),
    _kind("ban of an interrupt from irqbalance", "irqbalance:.+", "yes or no", note="until irqbalance is restarted"),
    _kind("memory limit of a cgroup", r"cgroup:(?P<path>.+)/memory\.(?:memsw\.)?limit_in_bytes", "bytes",
          coupled=(r"cgroup:\g<path>/memory.limit_in_bytes", r"cgroup:\g<path>/memory.memsw.limit_in_bytes")),
    _kind("cpuset of a cgroup", r"cgroup:.+/cpuset\..+", "CPUs or nodes"),
    _kind("control file of a cgroup", "cgroup:.+"),
    _kind("rings of a NIC", r"(?P<nic>ethtool:[^/]+/ring)/.+", "packets",
          coupled=(rf"\g<nic>/{name}" for name in ("rx", "tx", "rx-mini", "rx-jumbo")),
          note="the link goes down for a moment with many drivers"),
    _kind("channels of a NIC", r"(?P<nic>ethtool:[^/]+/channels)/.+", "queues",
          coupled=(rf"\g<nic>/{name}" for name in ("rx", "tx", "other", "combined")),
          note="the link goes down for a moment with many drivers"),
    _kind("interrupt moderation of a NIC", r"(?P<nic>ethtool:[^/]+/coalesce)/.+", "us, frames, on or off",
          coupled=(rf"\g<nic>/{name}" for name in _MODERATION)),
    _kind("offload of a NIC", r"(?P<nic>ethtool:[^/]+/feature)/.+", "on or off",
          coupled=(rf"\g<nic>/{name}" for name in _OFFLOADS), note="one may switch others off"),
    _kind("power limit of a GPU", "nvml:.+/power_limit", "W"),
    _kind("persistence mode of a GPU", "nvml:.+/persistence_mode", "on or off"),
    _kind("application clocks of a GPU", "nvml:.+/applications_clocks", "MHz: memory,SM"),
    _kind("service", "(?P<unit>service:.+)/(?:active|enabled)", note="where systemd is; a restart loses its state"),
    _kind("memory of a cgroup by node", "memory:.+/nodes", "share of its anonymous memory", observed=True,
          note="where pages were is not put back"),
    _kind("huge pages of a cgroup", "memory:.+/huge_pages", "share of its anonymous memory", observed=True,
          note="memory that was made huge stays so"),
)  # fmt: skip


def kind_of(address: str) -> Kind:
    """Return the kind of an address that `parse_address` accepted."""
    return next(kind for kind in KINDS if kind.pattern.fullmatch(address))


def coupled_with(address: str) -> tuple[str, ...]:
    """Return the addresses that the kernel or a driver may move along with one, itself left out."""
    kind = kind_of(address)
    found = kind.pattern.fullmatch(address)
    assert found is not None  # kind_of has just matched it
    names = (found.expand(template) for template in kind.coupled)
    return tuple(name for name in names if name != address)


def lock_of(address: str) -> str:
    """Return what two runs may not have in hand at once: the same setting, under whichever name."""
    return f"{address}_list" if address.startswith("irq:") and address.endswith("/smp_affinity") else address


def observed(address: str) -> bool:
    """Tell whether an address names a state that is only looked at."""
    return address.startswith(f"{Scheme.MEMORY}:")
