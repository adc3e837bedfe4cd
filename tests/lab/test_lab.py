"""The lab on this kernel: what it changes it puts back, and what it records can be evaluated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unveil.cli.main import main as unveil
from unveil.lab.__main__ import main
from unveil.lab.faults import FAULTS, ImpossibleError
from unveil.lab.place import CGROUP, outer, place

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings")


def test_without_root_it_says_so_and_changes_nothing(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("this is root")
    assert main(["--workload", "loading", "--fault", "none", str(tmp_path)]) == 2


def test_workloads_and_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in FAULTS)


def settings() -> dict[str, str]:
    """Return everything that a fault may change, but for what is inside the place."""
    files = [Path("/sys/kernel/mm/transparent_hugepage/enabled"), *Path("/proc/sys/vm").glob("dirty_*")]
    return {str(path): path.read_text() for path in files}


@pytest.fixture(scope="module")
def inner() -> list[tuple[str, bool, bool]]:
    """Inject each fault once and tell for each whether it was possible, and whether all was as before after it."""
    told = []
    with place(Path.cwd() / ".lab-test") as where:
        for name, fault in FAULTS.items():
            before = settings(), links(), cgroup(where.folders["cpu" if "cpu" in where.folders else ""])
            try:
                with fault.inject(where):
                    possible = True
            except ImpossibleError:
                possible = False
            after = settings(), links(), cgroup(where.folders["cpu" if "cpu" in where.folders else ""])
            told.append((name, possible, before == after))
    (Path.cwd() / ".lab-test").rmdir()
    return told


def links() -> str:
    queues = [path.read_text() for path in sorted(Path(f"/sys/class/net/{outer('a')}").glob("queues/rx-*/rps_cpus"))]
    qdisc = subprocess.run(["ip", "-d", "link", "show", outer("a")], check=True, capture_output=True, text=True).stdout
    return f"{queues} {qdisc.partition('qdisc')[2].split()[0]}"


def cgroup(folder: Path) -> list[str]:
    return [path.read_text() for path in (folder / "cpu.cfs_quota_us", folder / "cpu.max") if path.exists()]


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_every_fault_is_taken_away_again(inner: list[tuple[str, bool, bool]]) -> None:
    assert [name for name, _, restored in inner if not restored] == []
    possible = {name for name, possible, _ in inner if possible}
    assert {"none", "cpu_neighbour", "memory_neighbour"} <= possible
    assert not Path(f"/sys/class/net/{outer('a')}").exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{CGROUP}"))


@needs_root
@pytest.mark.root
@pytest.mark.slow
def test_an_experiment_is_recorded_labelled_and_can_be_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = ["--healthy", "75", "--faulty", "5", "--after", "1"]
    command = [sys.executable, "-m", "unveil.lab", "--workload", "loading", "--fault", "none", *lengths, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 0, ended.stderr
    recording = tmp_path / "loading-none.parquet"
    assert unveil(["eval", str(recording), "--rule", "zscore", "--json"]) == 0
    assert '"faults": 0' in capsys.readouterr().out
