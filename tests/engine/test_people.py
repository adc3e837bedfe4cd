from __future__ import annotations

import grp
import os
import pwd
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.people import admitted, entitled_by, person, refuse_approval, refuse_order
from unveil.errors import RefusedError
from unveil.records.site import Profiles, Role

if TYPE_CHECKING:
    from collections.abc import Callable

ME = f"uid:{os.geteuid()} pid:1"
NAME = pwd.getpwuid(os.geteuid()).pw_name
ADMINS = Profiles(roles=(Role(name="admin", users=("nobody-here",)),), approvals={"high": "admin"})


def test_a_peer_is_known_by_name_number_and_groups_and_anybody_else_by_nothing() -> None:
    me = person(ME)
    assert {NAME, str(os.geteuid())} <= me.users
    assert grp.getgrgid(pwd.getpwuid(os.geteuid()).pw_gid).gr_name in me.groups
    assert me.owner
    assert person("uid:3999999999 pid:1").users == {"3999999999"}
    assert person("watcher").users == frozenset()
    assert not person("uid:3999999999 pid:1").owner


def test_whom_the_kernel_cannot_name_has_no_role() -> None:
    site = Profiles(roles=(Role(name="operator", users=("nobody", "65534"), groups=("nogroup", "nobody")),))
    assert not admitted(65534, site)


def test_an_order_without_a_role_is_refused_and_says_which_there_are(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RefusedError, match="no role here, and may not order `apply`") as refused:
        refuse_order("apply", ME, ADMINS)
    assert "admin" in refused.value.hint
    assert caplog.messages == [f"refused the order apply of {ME}, who has no role"], "and leaves a trace"
    refuse_order("rollback", ME, ADMINS)
    refuse_order("apply", ME, Profiles())


def test_a_refused_approval_says_who_may() -> None:
    site = replace(ADMINS, roles=(*ADMINS.roles, Role(name="operator", users=(NAME,))))
    refuse_approval("r1", "low", ME, site)
    with pytest.raises(RefusedError, match=r"\(operator\) may not approve r1, which has high impact") as refused:
        refuse_approval("r1", "high", ME, site)
    assert refused.value.hint == "who may: admin (nobody-here)"


def test_a_user_whose_name_is_anothers_number_is_not_that_other(monkeypatch: pytest.MonkeyPatch) -> None:
    me = pwd.getpwuid(os.geteuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: type(me)(("1004", *me[1:])))
    assert person(ME).users == {str(os.geteuid())}


def test_the_record_says_by_which_role_somebody_approved() -> None:
    site = replace(ADMINS, roles=(*ADMINS.roles, Role(name="operator", users=(NAME,))))
    assert entitled_by("low", ME, site) == f"{NAME}, by the role operator"
    assert entitled_by("high", ME, site) == ""
    assert entitled_by("low", ME, Profiles()) == ""


def test_only_who_has_a_role_is_let_in_besides_the_owner() -> None:
    site = Profiles(roles=(Role(name="operator", users=("3999999999",)),))
    assert admitted(3999999999, site)
    assert not admitted(3999999998, site)
    assert not admitted(3999999999, Profiles())


def test_a_watcher_with_roles_answers_questions_and_refuses_orders_of_who_has_none(watch: Callable[..., Any]) -> None:
    watcher = watch()
    base = watcher.knowledge.current
    watcher.knowledge.current = replace(base, profiles=ADMINS)
    handle = watcher._commands.handle
    assert handle("ping", {}, ME) == "pong"
    with pytest.raises(RefusedError, match="no role here"):
        handle("silence", {"fingerprint": "*", "seconds": 60, "reason": "x"}, ME)
    watcher.open_door()
    assert watcher.state_dir.socket.stat().st_mode & 0o777 == 0o666
    assert watcher.state_dir.path.stat().st_mode & 0o777 == 0o711
    watcher.knowledge.current = base
    watcher.open_door()
    assert watcher.state_dir.socket.stat().st_mode & 0o777 == 0o600
