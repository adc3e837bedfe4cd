"""Traps that other agents fell into, set for real on this kernel: see docs/TRAPS.md."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.engine.observation import Observation
from unveil.engine.pipeline import Pipeline
from unveil.errors import SourceAbsentError
from unveil.host.catalogue import SOURCES, new_probes
from unveil.host.cgroups import CgroupTrees
from unveil.host.facts.reader import read_facts
from unveil.host.gpu import GpuReader
from unveil.host.parsers.number import parse_number
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler
from unveil.host.source import FAST, SLOWEST, Feed, Source, SourceState, Surroundings
from unveil.records.entity import EntityKind
from unveil.records.fact import FactTable
from unveil.records.metric import Channel, Kind, Metric
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.records.sample import SampleBlock

SECOND = 1_000_000_000
CPU1 = Path("/sys/devices/system/cpu/cpu1/online")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="changes this kernel: takes root")
IP = shutil.which("ip") or "/usr/sbin/ip"


def ip(words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([IP, *words.split()], check=False, capture_output=True)


def run(sampler: Sampler, seconds: float) -> list[SampleBlock]:
    """Let real time pass."""
    blocks: list[SampleBlock] = []
    for tick in range(round(10 * seconds)):
        sampler.tick(time.monotonic_ns())
        time.sleep(0.1)
        if tick % 10 == 9:
            blocks += sampler.collect(time.monotonic_ns())
    return blocks


def values(blocks: list[SampleBlock], channel: Channel) -> list[float]:
    found = [block.values[:, block.layout.column[channel]] for block in blocks if channel in block.layout.column]
    return np.concatenate(found).tolist() if found else []


def feeds_here() -> list[tuple[Source, tuple[Feed, ...]]]:
    """Return the files of every source that this host has."""
    trees = CgroupTrees(HostRoot())
    trees.walk(0)
    surroundings = Surroundings(root=HostRoot(), cgroups=trees)
    found: list[tuple[Source, tuple[Feed, ...]]] = []
    for source in SOURCES:
        with suppress(SourceAbsentError):
            found.append((source, source.feeds(surroundings)))
    return found


def test_ten_times_a_second_a_few_small_files_are_read_and_no_device_is_asked() -> None:
    fast = [feed.path for source, feeds in feeds_here() if source.pace is FAST for feed in feeds]
    assert set(fast) <= {"proc/stat", "proc/net/dev", *(f"proc/pressure/{name}" for name in ("cpu", "memory", "io"))}
    assert all(probe.period_s >= 1 for probe in new_probes()), "perf counters and drivers"
    assert inspect.signature(GpuReader).parameters["interval_ns"].default >= SECOND


def test_what_takes_the_networks_lock_is_read_once_in_ten_seconds() -> None:
    for source, feeds in feeds_here():
        if any(feed.path.startswith("sys/class/net/") for feed in feeds):
            assert source.pace is SLOWEST, source.name


def test_einval_from_one_file_of_thirty_costs_one_value() -> None:
    """The speed of the loopback interface is a file that answers EINVAL, on every kernel."""
    folder = Path("/sys/class/net/lo")
    paths = [f"sys/class/net/lo/statistics/{name}" for name in sorted(os.listdir(folder / "statistics"))[:24]]  # noqa: PTH208
    paths += [f"sys/class/net/lo/{name}" for name in ("mtu", "ifindex", "iflink", "type", "tx_queue_len", "speed")]
    with pytest.raises(OSError, match="Invalid argument"):
        HostRoot().read(paths[-1])
    metrics = tuple(
        Metric(name=f"network.file{number}", subsystem=Subsystem.NETWORK, unit="1", kind=Kind.GAUGE)
        for number in range(len(paths))
    )
    feeds = tuple(
        Feed(path=path, parser=partial(parse_number, metric=metric.name))
        for path, metric in zip(paths, metrics, strict=True)
    )
    source = Source(name="thirty", pace=FAST, metrics=metrics, feeds=lambda _: feeds)
    sampler = Sampler(HostRoot(), sources=(source,))
    blocks = run(sampler, 2)
    (health,) = sampler.health()
    sampler.close()
    told = [metric.name for metric in metrics if np.isfinite(values(blocks, Channel(metric.name)) or [np.nan]).any()]
    assert told == [metric.name for metric in metrics[:-1]]
    assert health.state is SourceState.OK
    assert "does not support" in health.reason


@contextmanager
def without_cpu1() -> Iterator[None]:
    CPU1.write_text("0")
    try:
        yield
    finally:
        CPU1.write_text("1")


@pytest.mark.slow
@pytest.mark.root
@root_only
def test_a_cpu_that_is_taken_offline_and_back_leaves_a_gap_and_nothing_else() -> None:
    if not (CPU1.exists() and os.access(CPU1, os.W_OK) and CPU1.read_text().strip() == "1"):
        pytest.skip("this kernel lets no CPU be taken offline; test_sampler.py does it to a tree")
    if any(Path("/sys/fs/cgroup/cpuset").glob("*/cpuset.cpus")):
        pytest.skip("cgroups of version 1 would lose the CPU for good")
    cpus = os.cpu_count() or 2
    observation = Observation(Path("/"), gpu=False)
    blocks: dict[str, list[SampleBlock]] = {"before": [], "offline": [], "back": []}

    def watch(phase: str, seconds: int) -> None:
        for _ in range(seconds):
            for _ in range(10):
                observation.tick(time.monotonic_ns())
                time.sleep(0.1)
            blocks[phase] += observation.collect(time.monotonic_ns())

    one = Channel("cpu.user", (("cpu", "1"),))
    zero, total = Channel("cpu.user", (("cpu", "0"),)), Channel("cpu.user")
    try:
        watch("before", 2)
        with without_cpu1():
            watch("offline", 3)
            assert read_facts(HostRoot()).value("cpu.online_count") == cpus - 1
        watch("back", 3)
        health = observation.health()
    finally:
        observation.close()
    assert values(blocks["before"], one)
    assert not np.isfinite(values(blocks["offline"][-1:], one) or [np.nan]).any(), "absent, not zero"
    assert np.isfinite(values(blocks["back"], one)[-5:]).all()
    for channel in (zero, total):
        for phase in blocks.values():
            assert np.isfinite(values(phase, channel)).all(), channel
    assert [source.name for source in health if source.state is SourceState.FAILED] == []
    assert read_facts(HostRoot()).value("cpu.online_count") == cpus


@pytest.mark.slow
@pytest.mark.root
@root_only
def test_interfaces_that_vanish_between_the_list_and_the_reading_hide_no_other() -> None:
    stop = threading.Event()
    made: list[bool] = []

    def churn() -> None:
        while not stop.is_set():
            made.append(ip("link add uvtrap0 type veth peer name uvtrap1").returncode == 0)
            ip("link del uvtrap0")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        sampler = Sampler(HostRoot())
        blocks: list[SampleBlock] = []
        for _ in range(4):
            blocks += run(sampler, 1)
            table = read_facts(HostRoot())
            assert "lo" in {entity.key for entity in table.entities(EntityKind.NIC)}
        health = sampler.health()
        sampler.close()
    finally:
        stop.set()
        thread.join()
        ip("link del uvtrap0")
    if not any(made):
        pytest.skip("this kernel makes no veth pairs")
    assert [source.name for source in health if source.state is SourceState.FAILED] == []
    assert np.isfinite(values(blocks, Channel("network.rx_bytes", (("nic", "lo"),)))).mean() > 0.9


@pytest.mark.slow
@pytest.mark.root
@root_only
def test_an_interface_that_is_renamed_is_another_and_the_old_one_is_absent() -> None:
    if ip("link add uvtrap2 type veth peer name uvtrap3").returncode:
        pytest.skip("this kernel makes no veth pairs")
    try:
        sampler = Sampler(HostRoot())
        before = run(sampler, 1)
        assert ip("link set uvtrap2 name uvtrap4").returncode == 0
        after = run(sampler, 2)
        sampler.close()
    finally:
        for name in ("uvtrap2", "uvtrap4"):
            ip(f"link del {name}")
    old, new = (Channel("network.rx_bytes", (("nic", name),)) for name in ("uvtrap2", "uvtrap4"))
    assert np.isfinite(values(before, old)).all()
    assert not values(before, new)
    assert np.isfinite(values(after[-1:] if values(after[-1:], new) else after, new)).any()
    fast = [block for block in after if Channel("network.rx_bytes", (("nic", "lo"),)) in block.layout.column]
    assert not np.isfinite(values(fast[-1:], old) or [np.nan]).any()


@pytest.mark.slow
@pytest.mark.root
@root_only
def test_a_proc_that_hides_processes_is_said_and_takes_nothing_else_away(tmp_path: Path) -> None:
    tools = [shutil.which(name) for name in ("unshare", "setpriv")]
    if None in tools:
        pytest.skip("util-linux is not installed")
    (tmp_path / "proc").mkdir()
    (tmp_path / "sys").mkdir()
    script = (
        f"mount -t proc -o hidepid=2,gid=54321 proc {tmp_path}/proc && mount --rbind /sys {tmp_path}/sys && "
        f"exec setpriv --bounding-set=-all --inh-caps=-all {sys.executable} -m unveil doctor --json --no-gpu "
        f"--host-root {tmp_path}"
    )
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    if "mount" in ended.stderr:
        pytest.skip(f"this kernel mounts no such proc: {ended.stderr.strip()}")
    told: dict[str, Any] = json.loads(ended.stdout)
    capabilities = {each["name"]: each for each in told["examination"]["capabilities"]}
    assert capabilities["processes"]["there"] is False
    assert "hidden" in capabilities["processes"]["detail"]
    states = {source["name"]: source["state"] for source in told["examination"]["sources"]}
    assert states["stat"] == states["meminfo"] == states["vmstat"] == "ok"
    assert "failed" not in states.values()


def second_of_samples(sampler: Sampler, begin_ns: int) -> tuple[SampleBlock, ...]:
    for tick in range(10):
        sampler.tick(begin_ns + tick * SECOND // 10)
    return sampler.collect(begin_ns + SECOND - 1)


def test_a_wall_clock_that_is_set_back_an_hour_costs_no_window_and_changes_no_rate() -> None:
    """Times of samples are monotonic; the wall clock is a label."""
    indices: dict[str, list[int]] = {}
    for name, step in (("kept", 0.0), ("set back", -3600.0), ("set forward", 3600.0)):
        sampler = Sampler(HostRoot())
        pipeline = Pipeline(watch=1, fingerprints=(), generation=1, new_id=lambda: "e1")
        outcomes = []
        for second in range(12):
            wall_s = 1.8e9 + second + (step if second >= 6 else 0.0)
            outcomes += pipeline.push(
                second_of_samples(sampler, 10**15 + second * SECOND), wall_s=wall_s, facts=FactTable()
            )
        sampler.close()
        indices[name] = [outcome.window.index for outcome in outcomes]
        assert all(outcome.window.end_ns - outcome.window.start_ns == 3 * SECOND for outcome in outcomes)
        assert all(outcome.summary.ticks_missed == 0 for outcome in outcomes)
    assert indices["kept"] == indices["set back"] == indices["set forward"]
    assert len(indices["kept"]) >= 8


def test_counters_that_go_backwards_never_make_a_rate_below_zero(tmp_path: Path) -> None:
    """As iowait and idle do on many kernels, and everything does when a device is made anew."""
    (tmp_path / "proc").mkdir()
    stat = tmp_path / "proc/stat"
    sampler = Sampler(HostRoot(tmp_path))
    pipeline = Pipeline(watch=1, fingerprints=(), generation=1, new_id=lambda: "e1")
    outcomes = []
    for second in range(12):
        for tick in range(10):
            forth = 1000 + 10 * (10 * second + tick)
            iowait = 548282 - (second % 3)  # 5482.82, then 5482.81
            stat.write_text(f"cpu  {forth} 0 {forth} {forth} {iowait} 0 0 0 0 0\nctxt {max(0, 60_000 - forth * 30)}\n")
            sampler.tick(10**15 + second * SECOND + tick * SECOND // 10)
        outcomes += pipeline.push(
            sampler.collect(10**15 + (second + 1) * SECOND - 1), wall_s=1.8e9 + second, facts=FactTable()
        )
    sampler.close()
    assert len(outcomes) >= 8
    for outcome in outcomes:
        for feature in ("cpu.iowait.rate", "cpu.idle.rate", "cpu.busy.rate", "cpu.context_switches.rate"):
            value = outcome.vector.get(feature)
            assert value is None or 0 <= value < 1e6, (feature, value)
