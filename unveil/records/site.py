"""What a site owns beside the knowledge: filters (declared exceptions) and profiles (how far automation may go)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODES = tuple(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A site's declared exception: what is on purpose here. Tuning never edits a fingerprint.

    Attributes:
        fingerprints: names it is about.
        hosts, entities: shell-style patterns over host names and over entities as text (``cgroup:/pods/*``).
        effect: ``suppress`` (no episode at all) or ``no_remediation`` (seen, never acted upon).
        expires: last day it holds, ``YYYY-MM-DD``; expires_s is the end of that day, UTC, in seconds since the epoch.
    """

    name: str
    id: str
    title: str
    owner: str
    reason: str
    fingerprints: tuple[str, ...]
    expires: str
    expires_s: float
    hosts: tuple[str, ...] = ("*",)
    entities: tuple[str, ...] = ("*",)
    effect: str = "no_remediation"
    path: str = ""

    def covers(self, fingerprint: str, entity: str, host: str, at_s: float) -> bool:
        """Return whether it holds for a fingerprint on an entity (as text) of a host at a time."""
        return (
            at_s < self.expires_s
            and fingerprint in self.fingerprints
            and any(fnmatchcase(host, pattern) for pattern in self.hosts)
            and any(fnmatchcase(entity, pattern) for pattern in self.entities)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A stretch of days in which nothing is applied, whoever asks. Rollbacks go on.

    Attributes:
        first, last: days, ``YYYY-MM-DD``; from_s and until_s are the beginning of the first and the end of the last
            day, UTC, in seconds since the epoch.
    """

    first: str
    last: str
    from_s: float
    until_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How far automation may go on some hosts.

    Attributes:
        hosts: shell-style patterns over host names.
        groups: names of inventory groups; a host belongs to the profile by its name or by a group.
        remediations: remediation name → mode, instead of *mode*.
    """

    name: str
    mode: Mode
    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    remediations: Mapping[str, Mode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """People who may give orders.

    Attributes:
        users: names of users of the host, or their numbers as text.
        groups: names of groups of the host.
    """

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def members(self) -> str:
        """Return who has it, in words."""
        return ", ".join((*self.users, *(f"group {group}" for group in self.groups)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The profiles of a site, first match wins; a host that none names gets *default*, which is to observe only.

    Attributes:
        roles: who may give orders; without any, whoever may talk to the watcher.
        approvals: impact of a remediation → role that approves it; of another impact, every role.
        maintenance: windows in which automation may act (``Sat-Sun 02:00-06:00``, UTC); none is always.
        freezes: when nothing is applied at all.
    """

    default: Mode = Mode.OBSERVE
    profiles: tuple[Profile, ...] = ()
    maintenance: tuple[str, ...] = ()
    freezes: tuple[Freeze, ...] = ()
    roles: tuple[Role, ...] = ()
    approvals: Mapping[str, str] = field(default_factory=dict)

    @property
    def grants(self) -> tuple[str, ...]:
        """Return in words what it allows beyond looking on, one a line; empty when it only observes."""
        modes = [] if self.default is Mode.OBSERVE else [f"mode {self.default} on every host that no profile names"]
        for each in self.profiles:
            if {each.mode, *each.remediations.values()} != {Mode.OBSERVE}:
                where = ", ".join((*each.hosts, *(f"group {group}" for group in each.groups)))
                single = "".join(f"; {name}: {mode}" for name, mode in each.remediations.items())
                modes.append(f"profile {each.name}: {each.mode} on {where}{single}")
        roles = [f"role {each.name}: {each.members}" for each in self.roles]
        approved = [f"{impact} impact is approved by {role}" for impact, role in self.approvals.items() if roles]
        return (*modes, *roles, *approved)

    def withheld(self) -> Profiles:
        """Return the same without what it grants; what only holds back stays."""
        return replace(self, default=Mode.OBSERVE, profiles=(), roles=(), approvals={})

    def mode(self, remediation: str, upper_bound: Mode, *, host: str, groups: tuple[str, ...] = ()) -> Mode:
        """Return the mode that holds on a host: what its profile says, never above the remediation's own mode."""
        wanted = self.default
        for profile in self.profiles:
            named = any(fnmatchcase(host, pattern) for pattern in profile.hosts)
            if named or not set(groups).isdisjoint(profile.groups):
                wanted = profile.remediations.get(remediation, profile.mode)
                break
        return min(wanted, upper_bound, key=_MODES.index)
