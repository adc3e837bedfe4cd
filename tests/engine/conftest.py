"""Real parts for the engine: a journal on disk, a scratch host of plain files, a playbook that changes it, a clock."""

from __future__ import annotations

import contextlib
import gc
import shutil
import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.engine.reserve import Reserve
from unveil.engine.run_driver import RunDriver
from unveil.engine.situation import Situation
from unveil.errors import RefusedError
from unveil.execution.settings import Settings
from unveil.execution.supervisor import RunSupervisor
from unveil.records.entity import HOST
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.records.remediation import Improvement, Limits, Mode, Remediation, VerificationRule, WantedSetting
from unveil.remediation.planner import plan
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.records.run import Plan, Run, RunState
    from unveil.records.site import Profiles

MODULES = Path(__file__).parents[2] / "playbooks/modules"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
TREE = {
    THP: "always [madvise] never\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/swappiness": "60\n",
}
SETTING = f"file:/{THP}"
RATIO = "sysctl:vm.dirty_ratio"
WRITE = """
- unveil_setting:
    settings: "{{ unveil_settings }}"
    root: "{{ unveil_host_root }}"
"""
FEATURE = "memory.huge_share.last"


@pytest.fixture(autouse=True)
def nobody_stands_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep quick tests from loading Ansible for a playbook that they never start."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(RunSupervisor, "stand_by", lambda _self: None)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Give a tree of plain files that stands for a host."""
    root = tmp_path / "host"
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def episode_of(number: int = 1, state: EpisodeState = EpisodeState.FIRING) -> Episode:
    match = Match(
        window=1, wall_s=999.0, fingerprint="f", entity=HOST, answer=Answer.MATCH, clauses=(), bindings={"host": ""}
    )
    return Episode(
        id=f"e{number:012x}", fingerprint="f", revision="1", entity=HOST, state=state, started_s=990.0,
        fired_s=996.0, last_s=999.0, cleared_s=None, windows=9, last=match,
    )  # fmt: skip


@dataclass
class Rig:
    """A run driver and all that it drives."""

    folder: Path
    root: Path
    remediation: Remediation
    now: float = 1000.0
    profile: Mode = Mode.AUTO
    still_matching: bool | None = True
    matching: bool | None = False
    share: float | None = 0.9
    silences: tuple[Any, ...] = ()
    known: bool = True
    site: Profiles | None = None
    resets: int = 0
    peeked: dict[str, str | None] = field(default_factory=dict)

    address = SETTING
    ratio = RATIO

    def __post_init__(self) -> None:
        self.modules = MODULES
        self.supervisor = RunSupervisor(self.folder / "runs", MODULES, host_root=str(self.root))
        (self.folder / "runs").mkdir(mode=0o700, exist_ok=True)
        self.settings = Settings(self.root)
        self.open()

    def open(self) -> None:
        self.journal = Journal(self.folder / "journal.db")
        self.queries = Queries(self.folder / "journal.db")
        self.driver = RunDriver(
            journal=self.journal,
            queries=self.queries,
            settings=self.settings,
            supervisor=self.supervisor,
            situation=self.situation,
            peek=lambda address, _since: self.peeked.get(address, self.settings.peek(address)),
            changed=self.reset,
            clock=lambda: self.now,
            reserve=Reserve(self.folder / "reserve"),
        )

    def close(self) -> None:
        self.queries.close()
        self.journal.close()

    def die(self) -> tuple[str, ...]:
        """End without a word, and let another watcher begin over the same journal; return what it adopted."""
        for active in self.driver.life.active.values():
            if active.child is not None and active.child._process is not None:
                active.child._process.returncode = 0  # ours no longer: whoever adopts it does not reap it
        self.close()
        self.supervisor = RunSupervisor(self.folder / "runs", MODULES, host_root=str(self.root))
        self.open()
        return self.driver.adopt()

    def reset(self) -> None:
        self.resets += 1

    def situation(self, drawn: Plan) -> Situation:
        if not self.known or drawn.remediation_revision != self.remediation.revision:
            raise RefusedError("not what it was")
        return Situation(
            remediation=self.remediation, profile=self.profile, silences=self.silences,
            still_matching=self.still_matching, baseline={FEATURE: 0.1}, calendar=self.site,
        )  # fmt: skip

    def read(self, name: str = THP) -> str:
        return (self.root / name).read_text()

    def write(self, text: str, name: str = THP) -> None:
        (self.root / name).write_text(text)

    def drawn(self, episode: int = 1) -> Plan:
        return plan(
            self.remediation, episode_of(episode), facts=_no_facts(), site={}, read=self.settings.peek,
            baseline=lambda name, entity: 0.1, now_s=self.now,
        )  # fmt: skip

    def planned(self, actor: str = "uid:0") -> Run:
        return self.driver.propose(self.drawn(), actor=actor)

    def approved(self, actor: str = "uid:0") -> Run:
        run = self.planned(actor)
        return self.driver.approve(run, plan_hash=run.plan.hash, actor=actor)

    def applied(self, actor: str = "uid:0") -> Run:
        run = self.approved(actor)
        return self.driver.apply(run, plan_hash=run.plan.hash, actor=actor)

    def stored(self, run: Run | str) -> Run:
        found = self.queries.run(run if isinstance(run, str) else run.id)
        assert found is not None
        return found

    def states(self, run: Run) -> list[str]:
        return [str(step.state) for step in self.stored(run).steps]

    def vector(self) -> FeatureVector:
        value = np.nan if self.share is None else self.share
        return FeatureVector(
            window=1, wall_s=self.now, layout=FeatureLayout((FeatureId(FEATURE),)), values=np.array([value])
        )

    def second(self) -> tuple[str, ...]:
        """Let one second pass, with a window."""
        self.now += 1.0
        return self.driver.second(self.vector(), lambda fingerprint, entity: self.matching)

    def until(self, run: Run, *states: RunState, seconds: float = 90.0) -> Run:
        """Let real seconds pass, at once when nothing else is waited for, until a run stands in one of some states."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.second()
            found = self.stored(run)
            if found.state in states:
                return found
            if found.state == "applying":
                self.now -= 0.9  # a playbook takes real time
                time.sleep(0.1)
        pytest.fail(f"{run.id} is {self.stored(run).steps}, not {states}")

    def verifying(self) -> Run:
        """Return a run whose playbook has ended well, as a watcher left it that died right then."""
        run = self.approved()
        saved = {change.address: self.settings.read(change.address) for change in run.plan.changes}
        for change in run.plan.changes:
            self.settings.write(change.address, change.after or "")
        written = {change.address: self.settings.read(change.address) for change in run.plan.changes}
        for state, cause in (("applying", "started"), ("verifying", "applied")):
            run = self.stepped(replace(run, saved=saved, written=written), state, cause)
        self.die()
        return run

    def stepped(self, run: Run, state: str, cause: str) -> Run:
        """Journal a step as a watcher would that died right after it."""
        from unveil.records.run import RunState
        from unveil.remediation.lifecycle import Cause, advance

        run = advance(run, RunState(state), Cause(cause), "watcher", self.now)
        self.journal.put_run(run)
        return run


def _no_facts() -> Any:
    from unveil.records.fact import FactTable

    return FactTable()


def remediation_of(playbook: Path) -> Remediation:
    return Remediation(
        name="some_fix", id="1", title="", status="stable", description="", remediates=("f",), playbook=str(playbook),
        timeout_s=60.0, variables=(),
        settings=(WantedSetting(address=SETTING, value="always"), WantedSetting(address=RATIO, value="30")),
        mode=Mode.AUTO, impact="low", reversible=True, interrupts_workload=False, requires_reboot=False,
        preconditions=("still_matching", "no_silence"),
        limits=Limits(cooldown_s=0.0, max_attempts=9, attempts_within_s=86400.0),
        verification=VerificationRule(
            within_s=15.0, settings_hold_s=2.0, clear_s=2.0,
            improve=(Improvement(feature=FEATURE, direction="up", effect=0.5),),
        ),
        rollback_triggers=("apply_failed", "verify_failed", "canceled", "timeout", "operator"),
        rollback_available_s=7200.0, approval_expires_s=600.0, revision="1",
    )  # fmt: skip


@pytest.fixture
def rig(tmp_path: Path, scratch: Path) -> Iterator[Callable[..., Rig]]:
    """Make a rig; *tasks* are those of its playbook."""
    made: list[Rig] = []

    def make(tasks: str = WRITE, **changes: Any) -> Rig:
        folder = tmp_path / "kb"
        folder.mkdir(mode=0o700)
        playbook = folder / "apply.yml"
        indented = "".join(f"    {line}\n" for line in tasks.strip().splitlines())
        playbook.write_text(f"- hosts: localhost\n  gather_facts: false\n  tasks:\n{indented}")
        state = tmp_path / "state"
        state.mkdir(mode=0o700)
        made.append(Rig(state, scratch, replace(remediation_of(playbook), **changes)))
        return made[-1]

    yield make
    for each in made:
        for active in each.driver.life.active.values():
            if active.child is not None:
                active.child.cancel()
                with contextlib.suppress(Exception):
                    while active.child.poll().result is None:
                        time.sleep(0.05)
        for child in each.supervisor._ending:
            child._process.wait(60)
        each.close()


@pytest.fixture
def make_episode() -> Callable[..., Episode]:
    """Give what makes episodes."""
    return episode_of


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """Give a small knowledge base whose one fingerprint matches on any host."""
    root = Path(shutil.copytree(Path(__file__).parent / "small_kb", tmp_path / "small-kb"))
    shipped = MODULES.parents[1]
    (root / "inventory").mkdir()
    shutil.copytree(MODULES, root / "playbooks/modules", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(shipped / "schemas", root / "schemas")
    shutil.copy(shipped / "playbooks/relax_dirty_limits/apply.yml", root / "playbooks/some_fix/apply.yml")
    return root


class OneLoader:
    """One child that loads for all watchers of these tests, one after the other: its start takes 0.4 s."""

    def __init__(self) -> None:
        from unveil.knowledge.load_child import LoadChild

        self._turn = threading.Lock()
        self._child = LoadChild()
        self._child.warm()
        self.close = self._child.close

    def load(self, root: Path, *, generation: int) -> Any:
        with self._turn:
            return self._child.load(root, generation=generation)

    def warm(self) -> None:
        with self._turn:
            self._child.warm()


@pytest.fixture(scope="session")
def one_loader() -> Iterator[OneLoader]:
    """Give the loader that watchers share."""
    loader = OneLoader()
    yield loader
    loader.close()


@pytest.fixture
def watch(
    tmp_path: Path, scratch: Path, kb: Path, one_loader: OneLoader, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Start watchers in this process, over the scratch host and the small knowledge base; each is closed at the end.

    With ``run=SECONDS`` one also runs for so long.
    """
    from unveil.engine.settings import Settings as Config
    from unveil.engine.watch import Watch
    from unveil.knowledge.reload import Reloader

    monkeypatch.setattr("unveil.engine.knowledge.Reloader", partial(Reloader, child=one_loader))
    monkeypatch.setattr(gc, "freeze", lambda: None)  # these watchers do not live as long as the process
    started: list[Any] = []
    thresholds = gc.get_threshold()

    def start(*, run: float = 0.0, clock: Callable[[], float] | None = None, **changes: Any) -> Any:
        config = Config(state_dir=tmp_path / "watch", kb=str(kb), host_root=scratch, gpu=False, profile="manual")
        watcher = Watch(replace(config, **changes))
        watcher.clock = clock or watcher.clock
        watcher.start()
        started.append(watcher)
        if run:
            timer = threading.Timer(run, watcher.stop)
            timer.start()
            watcher.run()
            timer.join()
        return watcher

    yield start
    for watcher in started:
        watcher.close()
    gc.set_threshold(*thresholds)


@pytest.fixture(scope="session")
def seconds() -> list[Any]:
    """Give two minutes of samples of a made-up host, second by second."""
    from unveil.benchmarks.features import SIZES, made_up_layouts, made_up_second

    layouts = made_up_layouts(*SIZES["small"])
    return [made_up_second(layouts, second) for second in range(120)]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record this machine for six seconds."""
    from unveil.engine.recorder import record

    path = tmp_path_factory.mktemp("recording") / "host.parquet"
    assert record(path, host_root=Path("/"), gpu=False, seconds=6, note="six seconds", host="some host") == 6
    return path
