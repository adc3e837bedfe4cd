"""The watcher of the kill matrix: ``python -m unveil.benchmarks.kill_watcher FOLDER ORDERS``, killed as they say.

It drives runs exactly as `unveil watch` does (journal, snapshot, supervisor, settings, lifecycle), over a scratch host
of plain files and with made-up windows, on a clock that runs ten times as fast. What is real: the processes, the files,
the journal, Ansible, the kills.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.engine.reserve import Reserve
from unveil.engine.run_driver import RunDriver
from unveil.engine.situation import Situation
from unveil.errors import ConflictError, RefusedError
from unveil.execution.settings import Settings
from unveil.execution.supervisor import RunSupervisor
from unveil.records.codec import decode, encode
from unveil.records.entity import HOST
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.remediation import (
    Improvement,
    Limits,
    Mode,
    Remediation,
    VerificationRule,
    WantedSetting,
)
from unveil.records.run import RunState
from unveil.remediation.lifecycle import TERMINAL
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Run

PACE = 10.0
_OVER = frozenset({RunState.ROLLED_BACK, RunState.FAILED_CLEAN, RunState.CANCELED})
FEATURE = "memory.huge_share.last"
SETTINGS = 10
FILLER = "filler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a watcher is to do, and when it is to die.

    Attributes:
        run: the run's id.
        ask: what a person asks of it at the start: approve, apply, rollback, cancel, or nothing.
        helps: what the windows say: the fix helps, does not, or nobody can tell (None).
        foreign: someone else has changed a setting since.
        stays: the fix asks for no rollback.
        expires: approvals expire at once.
        at, when: the state whose step kills it, ``before`` or ``after`` the step is journalled.
        full: the disk is full from that moment on; instead of dying.
        patience_s: after so long it gives up.
    """

    run: str
    ask: str = ""
    helps: bool | None = True
    foreign: bool = False
    stays: bool = False
    expires: bool = False
    at: str = ""
    when: str = ""
    full: bool = False
    patience_s: float = 20.0


def setting(number: int) -> str:
    """Return the address of one of the ten settings."""
    return f"sysctl:vm.made_up_{number}"


def place(root: Path, number: int) -> Path:
    """Return the file that stands for it."""
    return root / f"proc/sys/vm/made_up_{number}"


def remediation(playbook: Path, orders: Orders) -> Remediation:
    """Return the fix that is carried out: ten settings, judged quickly."""
    return Remediation(
        name="ten_settings", id="1", title="", status="stable", description="", remediates=("f",),
        playbook=str(playbook), timeout_s=60.0, variables=(),
        settings=tuple(WantedSetting(address=setting(number), value="2") for number in range(SETTINGS)),
        mode=Mode.AUTO, impact="low", reversible=True, interrupts_workload=False, requires_reboot=False,
        preconditions=(), limits=Limits(cooldown_s=0.0, max_attempts=99, attempts_within_s=86400.0),
        verification=VerificationRule(
            within_s=12.0, settings_hold_s=3.0, clear_s=3.0,
            improve=(Improvement(feature=FEATURE, direction="up", effect=0.5),),
        ),
        rollback_triggers=()
        if orders.stays
        else ("apply_failed", "verify_failed", "canceled", "timeout", "operator"),
        rollback_available_s=1e6, approval_expires_s=0.5 if orders.expires else 1e6, revision="1",
    )  # fmt: skip


class Watcher:
    """One life of a watcher."""

    def __init__(self, folder: Path, orders: Orders) -> None:
        self._folder, self._orders = folder, orders
        self._root = folder / "host"
        self._fix = remediation(folder / "kb/apply.yml", orders)
        self._born = time.monotonic()
        self._epoch_s = time.time()
        state = folder / "state"
        self._journal = Journal(state / "journal.db")
        self._queries = Queries(state / "journal.db")
        self._dying(self._journal)
        settings = Settings(self._root)
        self._driver = RunDriver(
            journal=self._journal, queries=self._queries, settings=settings,
            supervisor=RunSupervisor(state / "runs", Path(os.environ["UNVEIL_MODULES"]), host_root=str(self._root)),
            situation=lambda _plan: Situation(
                remediation=self._fix, profile=Mode.MANUAL, silences=(), still_matching=True, baseline={FEATURE: 0.1}
            ),
            peek=lambda address, _since: settings.peek(address), changed=lambda: None, clock=self._clock,
            reserve=Reserve(state / "reserve"),
        )  # fmt: skip

    def _clock(self) -> float:
        return self._epoch_s + PACE * (time.monotonic() - self._born)

    def _dying(self, journal: Journal) -> None:
        """Let the journal kill this process, or fill the disk, at the step that the orders name."""
        keep: Callable[[Run], None] = journal.put_run

        def put_run(run: Run) -> None:
            here = run.state == self._orders.at and not (self._folder / "happened").exists()
            if here and self._orders.when == "before":
                self._happen()
            keep(run)
            if here and self._orders.when == "after":
                self._happen()

        journal.put_run = put_run  # type: ignore[method-assign]  # a benchmark's own tap

    def _happen(self) -> None:
        (self._folder / "happened").touch()
        if not self._orders.full:
            os.kill(os.getpid(), signal.SIGKILL)
        fill(self._folder / "state")

    def live(self) -> Run:
        """Do what was asked and look after the run until it has ended, or patience has."""
        self._driver.adopt()
        run = self._find()
        if self._orders.ask == "apply" and run.state is RunState.APPROVED:
            try:
                self._driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
            except (RefusedError, ConflictError) as error:
                print(error, file=sys.stderr)
        elif self._orders.ask == "approve" and run.state is RunState.PLANNED:
            self._driver.approve(run, plan_hash=run.plan.hash, actor="uid:0")
        elif self._orders.ask == "rollback" and run.state not in _OVER:
            self._driver.roll_back(run, actor="uid:0")
        elif self._orders.ask == "cancel" and run.state not in TERMINAL:
            self._driver.cancel(run, actor="uid:0")
        while (run := self._find()).state not in self._ends:
            if time.monotonic() - self._born > self._orders.patience_s:
                break
            for trouble in self._driver.second(self._vector(), self._matching):
                print(trouble, file=sys.stderr)
            time.sleep(0.05)
        self._driver.second(None, self._matching)
        return run

    @property
    def _ends(self) -> frozenset[RunState]:
        """Return where there is nothing to wait for."""
        return TERMINAL | ({RunState.APPROVED} if self._orders.ask == "approve" else set())

    def _find(self) -> Run:
        run = self._queries.run(self._orders.run)
        assert run is not None
        return self._driver.newest(run)

    def _vector(self) -> FeatureVector:
        value = {True: 0.9, False: 0.1, None: np.nan}[self._orders.helps]
        layout = FeatureLayout((FeatureId(FEATURE),))
        return FeatureVector(window=1, wall_s=self._clock(), layout=layout, values=np.array([value]))

    def _matching(self, _fingerprint: str, _entity: Any) -> bool | None:
        return None if self._orders.helps is None else not self._orders.helps

    def close(self) -> None:
        """Leave in good order."""
        self._queries.close()
        self._journal.close()


def fill(folder: Path) -> None:
    """Write into the file system of a folder until it takes nothing more."""
    with (folder / FILLER).open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def main(arguments: list[str]) -> int:
    """Live once; print how the run stands."""
    watcher = Watcher(Path(arguments[1]), decode(Orders, json.loads(arguments[2])))
    run = watcher.live()
    print(json.dumps({"state": run.state, "entity": encode(HOST)}))
    watcher.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
