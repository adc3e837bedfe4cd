"""Who gives an order: from what the kernel says of a peer to the names that a site's roles are written with."""

from __future__ import annotations

import grp
import logging
import os
import pwd
import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from unveil.errors import RefusedError
from unveil.remediation.roles import Person, approvers, may_approve, may_order, roles_of, still_approves

if TYPE_CHECKING:
    from unveil.records.site import Profiles

_LOG = logging.getLogger(__name__)
REMEMBERED_S = 10.0  # who merely knocks is looked up no oftener: the user database may be another host's
_NOBODY = 65534  # whom the kernel cannot name, e.g. out of a container's user namespace: no single user
_PEER = re.compile(r"uid:([0-9]+)\b")  # `uid:1000 pid:4711`, as the control socket names who asks


def person(actor: str) -> Person:
    """Return who an actor is, with the groups that the host's user database says; nobody where it is no user."""
    found = _PEER.match(actor)
    if found is None:
        return Person(users=frozenset())
    uid = int(found[1])
    owner = uid in (0, os.geteuid())
    if uid == _NOBODY:
        return Person(users=frozenset(), owner=owner)
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a user of a container, say: its number alone is known here
        return Person(users=frozenset({str(uid)}), owner=owner)
    groups = set()
    for gid in os.getgrouplist(entry.pw_name, entry.pw_gid):
        try:
            groups.add(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    # A user who is called 1004 is not number 1004.
    names = {str(uid)} if entry.pw_name.isdecimal() else {str(uid), entry.pw_name}
    return Person(users=frozenset(names), groups=frozenset(groups), owner=owner)


def admitted(uid: int, site: Profiles) -> bool:
    """Tell whether a user other than the watcher's own may talk to it: whoever has a role may."""
    return bool(site.roles) and bool(roles_of(_lately(uid, int(time.monotonic() / REMEMBERED_S)), site))


@lru_cache(maxsize=256)
def _lately(uid: int, _stretch: int) -> Person:
    return person(f"uid:{uid}")


def refuse_order(order: str, actor: str, site: Profiles) -> None:
    """Refuse an order of someone without a role, where the site has roles.

    Raises:
        RefusedError: they may look, not order.
    """
    if site.roles and not may_order(order, person(actor), site):
        _LOG.warning("refused the order %s of %s, who has no role", order, actor)
        raise RefusedError(
            f"{_named(actor)} has no role here, and may not order `{order}`",
            hint=f"roles are in inventory/profiles.yml: {', '.join(role.name for role in site.roles)}",
        )


def refuse_approval(run: str, impact: str, actor: str, site: Profiles) -> None:
    """Refuse the approval of someone who does not have the role that the site asks for.

    Raises:
        RefusedError: who may approve it is said.
    """
    if site.roles and not may_approve(impact, person(actor), site):
        mine = ", ".join(roles_of(person(actor), site)) or "no role"
        _LOG.warning("refused the approval of %s, of %s impact, by %s, who has %s", run, impact, actor, mine)
        raise RefusedError(
            f"{_named(actor)} ({mine}) may not approve {run}, which has {impact} impact",
            hint=f"who may: {approvers(impact, site)}",
        )


def entitled_by(impact: str, actor: str, site: Profiles) -> str:
    """Return who approves a fix, and by which roles, for the record; empty where the site has no roles."""
    mine = ", ".join(role for role in roles_of(person(actor), site) if site.approvals.get(impact, role) == role)
    return f"{_named(actor)}, by the role {mine}" if mine else ""


def lapsed(impact: str, actor: str, site: Profiles) -> str:
    """Return why the approval of *actor* holds no longer, empty where it does.

    Asked at the last moment, of the generation and the user database that are there then: who left, or whose role was
    taken or lowered since, must not have the host changed by what they said before.
    """
    approver = person(actor)
    if still_approves(impact, approver, site):
        return ""
    mine = ", ".join(roles_of(approver, site)) or "no role"
    who = approvers(impact, site) or "without roles, root and the watcher's user"
    return f"approved by {_named(actor)}, who has {mine} now and may not approve {impact} impact (who may: {who})"


def _named(actor: str) -> str:
    names = sorted(name for name in person(actor).users if not name.isdigit())
    return names[0] if names else actor
