"""Kill everything at every step of a run's life, and see what is left: ``python -m unveil.benchmarks.kill_matrix``.

The rows are the steps of the lifecycle's own table, the columns what is killed, or that the disk is full. After each
a new watcher takes over. A cell is right when the run ends in a named outcome, every one of its ten settings reads as
that outcome says (as planned, as before, or what someone else wrote), the chain of steps is whole, and no process of it
lives. Exit 1 when one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.kill_strikes import Struck, strike
from unveil.benchmarks.kill_watcher import FILLER, SETTINGS, Orders, place, remediation
from unveil.execution import processes
from unveil.execution.settings import Settings
from unveil.records.codec import encode
from unveil.records.entity import HOST
from unveil.records.fact import FactTable
from unveil.records.match import Answer as Matched
from unveil.records.match import Episode, EpisodeState, Match
from unveil.records.run import RunState
from unveil.remediation.lifecycle import ACTIVE, STEPS, Cause, advance, new_run
from unveil.remediation.planner import plan
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.records.run import Run

CANCEL_S = 3.5
_ROOT = Path(__file__).parents[2]
MODULES = next(
    path for path in (_ROOT / "playbooks/modules", _ROOT / "unveil/_content/playbooks/modules") if path.is_dir()
)
PLAYBOOK = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - unveil_setting:
        settings: "{{{{ unveil_settings }}}}"
        root: "{{{{ unveil_host_root }}}}"
    - ansible.builtin.wait_for:
        timeout: {seconds}
"""
_S = RunState
# How a run comes to each step of the table: (from, to) → what is asked, and what the windows say.
_WAYS: dict[tuple[RunState, RunState], Orders] = {
    (_S.PLANNED, _S.APPROVED): Orders(run="", ask="approve"),
    **{(state, _S.EXPIRED): Orders(run="", expires=True) for state in (_S.PLANNED, _S.APPROVED)},
    (_S.APPROVED, _S.APPLYING): Orders(run="", ask="apply"),
    (_S.APPLYING, _S.NO_CHANGE): Orders(run="", ask="apply"),
    (_S.VERIFYING, _S.FAILED_DIRTY): Orders(run="", helps=False, stays=True),
    (_S.APPROVED, _S.REFUSED): Orders(run="", ask="apply"),
    (_S.APPLYING, _S.VERIFYING): Orders(run="", ask="apply"),
    (_S.VERIFYING, _S.KEPT): Orders(run=""),
    (_S.VERIFYING, _S.INCONCLUSIVE): Orders(run="", helps=None),
    (_S.VERIFYING, _S.REVERTED_BY_OTHER): Orders(run="", foreign=True),
    (_S.VERIFYING, _S.ROLLING_BACK): Orders(run="", helps=False),
    **{(_S.ROLLING_BACK, to): Orders(run="") for to in (_S.ROLLED_BACK, _S.FAILED_CLEAN, _S.CANCELED)},
    (_S.ROLLING_BACK, _S.REVERTED_BY_OTHER): Orders(run="", foreign=True),
    **{(state, _S.ROLLING_BACK): Orders(run="", ask="rollback") for state in (_S.KEPT, _S.INCONCLUSIVE)},
    **{(state, _S.ROLLING_BACK): Orders(run="", ask="rollback") for state in (_S.REVERTED_BY_OTHER, _S.FAILED_DIRTY)},
    **{(state, _S.CANCELED): Orders(run="", ask="cancel") for state in (_S.PLANNED, _S.APPROVED)},
}
_PLANNED = frozenset({_S.KEPT, _S.INCONCLUSIVE, _S.FAILED_DIRTY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One kill at one step.

    Attributes:
        start: the state that the run is left in beforehand.
        to: the step that it takes then.
        what: what is killed, or ``full disk``.
    """

    start: RunState
    to: RunState
    what: str
    orders: Orders

    def __str__(self) -> str:
        return f"{self.start} → {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a cell; *wrong* is empty when all is well."""

    cell: Cell
    state: str
    settings: str
    seconds: float
    wrong: str = ""


def cells() -> Iterator[Cell]:
    """Yield the matrix: every step of the table that acts on a host, under everything that may happen at it."""
    for start, ways in STEPS.items():
        for to in ways:
            if (orders := _WAYS.get((start, to))) is None:
                continue
            if (start, to) != (_S.APPLYING, _S.VERIFYING):
                for what in ("watcher, before it is written", "watcher, after it is written", "full disk"):
                    when = "after" if "after" in what else "before"
                    yield Cell(
                        start=start, to=to, what=what,
                        orders=replace(orders, at=to, when=when, full=what == "full disk"),
                    )  # fmt: skip
    applying = Orders(run="", ask="apply")
    for what in Struck:
        yield Cell(start=_S.APPLYING, to=_S.VERIFYING, what=what, orders=applying)


class Scene:
    """A scratch host with ten settings, a journal and one run in a state."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.folder, self.cell = folder, cell
        self.root = folder / "host"
        for name in ("state/runs", "kb", "host/proc/sys/vm"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for path in (folder, folder / "state", folder / "state/runs", folder / "kb"):
            path.chmod(0o700)
        for number in range(SETTINGS):
            place(self.root, number).write_text("1\n")
        seconds = 30 if cell.what == Struck.CANCEL else 1
        (folder / "kb/apply.yml").write_text(PLAYBOOK.format(seconds=seconds))
        if cell.to is _S.NO_CHANGE:
            for number in range(SETTINGS):
                place(self.root, number).write_text("2\n")
        self.settings = Settings(self.root)
        self.run = self._prepared()
        if cell.to is _S.REFUSED:
            place(self.root, 0).write_text("9\n")  # the plan is stale: this is how it was found
        if cell.orders.foreign:
            place(self.root, 3).write_text("7\n")
        self.before = self.contents()

    def contents(self) -> tuple[str, ...]:
        """Return what the ten settings read."""
        return tuple(place(self.root, number).read_text().strip() for number in range(SETTINGS))

    def _prepared(self) -> Run:
        """Journal a run as a watcher would have left it in the cell's first state."""
        drawn = plan(
            remediation(self.folder / "kb/apply.yml", self.cell.orders), example_episode(), facts=FactTable(), site={},
            read=self.settings.peek, baseline=lambda _name, _entity: 0.1, now_s=time.time(),
        )  # fmt: skip
        run = new_run("r0123456789ab", drawn, "uid:0", time.time())
        wanted = self.cell.start if self.cell.start is not _S.APPLYING else _S.APPROVED
        journal = Journal(self.folder / "state/journal.db")
        journal.put_run(run)
        for state, cause in _path(wanted, self.cell.to):
            if state is _S.APPLYING:
                saved = {change.address: self.settings.read(change.address) for change in drawn.changes}
                run = replace(run, saved=saved)
            if state in (_S.VERIFYING, _S.ROLLING_BACK):
                written = {each.address: self.settings.write(each.address, each.after or "") for each in drawn.changes}
                run = replace(run, written=written)
            run = advance(run, state, cause, "uid:0", time.time())
            journal.put_run(run)
        journal.close()
        return run

    def watcher(self, orders: Orders) -> subprocess.Popen[bytes]:
        """Start a watcher over the scene."""
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "unveil.benchmarks.kill_watcher", str(self.folder),
             json.dumps(encode(replace(orders, run=self.run.id)))],
            stdout=log, stderr=log, env={**os.environ, "UNVEIL_MODULES": str(MODULES)},
        )  # fmt: skip
        log.close()
        return process

    def stored(self) -> Run:
        """Return the run as the journal has it, and check its chain."""
        queries = Queries(self.folder / "state/journal.db")
        try:
            run = queries.run(self.run.id)
            assert run is not None
            broken = queries.broken_link()
        finally:
            queries.close()
        if broken is not None:
            raise AssertionError(f"the chain is broken at step {broken}")
        return run


_TO_VERIFYING = (
    (_S.APPROVED, Cause.OPERATOR),
    (_S.APPLYING, Cause.STARTED),
    (_S.VERIFYING, Cause.APPLIED),
)
_PATHS: dict[RunState, tuple[tuple[RunState, Cause], ...]] = {
    _S.PLANNED: (),
    _S.APPROVED: _TO_VERIFYING[:1],
    _S.VERIFYING: _TO_VERIFYING,
    _S.KEPT: (*_TO_VERIFYING, (_S.KEPT, Cause.VERIFIED)),
    _S.INCONCLUSIVE: (*_TO_VERIFYING, (_S.INCONCLUSIVE, Cause.NO_ANSWER)),
    _S.REVERTED_BY_OTHER: (*_TO_VERIFYING, (_S.REVERTED_BY_OTHER, Cause.CHANGED_BY_OTHER)),
    _S.FAILED_DIRTY: (*_TO_VERIFYING, (_S.FAILED_DIRTY, Cause.NO_ROLLBACK)),
}


def _path(state: RunState, to: RunState) -> tuple[tuple[RunState, Cause], ...]:
    """Return the steps to a state; a rollback has the cause that leads to its end."""
    if state is not _S.ROLLING_BACK:
        return _PATHS[state]
    if to is _S.FAILED_CLEAN:
        return (*_TO_VERIFYING[:2], (_S.ROLLING_BACK, Cause.LOST))
    return (*_TO_VERIFYING, (_S.ROLLING_BACK, Cause.CANCELED if to is _S.CANCELED else Cause.NOT_VERIFIED))


def example_episode() -> Episode:
    """Return an episode of a made-up fingerprint on this host."""
    match = Match(
        window=1, wall_s=1.0, fingerprint="f", entity=HOST, answer=Matched.MATCH, clauses=(), bindings={"host": ""}
    )
    return Episode(
        id="e0123456789ab", fingerprint="f", revision="1", entity=HOST, state=EpisodeState.FIRING, started_s=1.0,
        fired_s=1.0, last_s=1.0, cleared_s=None, windows=9, last=match,
    )  # fmt: skip


def play(cell: Cell, folder: Path) -> Answer:
    """Carry one cell out in a folder of its own."""
    began = time.monotonic()
    scene = Scene(folder, cell)
    wrong = []
    process = scene.watcher(cell.orders)
    if (cell.start, cell.to) == (_S.APPLYING, _S.VERIFYING):
        wrong += strike(Struck(cell.what), scene.folder, scene.root, process)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        wrong.append("the watcher hung")
    restored = scene.contents()
    if cell.orders.full:
        if cell.to in (_S.ROLLING_BACK, _S.ROLLED_BACK) and not _fits(cell, restored, scene.before, _S.ROLLED_BACK):
            wrong.append("a full disk kept it from being put back")
        (folder / "state" / FILLER).unlink(missing_ok=True)
    again = scene.watcher(replace(cell.orders, at="", when="", full=False))
    try:
        again.wait(40)
    except subprocess.TimeoutExpired:
        again.kill()
        wrong.append("the next watcher hung")
    return _judged(scene, cell, wrong, time.monotonic() - began)


def _judged(scene: Scene, cell: Cell, wrong: list[str], seconds: float) -> Answer:
    now = scene.contents()
    try:
        run = scene.stored()
    except AssertionError as error:
        return Answer(cell=cell, state="?", settings=" ".join(now), seconds=seconds, wrong=str(error))
    if run.state in ACTIVE or (run.state in (_S.PLANNED, _S.APPROVED) and now != scene.before):
        wrong.append("it has not ended")
    if not _fits(cell, now, scene.before, run.state):
        wrong.append(f"the settings read {' '.join(now)}")
    request = scene.folder / "state/runs" / run.id / "request.json"
    mark = f"{run.id}."
    with suppress(OSError, ValueError):
        mark = json.loads(request.read_text())["mark"]
    if left := processes.marked(mark):
        wrong.append(f"{len(left)} processes live on")
    kinds = {"2": "as planned", "1": "as before"}
    told = kinds.get(now[5], "?") + (", theirs" if "7" in now or "9" in now else "")
    return Answer(cell=cell, state=run.state, settings=told, seconds=seconds, wrong="; ".join(wrong))


def _fits(cell: Cell, now: tuple[str, ...], before: tuple[str, ...], state: RunState) -> bool:
    """Tell whether the ten settings read as an outcome says; what someone else wrote has to stand."""
    mine = [value for value in now if value not in ("7", "9")]
    theirs = len(now) - len(mine)
    if theirs != int(cell.orders.foreign or cell.to is _S.REFUSED) and not (cell.orders.foreign and theirs == 0):
        return False
    if state in _PLANNED:
        return set(mine) == {"2"}
    if state is _S.REVERTED_BY_OTHER:
        return len(set(mine)) == 1
    if state in (_S.PLANNED, _S.APPROVED, _S.NO_CHANGE):
        return now == before
    return set(mine) == {"1"}


def main(argv: list[str] | None = None) -> int:
    """Play the whole matrix and print it."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.kill_matrix", description=__doc__)
    parser.add_argument("--only", default="", help="only cells whose text holds this")
    arguments = parser.parse_args(argv)
    chosen = [cell for cell in cells() if arguments.only in f"{cell}: {cell.what}"]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unveil-kill-") as folder:
        answers = _play_all(chosen, Path(folder))
    width = max(len(str(answer.cell)) for answer in answers)
    for answer in answers:
        verdict = answer.wrong or "right"
        print(
            f"{answer.cell!s:{width}}  {answer.cell.what:30}  {answer.state:18}  {answer.settings:20}  "
            f"{answer.seconds:5.1f} s  {verdict}"
        )
    bad = sum(bool(answer.wrong) for answer in answers)
    missing = [f"{start} → {to}" for start, ways in STEPS.items() for to in ways if (start, to) not in _WAYS]
    print(f"not a row, because no killed watcher comes to it, or a row above holds it: {', '.join(missing)}")
    print(
        f"{len(answers) - bad} of {len(answers)} runs ended in a named outcome with every setting as it says, "
        f"in {time.monotonic() - began:.0f} s"
    )
    return 1 if bad else 0


def _play_all(chosen: list[Cell], folder: Path) -> list[Answer]:
    """Play cells, two at a time; each that fills its disk in a small file system of its own."""

    def one(number_cell: tuple[int, Cell]) -> Answer:
        number, cell = number_cell
        place_ = folder / str(number)
        place_.mkdir(mode=0o700)
        mounted = cell.orders.full or cell.what == Struck.FULL_DISK
        if mounted:
            made = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(place_)], check=False,
                capture_output=True,
            )  # fmt: skip
            if made.returncode:
                return Answer(cell=cell, state="-", settings="-", seconds=0.0, wrong="no small disk: it takes root")
        try:
            return play(cell, place_)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", str(place_)], check=False)
            shutil.rmtree(place_, ignore_errors=True)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, enumerate(chosen)))


if __name__ == "__main__":
    sys.exit(main())
