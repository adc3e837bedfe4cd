"""The lab on this kernel: what it changes it puts back, and what it records can be evaluated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unveil.cli.main import main as unveil
from unveil.host.replay import Replay
from unveil.lab.__main__ import main
from unveil.lab.changes import JOURNAL, ImpossibleError
from unveil.lab.faults import FAULTS
from unveil.lab.labels import read
from unveil.lab.place import BRIDGE, CGROUP, SIDES, container, outer, place
from unveil.lab.uses import Uses

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings")


def test_without_root_it_says_so_and_changes_nothing(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("this is root")
    assert main(["--workload", "loading", "--fault", "none", str(tmp_path)]) == 2


def test_workloads_and_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in FAULTS)


VM = Path("/proc/sys/vm")


def settings() -> dict[str, str]:
    """Return everything that a fault may change, but for what goes away with the place."""
    cgroups = ("cpu.cfs_*_us", "cpu.shares", "memory.limit_in_bytes", "blkio.throttle.*_bps_device")
    files = [
        Path("/sys/kernel/mm/transparent_hugepage/enabled"), *VM.glob("dirty_*"),
        *Path("/sys/block").glob("*/queue/read_ahead_kb"), *Path("/proc/irq").glob("*/smp_affinity"),
        *(path for name in cgroups for path in Path("/sys/fs/cgroup").glob(f"*/{CGROUP}/*/{name}")),
        *Path(f"/sys/class/net/{outer('a')}").glob("queues/rx-*/rps_cpus"),
    ]  # fmt: skip
    told = {str(path): path.read_text() for path in files}
    for words in (["tc", "qdisc", "show"], ["nft", "list", "tables"], ["ethtool", "-k", outer("a")]):
        if shutil.which(words[0]):
            told[words[0]] = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    return told


@pytest.fixture(scope="module")
def inner() -> list[tuple[str, str, dict[str, tuple[str, str]]]]:
    """Lay each fault on once, and tell for each why it was not possible, and what was not as before after it."""
    told = []
    scratch = Path.cwd() / ".lab-test"
    used = Uses(
        cores=dict.fromkeys(SIDES, 0.5), received=dict.fromkeys(SIDES, 1e6), read=dict.fromkeys(SIDES, 1e6),
        written=dict.fromkeys(SIDES, 1e6), anonymous=dict.fromkeys(SIDES, 1 << 20),
        cached=dict.fromkeys(SIDES, 64 << 20),
    )  # fmt: skip
    with place(scratch) as where:
        for name, fault in FAULTS.items():
            before, why = settings(), ""
            try:
                with fault.inject(where, used):
                    pass
            except ImpossibleError as error:
                why = error.what
            after = settings()
            told.append((name, why, {key: (before[key], after[key]) for key in before if before[key] != after[key]}))
    shutil.rmtree(scratch)
    return told


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_every_fault_is_taken_away_again(inner: list[tuple[str, str, dict[str, tuple[str, str]]]]) -> None:
    assert {name: changed for name, _, changed in inner if changed} == {}
    possible = {name for name, why, _ in inner if not why}
    assert {"none", "cpu_neighbour", "memory_neighbour", "interrupts_on_one_cpu"} <= possible
    assert not Path(f"/sys/class/net/{outer('a')}").exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"))
    assert not JOURNAL.exists()


KILLED = """
import os, sys, time
from pathlib import Path
from unveil.lab.faults import FAULTS
from unveil.lab.place import place
from unveil.lab.uses import Meter
with place(Path(sys.argv[1])) as where, FAULTS["small_dirty_limit"].inject(where, Meter(where).uses()):
    where.start_neighbour("-c", "import time; time.sleep(600)")
    print("there", flush=True)
    time.sleep(600)
"""


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_after_a_kill_everything_is_put_back_and_taken_away(tmp_path: Path) -> None:
    before = settings()
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == b"there\n"
        assert (VM / "dirty_bytes").read_text() == f"{2 << 20}\n"
        assert main(["--restore"]) == 1, "not under a lab that runs"
        lab.kill()  # nobody asks for its end until all is put back
        deadline = time.monotonic() + 60
        while (JOURNAL.exists() or Path(f"/sys/class/net/{BRIDGE}").exists()) and time.monotonic() < deadline:
            time.sleep(0.1)
    assert settings() == before
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"))
    assert not Path(f"/sys/class/net/{BRIDGE}").exists()


@needs_root
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.longest
@pytest.mark.timeout(400)
def test_an_experiment_is_recorded_labelled_and_can_be_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = ["--healthy", "70", "--faulty", "8", "--after", "2"]
    asked = ["--workload", "embedding", "--fault", "cpu_quota", *lengths, str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "unveil.lab", *asked], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0, ended.stderr
    recording = tmp_path / "embedding-cpu_quota.parquet"
    told = read(recording.with_suffix(".result.json"))
    assert told is not None
    assert told.verdict == "effective"
    assert 70 <= told.begin_s <= told.active_s < told.end_s < told.settled_s <= told.seconds
    assert main(["--table", str(tmp_path)]) == 0
    assert "effective" in capsys.readouterr().out
    channels = {
        str(channel) for tick in Replay(recording) for block in tick.blocks for channel in block.layout.channels
    }
    assert any("cgroup_throttled" in channel and container("b") in channel for channel in channels)
    assert unveil(["eval", str(recording), "--rule", "zscore", "--json"]) == 0
    assert '"faults": 1' in capsys.readouterr().out
