from __future__ import annotations

import pytest

from unveil.records.site import Profiles, Role
from unveil.remediation.roles import Person, approvers, may_approve, may_order, roles_of, still_approves

SITE = Profiles(
    roles=(Role(name="operator", users=("alice", "1001"), groups=("oncall",)), Role(name="admin", users=("root",))),
    approvals={"high": "admin"},
)
ALICE = Person(users=frozenset({"alice", "1000"}))
ROOT = Person(users=frozenset({"root", "0"}), owner=True)
NOBODY = Person(users=frozenset({"mallory", "1666"}), groups=frozenset({"users"}))
OWNER = Person(users=frozenset({"unveil", "990"}), owner=True)


def test_a_role_is_held_by_name_by_number_and_by_group() -> None:
    assert roles_of(ALICE, SITE) == ("operator",)
    assert roles_of(Person(users=frozenset({"1001"})), SITE) == ("operator",)
    assert roles_of(Person(users=frozenset({"bob"}), groups=frozenset({"oncall"})), SITE) == ("operator",)
    assert roles_of(NOBODY, SITE) == ()


@pytest.mark.parametrize(
    ("person", "low", "high"),
    [(ALICE, True, False), (ROOT, False, True), (NOBODY, False, False), (OWNER, False, False)],
)
def test_high_impact_is_for_the_role_that_the_site_names_and_the_rest_for_every_role(
    person: Person, low: bool, high: bool
) -> None:
    site = Profiles(roles=SITE.roles, approvals={"high": "admin", "low": "operator"})
    assert (may_approve("low", person, site), may_approve("high", person, site)) == (low, high)
    assert may_approve("medium", person, site) == bool(roles_of(person, site))


def test_whoever_has_no_role_only_looks_but_the_owner_may_always_undo() -> None:
    assert not may_order("apply", NOBODY, SITE)
    assert not may_order("rollback", NOBODY, SITE)
    assert not may_order("silence", OWNER, SITE)
    assert may_order("rollback", OWNER, SITE)
    assert may_order("cancel", OWNER, SITE)
    assert may_order("apply", ALICE, SITE)


def test_without_roles_whoever_may_talk_may_order_and_approve() -> None:
    assert may_order("apply", NOBODY, Profiles())
    assert may_approve("high", NOBODY, Profiles())
    assert approvers("high", Profiles()) == ""


def test_an_approval_holds_as_long_as_its_person_may_give_it_and_without_roles_only_the_owners_does() -> None:
    assert still_approves("low", ALICE, SITE)
    assert not still_approves("high", ALICE, SITE)
    assert not still_approves("low", OWNER, SITE)
    assert still_approves("high", OWNER, Profiles())
    assert not still_approves("low", ALICE, Profiles())


def test_who_may_approve_is_said_in_words() -> None:
    assert approvers("high", SITE) == "admin (root)"
    assert approvers("low", SITE) == "operator (alice, 1001, group oncall); admin (root)"
