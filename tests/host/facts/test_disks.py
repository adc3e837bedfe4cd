from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.disks import disk_names, find_disks, read_disks
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree


QUEUE = {"write_cache": "write back", "nomerges": "0", "rq_affinity": "1", "max_sectors_kb": "1280"}


def _disk(tree: Tree, name: str, folder: str, **queue: str) -> None:
    tree.write(f"{folder}/size", "2048\n")
    for file, text in {"rotational": "0", "read_ahead_kb": "128", "nr_requests": "1023", **queue}.items():
        tree.write(f"{folder}/queue/{file}", text + "\n")
    tree.link(f"sys/block/{name}", folder)


def test_whole_disks_have_queues_and_nodes(tree: Tree) -> None:
    device = tree.pci("pci0000:00/0000:03:00.0", node=1, local="4-7", irqs=(70, 71), driver="nvme")
    _disk(tree, "nvme0n1", f"{device}/nvme/nvme0/nvme0n1", scheduler="[none] mq-deadline kyber", **QUEUE)
    for queue in "01":
        tree.write(f"{device}/nvme/nvme0/nvme0n1/mq/{queue}/nr_tags", "1\n")
    _disk(tree, "dm-0", "sys/devices/virtual/block/dm-0", rotational="1")
    for name in ("loop0", "ram1", "sr0"):
        _disk(tree, name, f"sys/devices/virtual/block/{name}")
    sheet = tree.sheet()
    disks = find_disks(sheet, disk_names(sheet))
    read_disks(sheet, disks)
    nvme, stacked = Entity(EntityKind.DISK, "nvme0n1"), Entity(EntityKind.DISK, "dm-0")
    assert sheet.table().entities(EntityKind.DISK) == (stacked, nvme)
    assert sheet.value("storage.scheduler", nvme) == "none"
    assert sheet.settings["file:/sys/block/nvme0n1/queue/scheduler"] == "[none] mq-deadline kyber\n"
    assert sheet.value("storage.read_ahead", nvme) == 128
    assert sheet.value("storage.rotational", nvme) is False
    assert sheet.value("storage.node", nvme) == 1
    assert sheet.value("storage.pci", nvme) == "0000:03:00.0"
    assert sheet.value("storage.hardware_queues", nvme) == 2
    assert sheet.value("storage.write_cache", nvme) == "write back"
    assert sheet.value("storage.merging", nvme) == 0
    assert "file:/sys/block/nvme0n1/queue/write_cache" not in sheet.settings, "data depends on it"
    assert sheet.value("storage.size", nvme) == 1 << 20
    assert {disk.entity: disk.irqs for disk in disks} == {nvme: (70, 71), stacked: ()}
    assert sheet.table().find("storage.node", stacked).reason == (  # type: ignore[union-attr]
        "it is stacked on other devices or in memory"
    )


def test_a_slash_in_a_name_is_an_exclamation_mark_in_sysfs_only(tree: Tree) -> None:
    device = tree.pci("pci0000:00/0000:05:00.0", node=-1, local="0")
    _disk(tree, "cciss!c0d0", f"{device}/block/cciss!c0d0")
    sheet = tree.sheet()
    read_disks(sheet, find_disks(sheet, disk_names(sheet)))
    entity = Entity(EntityKind.DISK, "cciss/c0d0")
    fact = sheet.table().find("storage.read_ahead", entity)
    assert fact is not None
    assert fact.setting == "file:/sys/block/cciss!c0d0/queue/read_ahead_kb"
    assert sheet.value("storage.node", entity) is None
