"""Roles: which people may give orders, and which of them may approve a fix of some impact. The site says so.

Without roles whoever may talk to the watcher may order. With roles, who has none may only look. What undoes something
is left to whoever owns the watcher all the same: a role that was forgotten must not keep a rollback from being made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.records.site import Profiles

UNDOING = frozenset({"cancel", "rollback"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who gives an order, as the host's own user database knows them.

    Attributes:
        users: name and number.
        owner: the watcher's own user, or root.
    """

    users: frozenset[str]
    groups: frozenset[str] = frozenset()
    owner: bool = False


def roles_of(person: Person, site: Profiles) -> tuple[str, ...]:
    """Return the roles of a person, in the site's order."""
    return tuple(
        role.name
        for role in site.roles
        if not person.users.isdisjoint(role.users) or not person.groups.isdisjoint(role.groups)
    )


def may_order(order: str, person: Person, site: Profiles) -> bool:
    """Tell whether a person may give an order at all; what is approved is another question."""
    return not site.roles or bool(roles_of(person, site)) or (person.owner and order in UNDOING)


def may_approve(impact: str, person: Person, site: Profiles) -> bool:
    """Tell whether a person may approve a fix of an impact."""
    mine = roles_of(person, site)
    wanted = site.approvals.get(impact)
    return not site.roles or (wanted in mine if wanted is not None else bool(mine))


def still_approves(impact: str, person: Person, site: Profiles) -> bool:
    """Tell whether the approval that a person gave holds now: without roles only its owner's does."""
    return may_approve(impact, person, site) if site.roles else person.owner


def approvers(impact: str, site: Profiles) -> str:
    """Return who may approve a fix of an impact, in words; empty when the site has no roles."""
    wanted = site.approvals.get(impact)
    asked = [role for role in site.roles if wanted in (None, role.name)]
    return "; ".join(f"{role.name} ({role.members})" for role in asked)
