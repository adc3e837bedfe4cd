"""Roles and modes hold only where nobody but root and the watcher's user can write them."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.granting import why_withheld
from unveil.engine.knowledge import KnowledgeInUse
from unveil.records.remediation import Mode
from unveil.records.site import Profile, Profiles, Role

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROLES = Profiles(roles=(Role(name="operator", users=("3999999999",)),))
BY_GROUP = Profiles(profiles=(Profile(name="lab", mode=Mode.MANUAL, groups=("lab",)),))
HEAD = "apiVersion: unveil/v1\nkind: Profiles\ndefault: manual\nprofiles: []\n"
WITH_ROLES = f"{HEAD}roles: [{{name: operator, users: ['3999999999', '{os.geteuid()}']}}]\n"
ME, OTHER = f"uid:{os.geteuid()} pid:1", 3999999999
HOUR_NS = 3600 * 10**9


@pytest.fixture
def site(kb: Path) -> Path:
    """Give a knowledge base below a folder of its own, whose inventory grants roles."""
    (kb / "inventory/profiles.yml").write_text(WITH_ROLES)
    (kb / "inventory/hosts.yml").write_text("all: {}\n")
    return kb


@pytest.mark.parametrize("open_to_all", [".", "inventory", "inventory/profiles.yml", ".."])
def test_whoever_can_write_or_replace_the_file_could_grant_themselves_a_role(site: Path, open_to_all: str) -> None:
    assert why_withheld(site, ROLES) == ""
    path = site / open_to_all
    mode = path.stat().st_mode & 0o7777
    path.chmod(mode | 0o002)
    why = why_withheld(site, ROLES)
    assert str(path.resolve()) in why
    assert "only root and the watcher's user may order" in why
    assert "chmod go-w" in why
    assert why_withheld(site, Profiles()) == "", "a file that grants nothing is nobody's affair"
    path.chmod(mode)
    assert why_withheld(site, ROLES) == ""


def test_a_link_to_the_knowledge_base_counts_with_all_that_it_leads_through(site: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    link = shared / "kb"
    link.symlink_to(site)
    assert why_withheld(link, ROLES) == ""
    shared.chmod(0o777)
    assert str(shared) in why_withheld(link, ROLES)


def test_what_cannot_be_looked_at_grants_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr("unveil.engine.granting.refuse_open_to_others", gone)
    assert "cannot be told (No such file or directory)" in why_withheld(site, ROLES)
    monkeypatch.undo()
    (site / "inventory/profiles.yml").unlink()
    assert why_withheld(site, ROLES).endswith("No such file or directory (read what it says now, write it anew)")


@pytest.mark.root
def test_another_owner_and_a_strangers_group_count(site: Path) -> None:
    file = site / "inventory/profiles.yml"
    os.chown(file, 1234, -1)
    assert str(file) in why_withheld(site, ROLES)
    os.chown(file, 0, 1234)
    assert why_withheld(site, ROLES) == ""
    file.chmod(0o664)
    assert str(file) in why_withheld(site, ROLES)


def test_the_file_that_says_who_is_in_a_group_counts_where_a_profile_asks_for_groups(site: Path) -> None:
    hosts = site / "inventory/hosts.yml"
    hosts.chmod(0o666)
    assert why_withheld(site, ROLES) == ""
    assert str(hosts) in why_withheld(site, BY_GROUP)
    hosts.unlink()
    assert why_withheld(site, BY_GROUP) == ""


def test_what_is_withheld_is_what_is_granted_and_what_holds_back_stays(site: Path) -> None:
    freeze = "freezes: [{first: '2026-12-20', last: '2027-01-03', reason: closed}]\n"
    file = site / "inventory/profiles.yml"
    file.write_text(WITH_ROLES + freeze)
    file.chmod(0o666)
    with closing(KnowledgeInUse(str(site), now_s=1.0)) as knowledge:
        (fix,) = knowledge.current.remediations
        assert knowledge.mode(fix, profile="site", host="h") is Mode.OBSERVE
        assert knowledge.mode(fix, profile="manual", host="h") is Mode.MANUAL
        assert knowledge.current.profiles.roles == ()
        assert knowledge.current.profiles.freezes
        assert knowledge.state.withheld_at_s == 1.0
        assert knowledge.look_at_grants(2.0) is None
        file.chmod(0o644)
        assert "others could write" in knowledge.look_at_grants(2.5).withheld
        knowledge.rescan()  # its owner says that it is right
        assert knowledge.look_at_grants(3.0) is knowledge.state
        assert (knowledge.state.withheld, knowledge.state.withheld_at_s) == ("", 3.0)
        assert knowledge.mode(fix, profile="site", host="h") is Mode.MANUAL


def test_a_watcher_shuts_the_door_says_why_and_writes_it_down_until_the_file_is_its_owners_again(
    watch: Callable[..., Any], site: Path
) -> None:
    watcher = watch(profile="site")
    seconds = iter(range(1000))

    def look() -> None:
        watcher._housekeeping.second(HOUR_NS + 10 * 10**9 * next(seconds))

    def withheld() -> Any:
        look()
        return watcher.status()["problems"], watcher.queries.knowledge().withheld

    socket = watcher.state_dir.socket
    assert withheld() == ([], "")
    assert watcher._server._welcome(OTHER)
    (site / "inventory/profiles.yml").chmod(0o666)
    (problem,), written = withheld()
    assert problem == written
    assert "inventory/profiles.yml may be written by others" in problem
    assert not watcher._server._welcome(OTHER)
    assert socket.stat().st_mode & 0o777 == 0o600
    assert watcher._commands.handle("ping", {}, ME) == "pong"
    watcher._commands.handle("silence", {"fingerprint": "*", "seconds": 60, "reason": "x"}, ME)
    (site / "inventory/profiles.yml").chmod(0o644)
    assert withheld() == ([], "")
    assert watcher._server._welcome(OTHER)
    assert socket.stat().st_mode & 0o777 == 0o666


def test_a_role_that_was_written_into_an_open_file_is_never_held(watch: Callable[..., Any], site: Path) -> None:
    file = site / "inventory/profiles.yml"
    file.write_text(HEAD)
    file.chmod(0o666)
    watcher = watch(profile="site")
    file.write_text(WITH_ROLES)
    watcher.knowledge.rescan()
    end = time.monotonic() + 60
    while watcher.knowledge.current.generation < 2 and time.monotonic() < end:
        watcher._housekeeping.take_up(0)
        assert not watcher._server._welcome(OTHER)
        time.sleep(0.02)
    assert watcher.knowledge.current.generation == 2
    assert watcher.queries.knowledge().withheld
    assert watcher.state_dir.socket.stat().st_mode & 0o777 == 0o600


def test_what_was_written_into_an_open_file_stays_in_doubt_until_it_says_something_else(
    watch: Callable[..., Any], site: Path
) -> None:
    file = site / "inventory/profiles.yml"
    file.chmod(0o666)
    watcher = watch(profile="site")
    file.chmod(0o644)

    def taken_up() -> bool:
        generation, end = watcher.knowledge.current.generation, time.monotonic() + 60
        while watcher.knowledge.current.generation == generation and time.monotonic() < end:
            watcher._housekeeping.take_up(0)
            time.sleep(0.02)
        return watcher._server._welcome(OTHER)

    some = site / "fingerprints/memory/some_dirt.yml"
    some.write_text(some.read_text().replace("level: low", "level: high"))
    assert not taken_up(), "another generation, and the same grants"
    assert "others could write" in watcher.status()["problems"][0]
    assert "SIGHUP" in watcher.status()["problems"][0]
    file.write_text(WITH_ROLES.replace("manual", "approve"))
    assert taken_up()
    assert watcher.status()["problems"] == []
