from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.facts.file_systems import read_file_systems

if TYPE_CHECKING:
    import pytest
    from conftest import Tree


def _mounts(tree: Tree, *lines: str) -> None:
    tree.write("proc/1/mountinfo", "".join(f"{line}\n" for line in lines))


def test_only_file_systems_on_disks_are_asked_and_each_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def statvfs(path: str) -> os.statvfs_result:
        asked.append(path.removeprefix(str(tree.folder)))
        return os.statvfs_result((4096, 4096, 1000, 250 if path.endswith("data") else 600, 100, 50, 2, 2, 0, 255))

    monkeypatch.setattr(os, "statvfs", statvfs)
    _mounts(
        tree,
        "22 1 254:0 / / rw,noatime - ext4 /dev/vda rw,discard",
        r"23 22 254:16 / /mnt/my\040data rw - xfs /dev/vdb rw",
        "24 22 254:16 /sub /elsewhere rw - xfs /dev/vdb rw",
        "25 22 0:45 / /nfs rw - nfs4 server:/export rw",
        "26 22 0:50 / /snap ro - squashfs /dev/loop1 ro",
        "27 22 0:51 / /home rw - fuse /dev/fuse rw",
        "28 22 254:32 / /image ro - ext4 /dev/vdc ro",
        "29 22 0:52 / /tmp rw - tmpfs tmpfs rw",
        "30 25 254:48 / /nfs/scratch rw - ext4 /dev/vdd rw",  # on the way there a dead server would be waited for
        "31 22 254:64 / /mnt/over rw - ext4 /dev/vde rw",
        "32 31 0:53 / /mnt/over rw - nfs4 server:/export rw",
    )
    sheet = tree.sheet()
    read_file_systems(sheet)
    assert asked == ["/", "/mnt/my data"] or asked == ["", "/mnt/my data"]
    assert sheet.value("storage.filesystem_used") == 0.882
    assert sheet.value("storage.filesystem_fullest") == "/mnt/my data"
    assert sheet.value("storage.filesystem_files") == 48 / 50
    assert sheet.value("storage.discarding") == 1


def test_nfs_tells_the_least_read_ahead_of_its_mounts(tree: Tree) -> None:
    for device, size in (("0:45", 128), ("0:46", 15360)):
        tree.write(f"sys/class/bdi/{device}/read_ahead_kb", f"{size}\n")
    _mounts(
        tree, *(f"25 22 {device} / /nfs{device} rw - nfs4 server:/export rw" for device in ("0:45", "0:46", "0:45"))
    )
    sheet = tree.sheet()
    read_file_systems(sheet)
    assert sheet.value("storage.nfs_read_ahead") == 128
    assert sheet.value("storage.nfs_mounts") == ("0:45", "0:46")
    assert sheet.settings["file:/sys/class/bdi/0:45/read_ahead_kb"] == "128\n"


def test_a_host_without_a_list_of_mounts_says_so(tree: Tree) -> None:
    sheet = tree.sheet()
    read_file_systems(sheet)
    for name in ("filesystem_used", "filesystem_files", "discarding", "nfs_read_ahead", "nfs_mounts"):
        assert sheet.table().find(f"storage.{name}").reason  # type: ignore[union-attr]
