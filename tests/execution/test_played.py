from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING

import pytest

from unveil.errors import RefusedError, UnwritableError
from unveil.execution.played import MAX_BYTES, refuse_open_to_others, take_along

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: needs root")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Give a folder with a playbook and a module."""
    (tmp_path / "kb/modules").mkdir(parents=True)
    (tmp_path / "kb/apply.yml").write_text("- hosts: all")
    (tmp_path / "kb/modules/one.py").write_text("1")
    (tmp_path / "kb/modules/notes.txt").write_text("no module")
    (tmp_path / "run").mkdir()
    return tmp_path


def test_playbook_and_modules_are_copied_for_their_owner_alone_and_copied_anew(base: Path) -> None:
    for text in ("1", "2"):
        (base / "kb/modules/one.py").write_text(text)
        played = take_along(base / "kb/apply.yml", base / "kb/modules", base / "run")
        assert played.playbook.read_text() == "- hosts: all"
        assert [path.name for path in played.modules.iterdir()] == ["one.py"]
        assert (played.modules / "one.py").read_text() == text
        assert set(played.digests) == {str(base / "kb/apply.yml"), str(base / "kb/modules/one.py")}
    assert stat.S_IMODE(played.playbook.stat().st_mode) == 0o600
    for folder in (played.modules, played.modules.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_is_no_file_or_too_large_is_refused_at_once_and_a_full_disk_is_said(base: Path) -> None:
    os.mkfifo(base / "kb/pipe.yml")
    with pytest.raises(RefusedError, match="no regular file"):
        take_along(base / "kb/pipe.yml", base / "kb/modules", base / "run")
    (base / "kb/large.yml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RefusedError, match="more than"):
        take_along(base / "kb/large.yml", base / "kb/modules", base / "run")
    with pytest.raises(UnwritableError, match="nothing was changed"):
        take_along(base / "kb/apply.yml", base / "kb/modules", base / "kb/apply.yml")


@root
@pytest.mark.parametrize(
    "harm",
    [
        lambda kb: (kb / "apply.yml").chmod(0o666),
        lambda kb: (os.chown(kb / "apply.yml", 0, 4711), (kb / "apply.yml").chmod(0o664)),
        lambda kb: os.chown(kb / "apply.yml", 4711, 0),
        lambda kb: (os.chown(kb, 0, 4711), kb.chmod(0o775)),
        lambda kb: kb.chmod(0o777),
        lambda kb: os.chown(kb, 4711, 0),
        lambda kb: kb.parent.chmod(0o777),
        lambda kb: (os.chown(kb / "modules", 0, 4711), (kb / "modules").chmod(0o775)),
        lambda kb: (kb / "modules/one.py").chmod(0o666),
    ],
)
def test_what_others_may_write_or_replace_is_refused(base: Path, harm: Callable[[Path], object]) -> None:
    harm(base / "kb")
    with pytest.raises(RefusedError, match="may be written by others"):
        take_along(base / "kb/apply.yml", base / "kb/modules", base / "run")


@root
def test_a_link_is_looked_at_on_both_sides(base: Path) -> None:
    (base / "theirs").mkdir()
    os.chown(base / "theirs", 4711, 4711)
    (base / "theirs/kb").symlink_to(base / "kb")
    with pytest.raises(RefusedError, match="theirs"):
        refuse_open_to_others(base / "theirs/kb/apply.yml")
    (base / "ours").symlink_to(base / "theirs")
    with pytest.raises(RefusedError, match="theirs"):
        refuse_open_to_others(base / "ours/kb/apply.yml")


def test_links_in_a_circle_are_refused(base: Path) -> None:
    (base / "one").symlink_to("two")
    (base / "two").symlink_to(base / "one")
    with pytest.raises(RefusedError, match="links"):
        refuse_open_to_others(base / "one/apply.yml")
    (base / "back").symlink_to("run/../kb")
    refuse_open_to_others(base / "back/apply.yml")


def test_the_group_of_root_or_ours_and_a_folder_like_tmp_are_no_strangers(base: Path) -> None:
    (base / "kb/apply.yml").chmod(0o664)
    (base / "kb").chmod(0o1777)
    refuse_open_to_others(base / "kb/apply.yml")


def test_whom_an_access_list_lets_write_is_a_stranger_also_where_the_group_is_ours(base: Path) -> None:
    file = base / "kb/apply.yml"
    owner, named, group, most, others = 0x01, 0x02, 0x04, 0x10, 0x20  # acl(5); who is not named is all ones
    entries = ((owner, 6, -1), (named, 6, 4711), (group, 4, -1), (most, 6, -1), (others, 4, -1))
    text = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(file, "system.posix_acl_access", text)
    except OSError as error:
        pytest.skip(f"no access lists here: {error.strerror}")
    with pytest.raises(RefusedError, match="may be written by others") as refused:
        refuse_open_to_others(file)
    assert f"setfacl -b {file}" in refused.value.hint
    file.chmod(0o644)  # takes the right to write from whom the list names
    refuse_open_to_others(file)
