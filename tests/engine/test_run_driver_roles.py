"""An approval holds only while who gave it may still give it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError
from unveil.records.site import Profiles, Role

if TYPE_CHECKING:
    from collections.abc import Callable

ALICE = "uid:3999999999 pid:1"
OPERATOR = Role(name="operator", users=("3999999999",))
ADMIN = Role(name="admin", users=("3999999998",))
SITE = Profiles(roles=(OPERATOR, ADMIN), approvals={"high": "admin"})


def apply(here: Any, run: Any) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:3999999998 pid:2")
    return refused.value


@pytest.mark.parametrize(
    ("since", "told"),
    [
        (Profiles(roles=(ADMIN,)), "has no role now and may not approve low impact (who may: admin (3999999998))"),
        (Profiles(roles=SITE.roles, approvals={"low": "admin"}), "has operator now and may not approve low impact"),
        (Profiles(), "(who may: without roles, root and the watcher's user)"),
    ],
)
def test_an_approval_lapses_with_the_role_of_who_gave_it(rig: Callable[..., Any], since: Profiles, told: str) -> None:
    here = rig()
    here.site = SITE
    before = here.read()
    run = here.approved(ALICE)
    assert run.steps[-1].detail == "uid:3999999999 pid:1, by the role operator"
    here.site = since  # another generation came meanwhile
    refused = apply(here, run)
    assert told in refused.what
    assert here.states(run) == ["planned", "approved", "refused"]
    last = here.stored(run).steps[-1]
    assert (last.cause, last.actor) == ("approval lapsed", "watcher")
    assert told in last.detail
    assert here.read() == before
    assert here.driver.active == 0
    here.site = SITE  # and the role's return brings nothing back
    assert "refused, not approved" in apply(here, here.stored(run)).what


def test_an_approval_whose_giver_has_their_role_or_owns_the_watcher_waits_for_what_else_is_missing(
    rig: Callable[..., Any],
) -> None:
    here = rig()
    for site, actor in ((SITE, ALICE), (Profiles(), f"uid:{os.geteuid()} pid:1")):
        here.site, here.still_matching = site, True
        run = here.approved(actor)
        here.still_matching = None
        assert "still matches is unknown" in apply(here, run).what
        assert here.stored(run).state == "approved"
        here.driver.cancel(run, actor=actor)


def test_what_the_profile_approved_is_the_policys_to_judge(rig: Callable[..., Any]) -> None:
    here = rig()
    here.site = SITE
    run = here.approved("watcher")
    assert run.steps[-1].detail == ""
    here.still_matching = None
    assert "still matches is unknown" in apply(here, run).what
