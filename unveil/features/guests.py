"""Guests: how long the virtual CPUs of virtual machines waited, and what carrying their packets took, from outside.

The wait of a virtual CPU is what its guest calls stolen time. It is seen here for every guest, whatever runs in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.features.families import across, counters, plain, ratio
from unveil.features.feature import Across, Channels, Feature, Formula, Pick, Picked, Stat, Trouble, feature
from unveil.features.ratios import STATES
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from unveil.records.fact import FactTable

_EITHER = Trouble.EITHER
_CGROUP = EntityKind.CGROUP
_TAPS = "network.cgroup_taps"


def _threads(names: str, role: str = "vcpu") -> tuple[Channels, ...]:
    return tuple(Channels(metric=f"cpu.{role}_{name}", stat=Stat.RATE, over=("cgroup", role)) for name in names.split())


def _own_taps(facts: FactTable, cgroup: Entity) -> Picked | None:
    """Return the interfaces that carry a virtual machine's packets, None where they are not known."""
    taps = facts.value(_TAPS, cgroup)
    return Picked(frozenset(taps)) if isinstance(taps, tuple) and taps else None


def _tap(names: str) -> tuple[Channels, ...]:
    own = Pick((_TAPS,), _own_taps)
    return tuple(Channels(metric=f"network.{name}", stat=Stat.RATE, over=("nic",), pick=own) for name in names.split())


_WAIT_SHARE = ratio(
    "cpu.vcpu_wait_share.rate",
    "share of the time in which its virtual CPUs could run that they waited: what the guest calls stolen",
    _threads("wait"),
    _threads("run wait"),
    each=_CGROUP,
)

EACH_GUEST: tuple[Feature, ...] = (
    _WAIT_SHARE,
    *(
        each
        for role, meaning in (("vcpu", "CPUs that its virtual CPUs used"), ("vhost", "CPUs used to carry its packets"))
        for each in plain(
            "cpu", (Stat.RATE,), "cores", {f"{role}_run": meaning}, over=(_CGROUP, role), each=_CGROUP, trouble=_EITHER
        )
    ),
    *(
        ratio(
            f"cpu.{role}_delay_per_slice.rate",
            f"how long {who} waited each time before it got a CPU",
            _threads("wait", role),
            _threads("slices", role),
            each=_CGROUP,
            unit="ms",
            scale=1e3,
        )
        for role, who in (("vcpu", "a virtual CPU"), ("vhost", "what carries its packets"))
    ),
    ratio(
        "cpu.vcpu_part.rate",
        "part of its CPU time that its virtual CPUs used, and not what emulates its devices",
        _threads("run"),
        (Channels(metric="cpu.cgroup_usage", stat=Stat.RATE, over=("cgroup",)),),
        each=_CGROUP,
        unit="1",
        trouble=Trouble.DOWN,
        log=False,
    ),
    ratio(
        "cpu.vhost_wait_share.rate",
        "share of the time in which what carries its packets could run that it waited",
        _threads("wait", "vhost"),
        _threads("run wait", "vhost"),
        each=_CGROUP,
    ),
    ratio(
        "cpu.vhost_per_gigabyte.rate",
        "CPU time spent per gigabyte that its interfaces carried",
        _threads("run", "vhost"),
        _tap("rx_bytes tx_bytes"),
        each=_CGROUP,
        unit="s/GB",
        scale=1e9,
    ),
    *(
        feature(
            f"network.cgroup_tap_{name}.rate",
            meaning,
            Formula(numerator=_tap(metric), each=_CGROUP),
            unit=unit,
            trouble=trouble,
        )
        for name, metric, unit, trouble, meaning in (
            ("sent_bytes", "rx_bytes", "bytes/s", _EITHER, "bytes that the guest sent through its interfaces"),
            ("received_bytes", "tx_bytes", "bytes/s", _EITHER, "bytes that the guest got through its interfaces"),
            ("dropped", "tx_dropped", "1/s", Trouble.UP, "packets for the guest that its interfaces dropped"),
        )
    ),
)

GUESTS_TOGETHER: tuple[Feature, ...] = (
    *across(_WAIT_SHARE, (Across.HIGHEST,)),  # one guest that has to wait is enough for the detectors
    ratio(
        "cpu.guest.rate",
        "share of CPU time in code of guests, under KVM",
        counters("cpu", "guest"),
        counters("cpu", STATES),
        trouble=_EITHER,
        detect=False,
    ),
    ratio(
        "cpu.guest_part.rate",
        "part of the time of virtual CPUs that was in code of their guests, and not in what serves it, under KVM",
        counters("cpu", "guest"),
        _threads("run"),
        unit="1",
        trouble=Trouble.DOWN,
        detect=False,
        log=False,
    ),
)
