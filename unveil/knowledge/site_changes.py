"""What a change of a site's inventory means: values, how far automation may go, and who may order and approve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.knowledge.change import Change, Effect, listed
from unveil.knowledge.remediation_changes import raised
from unveil.records.codec import encode
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.change import Told
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.site import Profiles, Role

_MODES = tuple(Mode)
_MOST_HOSTS = 5  # that are named


def site_changes(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Change]:
    """Yield what differs in the inventory, but for its filters."""
    for name in sorted(old.site.keys() | new.site.keys()):
        before, after = old.site.get(name), new.site.get(name)
        if before != after:
            effect = Effect.ADDED if before is None else Effect.REMOVED if after is None else Effect.CHANGED
            yield Change(kind="value", name=name, effect=effect, what=f"{before} → {after}")
    was, now = old.profiles, new.profiles
    for effect, what in raised("default", was.default, now.default, _MODES):
        yield Change(kind="profiles", name="default", effect=effect, what=what)
    before_by_name, after_by_name = (
        {each.name: encode(each) for each in profiles.profiles} for profiles in (was, now)
    )  # fmt: skip
    for name in sorted(before_by_name.keys() | after_by_name.keys()):
        yield from _profile(name, before_by_name.get(name), after_by_name.get(name))
    if list(before_by_name) != list(after_by_name) and sorted(before_by_name) == sorted(after_by_name):
        what = f"in another order, and the first that names a host holds: {', '.join(after_by_name)}"
        yield Change(kind="profiles", name="order", effect=Effect.CHANGED, what=what)
    yield from _groups(old, new)
    yield from _people(was, now)
    yield from _times(was, now)


def _profile(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Change]:
    if old is None and new is not None:
        yield Change(kind="profiles", name=name, effect=Effect.RISK, what=f"is new: mode {new['mode']}")
    elif new is None:
        yield Change(kind="profiles", name=name, effect=Effect.CHANGED, what="is gone")
    elif old is not None:
        for effect, what in raised("mode", old["mode"], new["mode"], _MODES):
            yield Change(kind="profiles", name=name, effect=effect, what=what)
        for field in ("hosts", "groups", "remediations"):
            if old[field] != new[field]:
                what = f"{field} {old[field]} → {new[field]}"
                yield Change(kind="profiles", name=name, effect=Effect.CHANGED, what=what)


def _groups(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Change]:
    """Yield which hosts are in other groups, where a profile asks for groups."""
    if any(each.groups for each in (*old.profiles.profiles, *new.profiles.profiles)):
        hosts = [
            host for host in sorted({*old.groups, *new.groups}) if old.groups.get(host) != new.groups.get(host)
        ]  # fmt: skip
        if hosts:
            more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
            what = f"other groups, which profiles ask for: {', '.join(hosts[:_MOST_HOSTS])}{more}"
            yield Change(kind="profiles", name="hosts", effect=Effect.CHANGED, what=what)


def _people(old: Profiles, new: Profiles) -> Iterator[Change]:
    """Yield who may order and approve that could not, and who may no longer."""
    was, now = ({role.name: role for role in profiles.roles} for profiles in (old, new))
    for name in sorted(was.keys() | now.keys()):
        for effect, what in _role(was.get(name), now.get(name)):
            yield Change(kind="role", name=name, effect=effect, what=what)
    if bool(was) != bool(now):
        what = "the first: only who has a role may order" if now else "none is left: only the watcher's owner may order"
        yield Change(kind="role", name="all", effect=Effect.RISK, what=what)
    for impact in sorted(old.approvals.keys() | new.approvals.keys()):
        before, after = old.approvals.get(impact), new.approvals.get(impact)
        if before != after:
            effect = Effect.TIGHTENED if before is None else Effect.RISK
            what = f"{impact} impact is approved by {before or 'every role'} → {after or 'every role'}"
            yield Change(kind="role", name=after or before or "", effect=effect, what=what)


def _role(old: Role | None, new: Role | None) -> Iterator[Told]:
    if old is None and new is not None:
        yield Effect.RISK, f"is new: {new.members}"
    elif new is None:
        yield Effect.TIGHTENED, "is gone"
    elif old is not None:
        yield from listed("user", old.users, new.users, gone=Effect.TIGHTENED, came=Effect.RISK)
        yield from listed("group", old.groups, new.groups, gone=Effect.TIGHTENED, came=Effect.RISK)


def _times(old: Profiles, new: Profiles) -> Iterator[Change]:
    """Yield when something may be done that might not, and when no longer."""
    windows = list(listed("window", old.maintenance, new.maintenance, gone=Effect.CHANGED, came=Effect.CHANGED))
    was, now = (
        tuple(f"{each.first} to {each.last}" for each in profiles.freezes) for profiles in (old, new)
    )  # fmt: skip
    frozen = listed("freeze", was, now, gone=Effect.RISK, came=Effect.TIGHTENED)
    for name, told in (("maintenance", windows), ("freezes", frozen)):
        for effect, what in told:
            yield Change(kind="profiles", name=name, effect=effect, what=what)
