"""How long a fix takes, from the match on: ``python -m unveil.benchmarks.remediation [--rulebook PYTHON]``.

Ten settings of a scratch host, a real journal on the disk, a real ansible-playbook. With ``--rulebook`` the Python of a
virtual environment with ansible-rulebook: then its rule engine starts the same playbook, in turns with ours, because
what else a machine does at a time counts for both. In turns with both goes a fix for which no process had Ansible
loaded, which is what having one at hand is worth; what that costs is printed, too. Wall time; the load average is
printed beside it.

Exit 1 when a target is missed: native plan and restore 50 ms, dry run 2 s; beside the peer, its median to the first
task and 0.8 of its median to the change.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.kill_matrix import MODULES, PLAYBOOK, example_episode
from unveil.benchmarks.kill_watcher import SETTINGS, Orders, place, remediation
from unveil.benchmarks.rulebook_peer import Peer
from unveil.engine.reserve import Reserve
from unveil.engine.run_driver import RunDriver
from unveil.engine.situation import Situation
from unveil.execution import processes
from unveil.execution.request import EVENTS
from unveil.execution.settings import Outcome, Settings
from unveil.execution.standby import WAIT_S
from unveil.execution.supervisor import RunSupervisor
from unveil.records.fact import FactTable
from unveil.records.remediation import Mode
from unveil.remediation.planner import plan
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan

PLAN_MS = RESTORE_MS = 50.0
CHECK_S = 2.0
PATIENCE_S = 60.0
SEEN_S = 3.0  # the least time from the first matching window until an episode fires, or that a person looks at a plan


class Bench:
    """A scratch host, and what carries fixes out on it."""

    def __init__(self, folder: Path) -> None:
        memory = Path("/dev/shm")  # noqa: S108  # as procfs is; a disk flushes a file that is written over
        self._host = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else folder)
        self.root = Path(self._host.name)
        (self.root / "proc/sys/vm").mkdir(parents=True)
        for name in ("kb", "state", "state/runs"):
            (folder / name).mkdir(mode=0o700)
        self.playbook = folder / "kb/apply.yml"
        self.playbook.write_text(PLAYBOOK.format(seconds=0).split("    - ansible.builtin.wait_for")[0])
        self.reset()
        self.costs: list[tuple[float, float]] = []
        self.settings = Settings(self.root)
        self.fix = remediation(self.playbook, Orders(run=""))
        self.journal = Journal(folder / "state/journal.db")
        self.queries = Queries(folder / "state/journal.db")
        self.supervisor = RunSupervisor(folder / "state/runs", MODULES, host_root=str(self.root))
        situation = Situation(remediation=self.fix, profile=Mode.AUTO, silences=(), still_matching=True, baseline={})
        self.driver = RunDriver(
            journal=self.journal, queries=self.queries, settings=self.settings, supervisor=self.supervisor,
            situation=lambda _plan: situation, peek=lambda address, _since: self.settings.peek(address),
            changed=lambda: None, clock=time.time, reserve=Reserve(folder / "state/reserve"),
        )  # fmt: skip

    def reset(self) -> None:
        """Let every setting read as before."""
        for number in range(SETTINGS):
            place(self.root, number).write_text("1\n")

    def changed(self) -> bool:
        """Tell whether the last setting has been written."""
        return place(self.root, SETTINGS - 1).read_text() == "2\n"

    def draw(self) -> Plan:
        """Draw a plan as a match would."""
        return plan(
            self.fix, example_episode(), facts=FactTable(), site={}, read=self.settings.peek,
            baseline=lambda _name, _entity: 0.1, now_s=time.time(),
        )  # fmt: skip

    def fixed(self, *, at_hand: bool = True) -> tuple[float, float]:
        """Return seconds from a match to the first task, and to the last setting written; then take it all back."""
        if at_hand:
            self.supervisor.stand_by()  # as a watcher does when the match is first seen
            time.sleep(SEEN_S)
            self.costs.append(_cost(self.supervisor.standing_by))
        began = time.perf_counter()
        run = self.driver.propose(self.draw(), actor="uid:0")
        run = self.driver.approve(run, plan_hash=run.plan.hash, actor="uid:0")
        self.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
        events = self.supervisor.directory_of(run.id) / EVENTS
        first = _until(lambda: events.exists() and b"playbook_on_task_start" in events.read_bytes()) - began
        changed = _until(self.changed) - began
        _until(lambda: self._verifying(run.id))
        self.driver.cancel(run, actor="uid:0")
        _until(self._over)
        return first, changed

    def _over(self) -> bool:
        self.driver.second(None, lambda _fingerprint, _entity: False)
        return not self.driver.active

    def _verifying(self, run: str) -> bool:
        self.driver.second(None, lambda _fingerprint, _entity: False)
        return self.driver.progress(run) is not None

    def checked(self, *, looked_s: float = 0.0) -> float:
        """Return the seconds that Ansible's own dry run takes, of a plan that somebody looked at for so long."""
        self.supervisor.stand_by()  # as the order to plan does
        time.sleep(looked_s)
        began = time.perf_counter()
        child = self.supervisor.dry_run(self.draw())
        done = _until(lambda: child.poll().result is not None) - began
        self.supervisor.discard(child)
        return done

    def restored(self) -> float:
        """Return the seconds that it takes to put ten settings back, without Ansible."""
        saved = {address: self.settings.read(address) for address in _addresses(self.draw())}
        written = {address: self.settings.write(address, "2") for address in saved}
        began = time.perf_counter()
        answers = self.settings.restore(saved, written)
        took = time.perf_counter() - began
        assert all(answer.outcome is Outcome.RESTORED for answer in answers)
        return took

    def planned(self) -> float:
        """Return the seconds that a native plan takes, which is a dry run of its settings."""
        began = time.perf_counter()
        self.draw()
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the journal."""
        self.supervisor.close()
        self.queries.close()
        self.journal.close()
        self._host.cleanup()


def _cost(mark: str) -> tuple[float, float]:
    """Return the memory (MB, shared pages by share) and the CPU time (s) of the processes that carry a mark."""
    kilobytes = ticks = 0
    for pid in processes.marked(mark):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        kilobytes += int(rollup[rollup.index("Pss:") + 1])
        ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return kilobytes / 1e3, ticks / os.sysconf("SC_CLK_TCK")


def _addresses(drawn: Plan) -> list[str]:
    return [change.address for change in drawn.changes]


def _until(holds: Callable[[], bool]) -> float:
    end = time.perf_counter() + PATIENCE_S
    while not holds():
        if time.perf_counter() > end:
            raise SystemExit("it did not happen within a minute")
        time.sleep(0.002)
    return time.perf_counter()


def _children_s() -> float:
    """Return the CPU time of the processes that were started and have ended, seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told(name: str, values: list[float], unit: str = "s") -> float:
    scale = 1e3 if unit == "ms" else 1.0
    median = statistics.median(values) * scale
    spread = f"min {min(values) * scale:.2f}, max {max(values) * scale:.2f}"
    print(f"{name:36} median {median:8.2f} {unit}   ({spread}, n={len(values)})")
    return median


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.remediation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--rulebook", metavar="PYTHON", help="Python of an environment with ansible-rulebook")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="unveil-latency-") as folder:
        return _measure(Path(folder), arguments.rounds, arguments.rulebook)


def _measure(folder: Path, rounds: int, rulebook: str | None) -> int:
    bench = Bench(folder)
    peer = Peer(Path(rulebook), folder / "peer", bench.playbook, MODULES, bench.root) if rulebook else None
    ours: list[tuple[float, float]] = []
    cold: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    try:
        plans = [bench.planned() for _ in range(50)][1:]  # the first one opens Jinja2
        restores = [bench.restored() for _ in range(20)]
        for _ in range(rounds):
            bench.reset()
            ours.append(bench.fixed())
            bench.reset()
            cold.append(bench.fixed(at_hand=False))
            if peer is not None:
                bench.reset()
                theirs.append(peer.fixed(bench.changed))
        bench.reset()
        used = _children_s()
        checks = [bench.checked() for _ in range(rounds)]
        used = (_children_s() - used) / rounds
        looked = [bench.checked(looked_s=SEEN_S) for _ in range(rounds)]
    finally:
        bench.close()
        if peer is not None:
            peer.close()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; a dry run takes {used:.2f} s of CPU time")
    memory, ready = (statistics.median(values) for values in zip(*bench.costs, strict=True))
    print(f"Ansible at hand costs {memory:.0f} MB for at most {WAIT_S / 60:.0f} minutes, and {ready:.2f} s of CPU time")
    _told("nothing at hand, to first task", [each[0] for each in cold])
    _told("nothing at hand, to changed", [each[1] for each in cold])
    _told("dry run of a plan that was looked at", looked)
    return _verdict(plans, restores, checks, ours, theirs)


def _verdict(
    plans: list[float],
    restores: list[float],
    checks: list[float],
    ours: list[tuple[float, float]],
    theirs: list[tuple[float, float]],
) -> int:
    missed = []
    for name, values, unit, most in (
        ("native plan, ten settings", plans, "ms", PLAN_MS),
        ("restore, ten settings", restores, "ms", RESTORE_MS),
        ("dry run through Ansible", checks, "s", CHECK_S),
    ):
        if _told(name, values, unit) > most:
            missed.append(f"{name} above {most:g} {unit}")
    first = _told("match to first task", [each[0] for each in ours])
    changed = _told("match to changed", [each[1] for each in ours])
    if theirs:
        peer_first = _told("ansible-rulebook to first task", [each[0] for each in theirs])
        peer_changed = _told("ansible-rulebook to changed", [each[1] for each in theirs])
        if first > peer_first:
            missed.append(f"first task {first / peer_first:.2f} times the peer's")
        if changed > 0.8 * peer_changed:
            missed.append(f"changed {changed / peer_changed:.2f} times the peer's, wanted 0.8")
    print("; ".join(missed) if missed else "every target is held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
