from __future__ import annotations

import pytest

from unveil.host.source import SourceState
from unveil.host.sources import amd_gpu, nfs, pcie
from unveil.host.sources.diskstats import whole_disks

PORT = "sys/devices/pci0000:00/0000:00:01.0"
GPU = f"{PORT}/0000:01:00.0"
ERRORS = "RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n"


def function(
    procfs, folder: str, *, width: str, most: str, speed: str = "16.0 GT/s PCIe", kind: str = "0x030200"
) -> None:
    """Make a PCI function and its entry in the list of all."""
    address = folder.rpartition("/")[2]
    for name, text in (
        ("class", kind),
        ("current_link_width", width),
        ("max_link_width", most),
        ("current_link_speed", speed),
        ("max_link_speed", "32.0 GT/s PCIe"),
        ("aer_dev_correctable", ERRORS),
        ("aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0"),
    ):
        procfs.write(f"{folder}/{name}", f"{text}\n")
    entry = procfs.folder / "sys/bus/pci/devices" / address
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.symlink_to(procfs.folder / folder)


def test_a_link_is_judged_by_what_both_its_ends_can_do(procfs, look) -> None:
    function(procfs, PORT, width="8", most="8", kind="0x060400")
    function(procfs, GPU, width="4", most="16")
    function(procfs, "sys/devices/pci0000:00/0000:00:1f.0", width="1", most="1", kind="0x060100")
    values, health = look(pcie.SOURCE)
    assert health.state is SourceState.OK
    assert values["interconnect.pcie_width{pci=0000:01:00.0}"] == 4
    assert values["interconnect.pcie_width_share{pci=0000:01:00.0}"] == pytest.approx(0.5), "the port has but eight"
    assert values["interconnect.pcie_speed{pci=0000:01:00.0}"] == 16
    assert values["interconnect.pcie_speed_share{pci=0000:01:00.0}"] == pytest.approx(0.5)
    assert values["interconnect.pcie_width_share{pci=0000:00:01.0}"] == 1, "the port above is followed, too"
    assert values["interconnect.aer_corrected{pci=0000:01:00.0}"] == 3
    assert values["interconnect.aer_fatal{pci=0000:01:00.0}"] == 0
    assert not [name for name in values if "1f.0" in name], "a bridge that leads to nothing of interest"


@pytest.mark.parametrize(("width", "speed"), [("0", "Unknown"), ("255", "Unknown speed"), ("63", "-1"), ("", "")])
def test_a_link_that_does_not_know_is_absent(procfs, look, width: str, speed: str) -> None:
    function(procfs, GPU, width=width, most="16", speed=speed)
    values, _ = look(pcie.SOURCE)
    assert not [name for name in values if "pcie" in name]
    assert values["interconnect.aer_corrected{pci=0000:01:00.0}"] == 3


def test_a_device_that_sleeps_is_not_woken(procfs, look) -> None:
    function(procfs, GPU, width="16", most="16")
    procfs.write(f"{GPU}/power/runtime_status", "suspended\n")
    values, _ = look(pcie.SOURCE)
    assert set(values) == {f"interconnect.aer_{name}{{pci=0000:01:00.0}}" for name in ("corrected", "fatal")}


def test_a_virtual_function_has_no_link_of_its_own(procfs, look) -> None:
    function(procfs, GPU, width="16", most="16")
    procfs.write(f"{GPU}/physfn/x", "")
    assert look(pcie.SOURCE)[1].state is SourceState.ABSENT


def amd(procfs) -> str:
    function(procfs, GPU, width="16", most="16")
    procfs.write(f"{GPU}/vendor", "0x1002\n")
    card = procfs.folder / "sys/class/drm/card1"
    card.mkdir(parents=True)
    (card / "device").symlink_to(procfs.folder / GPU)
    procfs.write("sys/class/drm/card1-DP-1/status", "connected\n")
    return GPU


def test_an_amd_gpu_has_the_metrics_of_all_gpus(procfs, look) -> None:
    folder = amd(procfs)
    for name, text in (
        ("gpu_busy_percent", "37"),
        ("mem_info_vram_used", "1024"),
        ("mem_info_vram_total", "4096"),
        ("pp_dpm_sclk", "0: 500Mhz \n1: 1700Mhz *"),
        ("hwmon/hwmon3/power1_average", "250000000"),
        ("hwmon/hwmon3/power1_cap", "300000000"),
        ("hwmon/hwmon3/temp1_input", "61000"),
        ("hwmon/hwmon3/freq2_input", "1600000000"),
    ):
        procfs.write(f"{folder}/{name}", f"{text}\n")
    values, _ = look(amd_gpu.SOURCE)
    assert {name.removesuffix("{gpu=0000:01:00.0}"): value for name, value in values.items()} == {
        "gpu.util": pytest.approx(0.37),
        "gpu.memory_used": 1024,
        "gpu.memory_total": 4096,
        "gpu.sm_clock": 1700,
        "gpu.memory_clock": pytest.approx(1600),
        "gpu.power": pytest.approx(250),
        "gpu.power_limit": pytest.approx(300),
        "gpu.temperature": pytest.approx(61),
        "gpu.pcie_width": 16,
    }


@pytest.mark.parametrize("width", ["0", "63", "255", "Unknown", ""])
def test_a_width_that_a_gpu_does_not_know_is_none(procfs, look, width: str) -> None:
    procfs.write(f"{amd(procfs)}/current_link_width", f"{width}\n")
    procfs.write(f"{GPU}/gpu_busy_percent", "37\n")
    assert set(look(amd_gpu.SOURCE)[0]) == {"gpu.util{gpu=0000:01:00.0}"}


def test_a_clock_has_more_than_ten_levels(procfs, look) -> None:
    levels = "".join(f"{level}: {500 + 100 * level}Mhz {'*' if level == 12 else ''}\n" for level in range(14))
    procfs.write(f"{amd(procfs)}/pp_dpm_sclk", levels)
    assert look(amd_gpu.SOURCE)[0]["gpu.sm_clock{gpu=0000:01:00.0}"] == 1700


def test_a_card_whose_number_another_gpu_has_now_is_not_taken_for_it(procfs, look_twice) -> None:
    other = f"{PORT}/0000:02:00.0"
    procfs.write(f"{amd(procfs)}/gpu_busy_percent", "37\n")
    procfs.write(f"{other}/gpu_busy_percent", "12\n")
    procfs.write(f"{other}/vendor", "0x1002\n")

    def exchange() -> None:
        link = procfs.folder / "sys/class/drm/card1/device"
        link.unlink()
        link.symlink_to(procfs.folder / other)
        procfs.root._folders.clear()  # where folders are is remembered for half a minute

    assert look_twice(amd_gpu.SOURCE, exchange) == {"gpu.util{gpu=0000:02:00.0}"}


def test_an_amd_gpu_that_sleeps_is_left_alone(procfs, look) -> None:
    procfs.write(f"{amd(procfs)}/power/runtime_status", "suspended\n")
    assert look(amd_gpu.SOURCE)[1].reason == "every AMD GPU sleeps"


def test_a_gpu_of_another_vendor_is_none_of_them(procfs, look) -> None:
    procfs.write(f"{amd(procfs)}/vendor", "0x10de\n")
    assert look(amd_gpu.SOURCE)[1].state is SourceState.ABSENT


MOUNT = """device {export} mounted on {place} with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tbytes:\t1 2 3 4 {read} 600 7 8
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 832 0 1 0 11 6428 6428 0 12154 0 24 26 5726
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t        READ: 10 12 1 207680 1210292152 1000 2000 4000 0
\t       WRITE: 5 5 0 0 0 18446743919241604546 500 600 0

"""


def test_nfs_mounts_are_added_up_and_an_export_that_is_mounted_twice_counts_once(procfs, look) -> None:
    procfs.write("proc/self/mounts", "/dev/vda / ext4 rw 0 0\n")
    assert look(nfs.SOURCE)[1].reason == "no NFS is mounted"
    procfs.write("proc/self/mounts", "a:/x /mnt/a nfs4 rw 0 0\n")
    procfs.write(
        "proc/self/mountstats",
        "device proc mounted on /proc with fstype proc\n"
        + MOUNT.format(export="a:/x", place="/mnt/a", read=500)
        + MOUNT.format(export="a:/x", place="/srv/again", read=500)
        + MOUNT.format(export="b:/y", place="/mnt/with fstype ext4", read=50),
    )
    assert look(nfs.SOURCE)[0] == {
        "storage.nfs_read_bytes": 550,
        "storage.nfs_write_bytes": 1200,
        "storage.nfs_operations": 30,
        "storage.nfs_transmissions": 34,
        "storage.nfs_timeouts": 2,
        "storage.nfs_queue_time": 2.0,
        "storage.nfs_server_time": 5.0,
        "storage.nfs_time": pytest.approx(9.2),
    }


@pytest.mark.parametrize(
    ("release", "counted"),
    [("5.14.0-503.el9", {"nvme3c33n1", "nvme3c34n1", "sda"}), ("6.4.0", {"nvme3n1", "sda"}), ("", {"nvme3n1", "sda"})],
)
def test_an_nvme_disk_with_several_paths_counts_once(procfs, release: str, counted: set[str]) -> None:
    for name in ("nvme3n1", "nvme3c33n1", "nvme3c34n1", "sda"):
        procfs.write(f"sys/block/{name}/size", "8\n")
    if release:
        procfs.write("proc/sys/kernel/osrelease", f"{release}\n")
    wanted = whole_disks(procfs.root)
    assert {name for name in ("nvme3n1", "nvme3c33n1", "nvme3c34n1", "nvme3n1p1", "sda") if wanted(name)} == counted
