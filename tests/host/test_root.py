from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unveil.host import root as root_module
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from pathlib import Path


def test_links_within_the_root_are_followed_and_others_are_not(tmp_path: Path) -> None:
    tree = tmp_path / "host"
    (tree / "sys/devices/a").mkdir(parents=True)
    (tree / "sys/devices/a/value").write_text("1\n")
    (tree / "sys/class").mkdir()
    (tree / "sys/class/inside").symlink_to("../devices/a")
    (tmp_path / "secret").write_text("x")
    (tree / "sys/class/outside").symlink_to("../../../secret")
    (tree / "sys/class/absolute").symlink_to("/etc/hostname")
    root = HostRoot(tree)
    assert root.read("sys/class/inside/value") == b"1\n"
    assert root.resolve("sys/class/inside") == "sys/devices/a"
    assert root.readlink("sys/class/inside") == "../devices/a"
    for name in ("outside", "absolute"):
        assert not root.exists(f"sys/class/{name}")
        with pytest.raises(OSError, match="leads out of the host root"):
            root.read(f"sys/class/{name}")
    with pytest.raises(OSError, match="leads out of the host root"):
        root.read("../secret")


def test_the_live_root_reads_this_machine() -> None:
    root = HostRoot()
    assert root.live
    assert root.read("proc/self/stat").startswith(str(os.getpid()).encode())
    assert "self" in root.list("proc")
    assert root.exists("proc/stat")
    assert not root.exists("proc/no such file")
    assert root.mode("proc/stat") == 0o444


def test_a_long_file_is_read_to_its_end_and_its_head_is_not(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 300_000)
    root = HostRoot(tmp_path)
    assert len(root.read("long")) == 300_000
    assert root.head("long", 10) == b"x" * 10


def test_a_file_without_an_end_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_module, "_MOST", 100_000)
    (tmp_path / "long").write_bytes(b"x" * 300_000)
    with pytest.raises(OSError, match="too large"):
        HostRoot(tmp_path).read("long")


def test_a_fifo_in_a_tree_does_not_hang_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert HostRoot(tmp_path).read("pipe") == b""


def test_directories_leave_out_links_and_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("a")
    assert HostRoot(tmp_path).directories("") == ("a", "b")


def test_a_folder_that_was_read_before_is_no_way_out_either(tmp_path: Path) -> None:
    tree = tmp_path / "host"
    (tree / "sys/real").mkdir(parents=True)
    (tree / "sys/real/value").write_text("1\n")
    (tree / "sys/way").symlink_to("real")
    root = HostRoot(tree)
    assert root.read("sys/way/value") == b"1\n"
    (tree / "sys/real/leak").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("x")
    with pytest.raises(OSError, match="leads out of the host root"):
        root.read("sys/way/leak")
    with pytest.raises(OSError, match="leads out of the host root"):
        root.read("sys/way/../../../secret")
    with pytest.raises(FileNotFoundError):
        root.read("sys/way/gone")
