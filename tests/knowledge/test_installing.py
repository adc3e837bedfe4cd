"""A pack is put into use as a whole or not at all, keeps the site's inventory, and can be taken back."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError, ConflictError, RefusedError, UnwritableError
from unveil.knowledge import installing
from unveil.knowledge.archive import Archive, archive_of, gather
from unveil.knowledge.brought_inventory import PROFILES
from unveil.knowledge.installing import install, roll_back
from unveil.knowledge.load_child import LoadChild
from unveil.knowledge.loading import load
from unveil.knowledge.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Callable

POWER = "fingerprints/gpu/power_limit_low.yml"


@pytest.fixture
def pack(kb: Path) -> Callable[..., Archive]:
    def make(version: str, level: str = "low") -> Archive:
        files = gather(kb)
        files[POWER] = files[POWER].replace(b"level: low", f"level: {level}".encode())
        return archive_of(files, name="site", version=version, unveil="1")

    return make


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "etc-kb"


def level(target: Path) -> str:
    knowledge = load(target).knowledge
    assert knowledge is not None
    found = knowledge.fingerprint("power_limit_low")
    assert found is not None
    return found.level


def test_the_link_goes_over_in_one_step_and_comes_back(pack: Callable[..., Archive], target: Path) -> None:
    first = install(pack("6", "low"), target)
    assert (Path(first.folder).name, first.before) == ("0001-site-6", "")
    assert target.is_symlink()
    assert level(target) == "low"
    second = install(pack("7", "high"), target)
    assert (Path(second.folder).name, second.before) == ("0002-site-7", first.folder)
    assert level(target) == "high"
    back = roll_back(target)
    assert Path(back.folder).name == "0003-site-6"
    assert level(target) == "low"
    roll_back(target)
    assert level(target) == "high"
    kept = sorted(each.name for each in target.with_name("etc-kb.installed").iterdir() if each.name[0] != ".")
    assert kept == ["0003-site-6", "0004-site-7", "previous"]


def test_an_older_version_is_refused_unless_it_is_meant(pack: Callable[..., Archive], target: Path) -> None:
    install(pack("10", "high"), target)
    for older in ("9", "9.99", "009"):
        with pytest.raises(RefusedError, match=f"site {older} is older than 10, which is in use"):
            install(pack(older), target)
        assert level(target) == "high"
    install(pack("9"), target, downgrade=True)
    assert level(target) == "low"
    install(pack("9", "high"), target)  # the same version is not an older one
    roll_back(target)


def test_versions_without_an_order_and_other_packs_are_older_than_nothing(
    kb: Path, pack: Callable[..., Archive], target: Path
) -> None:
    install(pack("10"), target)
    install(archive_of(gather(kb), name="other", version="1", unveil="1"), target)
    install(pack(""), target)  # a part of its digest
    install(pack("3-rc1"), target)
    (target / "kb.json").write_text("{")
    install(pack("2"), target)
    assert target.readlink().name == "0005-site-2"


def test_the_inventory_is_the_sites_and_goes_with_it(pack: Callable[..., Archive], target: Path) -> None:
    install(pack("6"), target)
    values = target / "inventory/values.yml"
    values.write_text("apiVersion: unveil/v1\nkind: SiteValues\nvalues: {mine: 7}\n")
    (target / "inventory/allowed_signers").write_text("me\n")
    for change in (lambda: install(pack("7"), target), lambda: roll_back(target)):
        change()
        assert "mine: 7" in values.read_text()
        assert (target / "inventory/allowed_signers").read_text() == "me\n"


def test_a_pack_does_not_bring_who_may_sign(kb: Path, target: Path) -> None:
    files = {**gather(kb), "inventory/allowed_signers": b"thief ssh-ed25519 AAAA\n"}
    install(archive_of(files, name="site", version="1", unveil="1"), target)
    assert not (target / "inventory/allowed_signers").exists()


def test_a_pack_that_does_not_load_changes_nothing(kb: Path, pack: Callable[..., Archive], target: Path) -> None:
    install(pack("6", "low"), target)
    before = target.readlink()
    files = {**gather(kb), POWER: b"kind: ["}
    with pytest.raises(BadInputError, match=rf"does not load here: {POWER}"):
        install(archive_of(files, name="site", version="7", unveil="1"), target)
    assert target.readlink() == before
    assert level(target) == "low"
    assert [each.name for each in target.with_name("etc-kb.installed").iterdir() if each.name != ".lock"] == [
        "0001-site-6"
    ]


def test_a_step_that_fails_leaves_what_was_in_use(
    pack: Callable[..., Archive], target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(pack("6", "low"), target)

    def full(link: Path, where: str) -> None:
        raise OSError(28, "No space left on device", str(link))

    monkeypatch.setattr(installing, "_point", full)
    with pytest.raises(UnwritableError, match="No space left on device"):
        install(pack("7", "high"), target)
    assert level(target) == "low"
    with pytest.raises(RefusedError, match="nothing was installed"):
        roll_back(target)


def test_what_was_not_installed_is_not_touched(kb: Path, pack: Callable[..., Archive], target: Path) -> None:
    with pytest.raises(RefusedError, match="was not put there by"):
        install(pack("7"), kb)
    target.symlink_to(kb)
    with pytest.raises(RefusedError, match="was not put there by"):
        install(pack("7"), target)
    for nothing in (kb, target, kb.with_name("absent")):
        with pytest.raises(RefusedError, match="nothing was installed"):
            roll_back(nothing)


def test_two_at_a_time_are_refused(pack: Callable[..., Archive], target: Path) -> None:
    install(pack("6"), target)
    with (target.with_name("etc-kb.installed") / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConflictError, match="under way"):
            install(pack("7"), target)


@pytest.mark.slow
def test_a_running_watcher_goes_over_and_back(pack: Callable[..., Archive], target: Path) -> None:
    install(pack("6", "low"), target)
    child = LoadChild()
    reloader = Reloader(target, child=child)
    try:
        reloader.start(100.0)
        for change, wanted in (
            (lambda: install(pack("7", "high"), target), "high"),
            (lambda: roll_back(target), "low"),
        ):
            change()
            assert _level_in_use(reloader) == wanted
    finally:
        reloader.close()
        child.close()


def _level_in_use(reloader: Reloader) -> str:
    import time

    until = time.monotonic() + 20
    while time.monotonic() < until:
        if (found := reloader.poll(200.0)) is not None and found.knowledge is not None:
            fingerprint = found.knowledge.fingerprint("power_limit_low")
            assert fingerprint is not None
            return fingerprint.level
        time.sleep(0.02)
    raise AssertionError("the watcher did not go over")


def test_a_folder_of_installations_that_someone_else_may_write_is_refused(
    pack: Callable[..., Archive], target: Path
) -> None:
    installed = target.with_name("etc-kb.installed")
    installed.mkdir()
    installed.chmod(0o777)
    with pytest.raises(RefusedError, match="someone else"):
        install(pack("6"), target)
    if os.geteuid() == 0:
        os.chown(installed, -1, 4711)
        installed.chmod(0o775)
        with pytest.raises(RefusedError, match="someone else"):
            install(pack("6"), target)
    installed.rmdir()
    installed.symlink_to(target.parent)
    with pytest.raises(RefusedError, match="someone else"):
        install(pack("6"), target)
    assert not target.exists()


def test_what_another_installation_did_while_this_one_waited_for_its_turn_counts(
    pack: Callable[..., Archive], target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(pack("6"), target)
    (target / "inventory/allowed_signers").write_text("me\n")
    locked = installing._locked

    def late(folder: Path):  # type: ignore[no-untyped-def]
        monkeypatch.setattr(installing, "_locked", locked)
        for version in ("7", "8"):  # after which the folder that was in use is gone
            install(pack(version), target)
        return locked(folder)

    monkeypatch.setattr(installing, "_locked", late)
    install(pack("9"), target)
    assert (target / "inventory/allowed_signers").read_text() == "me\n"


def test_no_umask_makes_files_that_everyone_may_write(pack: Callable[..., Archive], target: Path) -> None:
    before = os.umask(0)
    try:
        install(pack("6"), target)
    finally:
        os.umask(before)
    assert not [path for path in target.resolve().rglob("*") if path.stat().st_mode & 0o022]


GRANTING = b"apiVersion: unveil/v1\nkind: Profiles\ndefault: approve\nroles: [{name: mine, users: [thief]}]\n"
GRANTS = ("mode approve on every host that no profile names", "role mine: thief")


def with_profiles(kb: Path, content: bytes = GRANTING, version: str = "1") -> Archive:
    return archive_of({**gather(kb), PROFILES: content}, name="site", version=version, unveil="1")


def granted(target: Path) -> tuple[str, ...]:
    knowledge = load(target).knowledge
    assert knowledge is not None
    return knowledge.profiles.grants


def test_roles_and_modes_that_a_pack_brings_are_taken_only_when_that_is_asked_for(kb: Path, target: Path) -> None:
    done = install(with_profiles(kb), target)
    assert (done.inventory, done.grants) == ("observe", GRANTS)
    assert granted(target) == ()
    again = install(with_profiles(kb, version="2"), target)
    assert (again.inventory, again.grants) == ("site", ())
    assert granted(target) == ()
    with pytest.raises(RefusedError, match="is the site's own, and stays"):
        install(with_profiles(kb, version="3"), target, take_inventory=True)
    assert granted(target) == ()


def test_an_inventory_that_is_asked_for_is_taken_as_it_is_and_one_that_observes_without_asking(
    kb: Path, target: Path
) -> None:
    done = install(with_profiles(kb), target, take_inventory=True)
    assert (done.inventory, done.grants) == ("pack", GRANTS)
    assert granted(target) == GRANTS
    other = target.with_name("other")
    observing = GRANTING.split(b"roles")[0].replace(b"approve", b"observe") + b"maintenance: ['02:00-04:00']\n"
    done = install(with_profiles(kb, observing), other)
    assert (done.inventory, done.grants) == ("pack", ())
    assert (other / PROFILES).read_bytes() == observing
