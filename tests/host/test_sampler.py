from __future__ import annotations

import math
import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.host.catalogue import METRICS, SOURCES
from unveil.host.cgroups import CgroupTrees
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler
from unveil.host.source import SourceState
from unveil.host.sources import cgroup_cpu, cgroup_events, stat
from unveil.records.metric import Channel
from unveil.records.sample import Tier

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.sample import SampleBlock

TICK = 100_000_000
pytestmark = pytest.mark.usefixtures("any_speed")


class Clockwork:
    """A sampler and the ticks it gets."""

    def __init__(self, root: HostRoot, **options) -> None:
        self.sampler = Sampler(root, **options)
        self.number = 0

    def run(self, ticks: int, before: Callable[[int], None] = lambda _: None) -> list[SampleBlock]:
        """Tick, collecting after every tenth; *before* is called with the number of each tick."""
        blocks: list[SampleBlock] = []
        for _ in range(ticks):
            before(self.number)
            self.sampler.tick(self.number * TICK)
            if self.number % 10 == 9:
                blocks += self.sampler.collect(self.number * TICK)
            self.number += 1
        return blocks


@pytest.fixture
def clockwork(procfs):
    made = Clockwork(procfs.root)
    yield made
    made.sampler.close()


def of(tier: Tier, blocks: list[SampleBlock]) -> list[SampleBlock]:
    return [block for block in blocks if block.tier is tier]


def series(blocks: list[SampleBlock], metric: str, **labels: str) -> list[float]:
    """Return the values of a channel over blocks, NaN where a layout lacks it."""
    channel = Channel(metric, tuple(labels.items()))
    values: list[float] = []
    for block in blocks:
        column = block.layout.column.get(channel)
        lacking = [math.nan] * len(block.times_ns)
        values += lacking if column is None else block.values[:, column].tolist()
    return values


def test_a_second_of_ticks_makes_one_block_of_ten_fast_samples(clockwork: Clockwork) -> None:
    blocks = clockwork.run(10)
    (fast,) = of(Tier.FAST, blocks)
    assert fast.times_ns.tolist() == [number * TICK for number in range(10)]
    assert series([fast], "cpu.user", cpu="1") == [2.0] * 10
    assert series([fast], "network.rx_bytes", nic="eth0") == [20.0] * 10
    (medium,) = of(Tier.MEDIUM, blocks)
    assert series([medium], "memory.free") == [1000 * 1024]
    assert series([medium], "memory.huge_total") == [3 * 2048 * 1024]


def test_layouts_stay_the_same_object_as_long_as_nothing_changes(clockwork: Clockwork) -> None:
    blocks = clockwork.run(50)
    for tier in (Tier.FAST, Tier.MEDIUM):
        assert len({id(block.layout) for block in of(tier, blocks)}) == 1


def test_values_move_with_the_host(clockwork: Clockwork, procfs) -> None:
    blocks = clockwork.run(10, lambda number: procfs.stat({0: 100 + number, 1: 200}))
    np.testing.assert_allclose(series(of(Tier.FAST, blocks), "cpu.user", cpu="0"), [1 + n / 100 for n in range(10)])


def test_an_interface_that_comes_and_goes_within_a_second_is_never_mistaken(clockwork: Clockwork, procfs) -> None:
    def change(number: int) -> None:
        nics = {"lo": 10, "eth0": 1000 + number}
        if 3 <= number < 7:
            nics = {"lo": 10, "veth9": 77, "eth0": 1000 + number}
        procfs.net_dev(nics)

    fast = of(Tier.FAST, clockwork.run(10, change))
    assert [len(block.times_ns) for block in fast] == [3, 4, 3]
    assert series(fast, "network.rx_bytes", nic="eth0") == [1000.0 + number for number in range(10)]
    expected = [77.0 if 3 <= number < 7 else math.nan for number in range(10)]
    np.testing.assert_array_equal(series(fast, "network.rx_bytes", nic="veth9"), expected)


def test_an_interface_that_is_made_again_under_its_name_skips_a_sample(procfs) -> None:
    def become(index: int, received: int, other: int) -> None:
        procfs.write("sys/class/net/eth0/ifindex", f"{index}\n")
        procfs.net_dev({"lo": 10, "eth0": received, f"veth{other}": 1})

    become(2, 5000, 0)
    clockwork = Clockwork(procfs.root)
    fast = of(Tier.FAST, clockwork.run(10, lambda number: become(9, 3, 1) if number == 5 else None))
    np.testing.assert_array_equal(series(fast, "network.rx_bytes", nic="eth0"), [5000] * 5 + [math.nan] + [3] * 4)


def test_a_cpu_that_goes_offline_is_absent_and_the_others_go_on(clockwork: Clockwork, procfs) -> None:
    procfs.stat({0: 100, 1: 200, 9: 300})
    fast = of(Tier.FAST, clockwork.run(10, lambda number: procfs.stat({0: 100, 9: 300}) if number == 4 else None))
    assert series(fast, "cpu.user", cpu="9") == [3.0] * 10
    np.testing.assert_array_equal(series(fast, "cpu.user", cpu="1"), [2.0] * 4 + [math.nan] * 6)


def test_a_file_that_vanishes_makes_its_channels_absent_and_comes_back(clockwork: Clockwork, procfs) -> None:
    clockwork.run(10)
    meminfo = next(source for source in clockwork.sampler._sources if source.source.name == "meminfo")
    meminfo.close()  # as reading does when the kernel says that the thing behind the file is gone
    procfs.remove("proc/meminfo")
    gone = clockwork.run(20)
    assert all(math.isnan(value) for value in series(of(Tier.MEDIUM, gone), "memory.free"))
    procfs.meminfo(free_kib=7)
    back = clockwork.run(40)
    assert series(of(Tier.MEDIUM, back), "memory.free")[-1] == 7 * 1024


def test_an_empty_tree_gives_lateness_and_reasons(tmp_path: Path) -> None:
    clockwork = Clockwork(HostRoot(tmp_path))
    (block,) = clockwork.run(10)
    assert [str(channel) for channel in block.layout.channels] == ["cpu.watcher_late", "cpu.watcher_missed"]
    for health in clockwork.sampler.health():
        assert health.state is SourceState.ABSENT
        assert health.reason


def test_lateness_and_missed_ticks_are_samples_too(procfs) -> None:
    sampler = Sampler(procfs.root)
    for now in (0, TICK + 30_000_000, 4 * TICK):
        sampler.tick(now)
    (fast, *_) = sampler.collect(4 * TICK)
    assert series([fast], "cpu.watcher_late") == [0.0, pytest.approx(0.03), 0.0]
    assert series([fast], "cpu.watcher_missed") == [0.0, 0.0, 2.0]


def test_a_tick_that_is_not_later_than_the_last_one_is_ignored(procfs) -> None:
    sampler = Sampler(procfs.root)
    for now in (TICK, TICK, 0, 2 * TICK):
        sampler.tick(now)
    (fast, *_) = sampler.collect(2 * TICK)
    assert fast.times_ns.tolist() == [TICK, 2 * TICK]


def test_a_new_container_is_seen_within_three_seconds_and_its_memory_within_five(procfs) -> None:
    for born in range(0, 40, 3):
        tree = f"/sys{born}"
        clockwork = Clockwork(procfs.root)
        clockwork.run(100)
        path = f"/kubepods/pod{born}"
        blocks = clockwork.run(60, lambda n, born=born, path=path: procfs.cgroup_v2(path) if n == 100 + born else None)
        cpu = first_seen(of(Tier.MEDIUM, blocks), Channel("cpu.cgroup_usage", (("cgroup", path),)))
        memory = first_seen(of(Tier.SLOW, blocks), Channel("memory.cgroup_anon", (("cgroup", path),)))
        assert cpu - (100 + born) * TICK <= 30 * TICK, tree
        assert memory - (100 + born) * TICK <= 50 * TICK, tree
        assert path in clockwork.sampler.cgroups()
        clockwork.sampler.close()
        shutil.rmtree(procfs.folder / "sys/fs/cgroup/kubepods")


def first_seen(blocks: list[SampleBlock], channel: Channel) -> int:
    for block in blocks:
        column = block.layout.column.get(channel)
        if column is not None and not np.isnan(block.values[:, column]).all():
            return int(block.times_ns[0])
    raise AssertionError(f"{channel} was never seen")


def test_a_container_that_goes_takes_its_channels_along(procfs) -> None:
    procfs.cgroup_v2("/pod1")
    procfs.cgroup_v2("/pod2", anon=999)
    clockwork = Clockwork(procfs.root)
    before = clockwork.run(20)
    assert series(of(Tier.SLOW, before), "memory.cgroup_anon", cgroup="/pod2") == [999.0]
    shutil.rmtree(procfs.folder / "sys/fs/cgroup/pod2")
    after = of(Tier.SLOW, clockwork.run(60))[-1]
    assert Channel("memory.cgroup_anon", (("cgroup", "/pod1"),)) in after.layout.column
    assert Channel("memory.cgroup_anon", (("cgroup", "/pod2"),)) not in after.layout.column


def test_an_unlimited_cgroup_has_no_limit_and_a_limited_one_has(procfs) -> None:
    procfs.cgroup_v2("/pod1")
    clockwork = Clockwork(procfs.root)
    procfs.cgroup_v2("/pod2")
    procfs.write("sys/fs/cgroup/pod2/memory.max", "4096\n")
    slow = of(Tier.SLOW, clockwork.run(60))
    assert Channel("memory.cgroup_limit", (("cgroup", "/pod1"),)) not in slow[-1].layout.column
    assert series(slow, "memory.cgroup_limit", cgroup="/pod2")[-1] == 4096


def test_a_source_over_budget_moves_down_and_its_channels_with_it(procfs) -> None:
    clockwork = Clockwork(procfs.root, budget_ns=1)
    blocks = clockwork.run(400)
    stat = clockwork.sampler.health()[0]
    assert stat.name == "stat"
    assert stat.tier is not Tier.FAST
    assert "read every" in stat.reason
    assert Channel("cpu.user") not in of(Tier.FAST, blocks)[-1].layout.column
    assert 3.0 in series(of(stat.tier, blocks), "cpu.user")


def test_a_source_that_has_become_cheap_comes_back_and_its_channels_with_it(procfs) -> None:
    clockwork = Clockwork(procfs.root, budget_ns=1, sources=(stat.SOURCE,))
    clockwork.run(400)
    assert clockwork.sampler.health()[0].tier is Tier.SLOW
    assert Channel("cpu.user") in of(Tier.SLOW, clockwork.run(200))[-1].layout.column, "it is read where it went"
    clockwork.sampler._budget_ns = 1 << 40
    blocks = clockwork.run(6000)
    back = clockwork.sampler.health()[0]
    assert (back.tier, back.reason) == (Tier.FAST, "")
    assert Channel("cpu.user") in of(Tier.FAST, blocks)[-1].layout.column


def test_the_live_host_gives_channels_of_the_catalogue_and_nothing_else() -> None:
    clockwork = Clockwork(HostRoot("/"))
    blocks = clockwork.run(60)
    clockwork.sampler.close()
    channels = {channel for block in blocks for channel in block.layout.channels}
    assert len(channels) > 60
    for channel in channels:
        metric = METRICS[channel.metric]
        assert {key for key, _ in channel.labels} <= set(metric.labels)
    assert np.isfinite(of(Tier.FAST, blocks)[0].values).all()
    for block in blocks:
        assert block.values.shape == (len(block.times_ns), len(block.layout.channels))
        assert (np.diff(block.times_ns) > 0).all()


def test_what_the_live_host_counts_only_grows() -> None:
    clockwork = Clockwork(HostRoot("/"))
    blocks = clockwork.run(20, lambda _: time.sleep(0.002))
    clockwork.sampler.close()
    switches = series(of(Tier.FAST, blocks), "cpu.context_switches")
    assert switches == sorted(switches)
    assert switches[-1] > switches[0]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open(procfs) -> None:
    procfs.cgroup_v2("/pod1")
    before = open_files()
    clockwork = Clockwork(procfs.root)
    clockwork.run(50)
    assert open_files() > before
    clockwork.sampler.close()
    assert open_files() == before


def test_files_that_come_and_go_are_looked_for_no_oftener_than_they_are_read(procfs) -> None:
    procfs.cgroup_v2("/pod0")
    clockwork = Clockwork(procfs.root, sources=(cgroup_cpu.SOURCE, cgroup_events.SOURCE))
    procfs.cgroup_v2("/pod1")
    procfs.write("sys/fs/cgroup/pod1/memory.events", "max 3\n")
    clockwork.run(41)
    assert [health.channels for health in clockwork.sampler.health()] == [8, 0], "the slow one was not looked at"
    clockwork.run(80)
    assert [health.channels for health in clockwork.sampler.health()] == [8, 1]
    clockwork.sampler.close()


def test_a_tree_with_more_files_than_may_be_open_is_followed_in_part(procfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.host.sampler.MOST_FILES", 20)
    for number in range(30):
        procfs.cgroup_v2(f"/pod{number}")
    clockwork = Clockwork(procfs.root)
    clockwork.run(60)
    assert sum(health.files for health in clockwork.sampler.health()) <= 20
    assert any("too many are open" in health.reason for health in clockwork.sampler.health())
    clockwork.sampler.close()


CAPTURED = os.environ.get("UNVEIL_FIXTURES", "")


@pytest.mark.skipif(not CAPTURED, reason="UNVEIL_FIXTURES names no folder of captured trees")
@pytest.mark.parametrize(
    ("archive", "place"),
    [
        ("prometheus-procfs", "prometheus-procfs/fixtures"),
        ("prometheus-node_exporter", "prometheus-node_exporter/collector/fixtures"),
        ("dynolog", "dynolog/testing/root"),
    ],
)
def test_a_captured_host_is_sampled_as_a_live_one_is(archive: str, place: str, tmp_path: Path) -> None:
    with tarfile.open(Path(CAPTURED, f"{archive}.tar.gz")) as captured:
        captured.extractall(tmp_path, filter=leniently)
    clockwork = Clockwork(HostRoot(tmp_path / place))
    blocks = clockwork.run(60)
    clockwork.sampler.close()
    channels = {channel for block in blocks for channel in block.layout.channels}
    assert len(channels) > 100
    assert all(channel.metric in METRICS for channel in channels)
    assert np.isfinite(np.concatenate([block.values.ravel() for block in of(Tier.FAST, blocks)])).any()


@pytest.mark.slow
@pytest.mark.skipif(not CAPTURED, reason="UNVEIL_FIXTURES names no folder of captured trees")
def test_every_captured_topology_with_a_procfs_is_sampled_without_an_exception(tmp_path: Path) -> None:
    with tarfile.open(Path(CAPTURED, "hwloc.tar.gz")) as captured:
        captured.extractall(tmp_path, filter=leniently)
    sampled = 0
    for archive in sorted(tmp_path.rglob("*.tar.bz2"))[:12]:
        folder = tmp_path / archive.stem
        with tarfile.open(archive) as tree:
            tree.extractall(folder, filter=leniently)
        for root in {path.parent for path in folder.rglob("proc") if path.is_dir()}:
            clockwork = Clockwork(HostRoot(root))
            clockwork.run(20)
            clockwork.sampler.close()
            sampled += 1
        shutil.rmtree(folder)
    assert sampled > 5


def leniently(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, path)
    except tarfile.FilterError:
        return None


def test_every_source_can_be_left_out(procfs) -> None:
    for source in SOURCES:
        clockwork = Clockwork(procfs.root, sources=(source,))
        clockwork.run(20)
        assert [health.name for health in clockwork.sampler.health()] == [source.name]
        clockwork.sampler.close()


@pytest.mark.root
def test_a_cgroup_of_this_kernel_is_seen_followed_and_let_go() -> None:
    root = HostRoot("/")
    trees = CgroupTrees(root)
    if trees.cpu is None or os.geteuid() != 0:
        pytest.skip("making a cgroup takes root and a cpu controller")
    folder = Path("/", trees.cpu.mount, f"unveil-test-{os.getpid()}")
    key = f"/{folder.name}"

    def of_it(blocks: list[SampleBlock]) -> list[float]:
        return series(of(Tier.MEDIUM, blocks), "cpu.cgroup_throttled", cgroup=key)

    clockwork = Clockwork(root)
    try:
        clockwork.run(20)
        folder.mkdir()
        assert of_it(clockwork.run(50))[-1] == 0.0
        folder.rmdir()
        folder.mkdir()  # another one under the same name, before anybody looked
        assert of_it(clockwork.run(50))[-1] == 0.0
        folder.rmdir()
        gone = clockwork.run(50)
        assert Channel("cpu.cgroup_throttled", (("cgroup", key),)) not in of(Tier.MEDIUM, gone)[-1].layout.column
    finally:
        clockwork.sampler.close()
        if folder.exists():
            folder.rmdir()


def test_interrupts_of_a_host_with_128_cpus_come_by_node(procfs) -> None:
    cpus, irqs = 128, 200
    for node in range(8):
        procfs.write(f"sys/devices/system/node/node{node}/cpulist", f"{node * 16}-{node * 16 + 15}\n")

    def interrupts(number: int) -> None:
        rows = [
            f"{irq:4}: " + "".join(f"{number + cpu:11}" for cpu in range(cpus)) + f"  MSI {irq}-edge nic"
            for irq in range(irqs)
        ]
        procfs.write("proc/interrupts", "\n".join(["".join(f"CPU{cpu:<8}" for cpu in range(cpus)), *rows]) + "\n")

    interrupts(0)
    clockwork = Clockwork(procfs.root)
    medium = of(Tier.MEDIUM, clockwork.run(20, lambda number: interrupts(number) if number == 10 else None))
    clockwork.sampler.close()
    first = sum(range(112, 128))
    assert series(medium, "cpu.irq", irq="199", node="7") == [first, first + 16 * 10]
    assert sum(channel.metric == "cpu.irq" for channel in medium[0].layout.channels) == irqs * 8
