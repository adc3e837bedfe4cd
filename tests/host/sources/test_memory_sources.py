from __future__ import annotations

from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler
from unveil.host.source import SourceState
from unveil.host.sources import (
    buddyinfo,
    cgroup_events,
    cgroup_io,
    cgroup_pressure,
    edac,
    mthp,
    sockstat,
    softnet,
)
from unveil.host.sources.buddyinfo import huge_order

THP = "sys/kernel/mm/transparent_hugepage"


def test_free_memory_is_told_by_what_is_large_enough_for_a_huge_page(procfs, look) -> None:
    procfs.write(f"{THP}/hpage_pmd_size", "2097152\n")
    assert huge_order(procfs.root) == 9
    procfs.write(
        "proc/buddyinfo",
        "Node 0, zone      DMA      1      0      0      0      0      0      0      0      0      0      1 \n"
        "Node 0, zone   Normal      3      0      0      0      0      0      0      0      0      2      1 \n"
        "Node 1, zone   Normal      5      1      0      0      0      0      0      0      0      0      0 \n",
    )
    values, _ = look(buddyinfo.SOURCE)
    assert values == {
        "memory.free_blocks{node=0}": 4096 * (4 + 1024 + 2 * 512 + 1024),
        "memory.free_huge{node=0}": 4096 * (1024 + 2 * 512 + 1024),
        "memory.free_blocks{node=1}": 4096 * 7,
        "memory.free_huge{node=1}": 0,
    }


def test_a_host_without_a_size_for_huge_pages_is_taken_for_an_ordinary_one(procfs) -> None:
    assert huge_order(procfs.root) == 9


def test_only_sizes_of_huge_pages_that_are_on_are_counted(procfs, look) -> None:
    procfs.write(f"{THP}/enabled", "always [madvise] never\n")
    for size, chosen in ((64, "always inherit madvise [never]"), (2048, "always [inherit] madvise never")):
        folder = f"{THP}/hugepages-{size}kB"
        procfs.write(f"{folder}/enabled", f"{chosen}\n")
        procfs.write(f"{folder}/stats/anon_fault_alloc", f"{size}\n")
        procfs.write(f"{folder}/stats/nr_anon", "3\n")
        procfs.write(f"{folder}/stats/of_a_later_kernel", "3\n")
    values, _ = look(mthp.SOURCE)
    assert values == {"memory.mthp_fault_alloc{size=2048}": 2048, "memory.mthp_anon{size=2048}": 3}
    procfs.write(f"{THP}/enabled", "always madvise [never]\n")
    _, health = look(mthp.SOURCE)
    assert (health.state, "turned off" in health.reason) == (SourceState.ABSENT, True)


def test_an_older_kernel_counts_no_huge_pages_by_size(procfs, look) -> None:
    procfs.write(f"{THP}/enabled", "[always] madvise never\n")
    assert "by size" in look(mthp.SOURCE)[1].reason


def test_errors_of_memory_are_told_by_controller(procfs, look) -> None:
    assert look(edac.SOURCE)[1].state is SourceState.ABSENT
    procfs.write("sys/devices/system/edac/mc/mc0/ce_count", "7\n")
    procfs.write("sys/devices/system/edac/mc/mc0/ue_count", "0\n")
    procfs.write("sys/devices/system/edac/mc/power/x", "0\n")
    assert look(edac.SOURCE)[0] == {
        "memory.ecc_corrected{controller=0}": 7,
        "memory.ecc_uncorrected{controller=0}": 0,
    }


def test_a_cgroup_of_version_2_tells_its_pressure_its_limits_and_its_io(procfs, look) -> None:
    for name in ("/pod1", "/pod2"):
        procfs.cgroup_v2(name)
    base = "sys/fs/cgroup"
    for disk, number, slaves in (("nvme0n1", "259:0", ()), ("dm-0", "253:0", ("nvme0n1",))):
        procfs.write(f"sys/block/{disk}/dev", f"{number}\n")
        procfs.write(f"sys/block/{disk}/slaves/.keep", "") if not slaves else None
        for slave in slaves:
            procfs.write(f"sys/block/{disk}/slaves/{slave}", "")
    (procfs.folder / "sys/block/nvme0n1/slaves/.keep").unlink()
    procfs.write(f"{base}/io.stat", "")
    some = "some avg10=1.00 avg60=0.10 avg300=0.00 total=2000000\n"
    for file in ("cpu", "memory", "io"):
        procfs.write(f"{base}/pod1/{file}.pressure", some + some.replace("some", "full").replace("2000000", "1000000"))
    procfs.write(f"{base}/pod2/cpu.pressure", some)
    procfs.write(f"{base}/pod1/memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n")
    procfs.write(
        f"{base}/pod1/io.stat",
        "259:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
        "253:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n7:0 \n",
    )
    values, health = look(cgroup_pressure.SOURCE)
    assert values["cpu.cgroup_psi_some{cgroup=/pod1}"] == 2.0
    assert values["storage.cgroup_psi_full{cgroup=/pod1}"] == 1.0
    assert values["cpu.cgroup_psi_some{cgroup=/pod2}"] == 2.0
    assert (health.state, "2 of 6 files" in health.reason) == (SourceState.OK, True), "pod2 tells no other pressure"
    assert look(cgroup_events.SOURCE)[0] == {
        "memory.cgroup_low{cgroup=/pod1}": 0,
        "memory.cgroup_high{cgroup=/pod1}": 3,
        "memory.cgroup_at_limit{cgroup=/pod1}": 4,
        "memory.cgroup_oom{cgroup=/pod1}": 1,
        "memory.cgroup_oom_kill{cgroup=/pod1}": 2,
    }
    assert look(cgroup_io.SOURCE)[0] == {
        "storage.cgroup_read_bytes{cgroup=/pod1}": 4096,
        "storage.cgroup_write_bytes{cgroup=/pod1}": 8192,
        "storage.cgroup_reads{cgroup=/pod1}": 1,
        "storage.cgroup_writes{cgroup=/pod1}": 2,
    }, "the volume on top of the disk is the same bytes again"


def test_a_disk_that_was_plugged_in_counts(procfs, look_twice) -> None:
    procfs.cgroup_v2("/pod1")
    base = "sys/fs/cgroup"
    procfs.write(f"{base}/io.stat", "")
    procfs.write("sys/block/loop7/dev", "7:7\n")
    procfs.write(f"{base}/pod1/io.stat", "7:7 rbytes=1\n")

    def plug_in() -> None:
        procfs.write("sys/block/sdb/dev", "8:16\n")
        procfs.write(f"{base}/pod1/io.stat", "7:7 rbytes=1\n8:16 rbytes=5\n")

    assert look_twice(cgroup_io.SOURCE, plug_in) == {"storage.cgroup_read_bytes{cgroup=/pod1}"}


def test_a_cgroup_of_version_1_tells_how_often_it_met_its_limit(procfs, look) -> None:
    procfs.remove("sys/fs/cgroup/cgroup.controllers")
    procfs.write("sys/fs/cgroup/memory/cgroup.procs", "")
    procfs.write("sys/fs/cgroup/memory/pod1/memory.failcnt", "9\n")
    procfs.write("sys/fs/cgroup/memory/pod1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert look(cgroup_events.SOURCE)[0] == {
        "memory.cgroup_at_limit{cgroup=/pod1}": 9,
        "memory.cgroup_oom_kill{cgroup=/pod1}": 2,
    }
    for source in (cgroup_pressure.SOURCE, cgroup_io.SOURCE):
        assert look(source)[1].state is SourceState.ABSENT


def test_this_very_kernel_tells_how_fragmented_its_memory_is() -> None:
    sampler = Sampler(HostRoot("/"), sources=(buddyinfo.SOURCE, softnet.SOURCE, sockstat.SOURCE))
    sampler.tick(0)
    sampler.tick(20_000_000_000)
    values = {
        channel.metric: block.values[-1, column]
        for block in sampler.collect(20_000_000_000)
        for column, channel in enumerate(block.layout.channels)
    }
    sampler.close()
    assert 0 <= values["memory.free_huge"] <= values["memory.free_blocks"]
    assert values["network.softnet_processed"] >= 0
    assert 0 <= values["network.tcp_memory"] < values["network.tcp_memory_limit"]
