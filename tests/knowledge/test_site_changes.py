"""Who may order and approve, and when, is told to a reviewer as what it is."""

from __future__ import annotations

from dataclasses import replace

from unveil.knowledge.knowledge_base import KnowledgeBase
from unveil.knowledge.site_changes import site_changes
from unveil.records.remediation import Mode
from unveil.records.site import Freeze, Profile, Profiles, Role

ALICE, ADMIN = Role(name="operator", users=("alice",)), Role(name="admin", users=("root",), groups=("adm",))
SITE = Profiles(roles=(ALICE, ADMIN), approvals={"high": "admin"})
CLOSED = Freeze(first="2026-12-20", last="2027-01-03", from_s=0.0, until_s=1.0, reason="closed")


def told(old: Profiles, new: Profiles, **groups: dict[str, tuple[str, ...]]) -> list[str]:
    was = KnowledgeBase(generation=1, digest="", root="", profiles=old, groups=groups.get("before", {}))
    now = KnowledgeBase(generation=2, digest="", root="", profiles=new, groups=groups.get("after", {}))
    return [f"{each.effect} {each.kind} {each.name}: {each.what}" for each in site_changes(was, now)]


def test_whoever_gains_a_role_is_a_risk_and_whoever_loses_one_is_not() -> None:
    mallory = replace(ALICE, users=("alice", "mallory"), groups=("oncall",))
    assert told(SITE, replace(SITE, roles=(mallory, ADMIN))) == [
        "risk role operator: user mallory is new",
        "risk role operator: group oncall is new",
    ]
    assert told(SITE, replace(SITE, roles=(ADMIN,))) == ["tightened role operator: is gone"]
    assert told(Profiles(roles=(ADMIN,)), replace(SITE, approvals={})) == ["risk role operator: is new: alice"]
    assert told(SITE, SITE) == []


def test_the_first_role_and_the_last_change_who_may_order_at_all() -> None:
    assert told(Profiles(), Profiles(roles=(ADMIN,))) == [
        "risk role admin: is new: root, group adm",
        "risk role all: the first: only who has a role may order",
    ]
    assert told(Profiles(roles=(ADMIN,)), Profiles())[-1].startswith("risk role all: none is left: only the watcher")


def test_another_approver_is_a_risk_and_one_where_every_role_was_is_tighter() -> None:
    assert told(SITE, replace(SITE, approvals={"high": "operator"})) == [
        "risk role operator: high impact is approved by admin → operator"
    ]
    assert told(SITE, replace(SITE, approvals={})) == ["risk role admin: high impact is approved by admin → every role"]
    assert told(replace(SITE, approvals={}), SITE) == [
        "tightened role admin: high impact is approved by every role → admin"
    ]


def test_a_freeze_that_is_gone_is_a_risk_and_windows_are_told() -> None:
    assert told(Profiles(freezes=(CLOSED,)), Profiles(maintenance=("02:00-04:00",))) == [
        "changed profiles maintenance: window 02:00-04:00 is new",
        "risk profiles freezes: freeze 2026-12-20 to 2027-01-03 is gone",
    ]


def test_a_host_that_goes_to_another_group_is_told_where_a_profile_asks_for_groups() -> None:
    asks = Profiles(profiles=(Profile(name="lab", mode=Mode.MANUAL, groups=("lab",)),))
    hosts = {f"n{n}": ("lab",) for n in range(7)}
    assert told(asks, asks, before={}, after=hosts) == [
        "changed profiles hosts: other groups, which profiles ask for: n0, n1, n2, n3, n4 and 2 more"
    ]
    assert told(Profiles(), Profiles(), before={}, after=hosts) == []
