from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from unveil.engine.reserve import BYTES, Reserve

if TYPE_CHECKING:
    from pathlib import Path


def test_it_holds_room_once_and_gives_it_free(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    reserve = Reserve(path)
    assert reserve.hold()
    assert path.stat().st_blocks * 512 >= BYTES
    assert path.stat().st_mode & 0o077 == 0
    assert reserve.hold()
    assert reserve.spend()
    assert not path.exists()
    assert not reserve.spend(), "there was none"


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "reserve").symlink_to(tmp_path / "target")
    assert not Reserve(tmp_path / "reserve").hold()
    assert (tmp_path / "target").read_text() == "x"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk: needs root")
def test_on_a_disk_without_room_there_is_none(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("no small disk here")
    try:
        assert not Reserve(tmp_path / "reserve").hold()
        assert not (tmp_path / "reserve").exists()
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
