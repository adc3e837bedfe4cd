"""A recording watched as if it were live: the same pipeline, the same journal, the same questions; no host to change.

It answers like a watcher, so the demo, `replay` and the cockpit draw a recording with the code that draws a live host.
Whatever would change a host is refused with that reason.
"""

from __future__ import annotations

import hashlib
import itertools
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unveil.detection.catalogue import DETECTORS
from unveil.engine.commands import Commands
from unveil.engine.history import History
from unveil.engine.pipeline import RECENT, Pipeline
from unveil.engine.training import train_now
from unveil.engine.views import View, looked_at
from unveil.engine.watched import Grounds
from unveil.errors import RefusedError, UnreadableError
from unveil.host.replay import Replay
from unveil.knowledge.content import knowledge_root
from unveil.knowledge.knowledge_base import state_of
from unveil.knowledge.loading import load
from unveil.records.codec import encode
from unveil.records.entity import EntityKind
from unveil.records.fact import FactTable
from unveil.remediation.lifecycle import new_run
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.detection.detector import DetectorKind
    from unveil.detection.ensemble import Ensemble, EnsembleSettings
    from unveil.engine.pipeline import Outcome
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.entity import Entity
    from unveil.records.knowledge import KnowledgeState
    from unveil.records.match import Episode
    from unveil.records.remediation import Mode, Remediation
    from unveil.records.run import Plan, Run
    from unveil.remediation.verification import Progress


class LoadedKnowledge:
    """The knowledge base that a recording is held against: loaded once, not followed."""

    def __init__(self, folder: str, now_s: float) -> None:
        root = knowledge_root(folder or None)
        loaded = load(root)
        if loaded.knowledge is None:
            first = loaded.errors[0]
            raise UnreadableError(f"{first}", hint=f"`unveil kb lint --kb {root}` lists everything")
        self.current: KnowledgeBase = loaded.knowledge
        self.state: KnowledgeState = state_of(loaded.knowledge, now_s)

    def rescan(self) -> NoReturn:
        """Refuse: nothing is followed."""
        raise RefusedError("a recording keeps the knowledge base that it was opened with")


class _RecordedSettings:
    """What managed settings read when the recording was made."""

    def __init__(self, replay: RecordedWatch) -> None:
        self._replay = replay

    def peek(self, address: str) -> str | None:
        return self._replay.facts.settings.get(address)


class _PlannedRuns:
    """Runs of a recording can be planned and looked at; that is all."""

    active = 0

    def __init__(self, replay: RecordedWatch) -> None:
        self._replay = replay

    def propose(self, plan: Plan, *, actor: str) -> Run:
        # A recording is the same each time it is watched, and so is the name of a plan for it.
        name = hashlib.sha256(f"{plan.hash} {plan.created_s}".encode()).hexdigest()[:12]
        run = new_run(f"r{name}", plan, actor, self._replay.clock())
        self._replay.journal.put_run(run)
        return run

    def refuse(self, *_: object, **__: object) -> NoReturn:
        raise RefusedError("this is a recording: there is no host to change", hint="`unveil watch` watches a live one")

    def newest(self, run: Run) -> Run:
        """Return a run of a recording, which is all in the journal."""
        return run

    def progress(self, identity: str) -> Progress | None:  # noqa: ARG002  # nothing of a recording is ever verified
        return None

    def expect(self, mode: Mode) -> None:
        """Need nothing ready: nothing is ever started."""

    approve = apply = cancel = roll_back = dry_run = refuse


class RecordedWatch:
    """A watch over a recording. Iterate over `outcomes` to let time pass; ask with `call` at any moment.

    Args:
        path: the recording.
        kb: knowledge-base root; empty for the shipped one.
        seed: of the models, so that two replays agree.
        kinds: the detectors that are asked.
        trains: train whenever the detectors want to be; else whoever watches does it.
        view: from where the host is looked at.
        knowledge: what another watch has loaded, of the same root.
    """

    def __init__(
        self,
        path: str,
        *,
        kb: str = "",
        settings: EnsembleSettings | None = None,
        seed: int = 0,
        kinds: tuple[DetectorKind, ...] = DETECTORS,
        trains: bool = True,
        view: View = View.ALL,
        knowledge: LoadedKnowledge | None = None,
    ) -> None:
        self._replay = Replay(path)
        self._view = view
        self._seed = seed
        self._trains = trains
        self.host = str(self._replay.metadata.get("host", "recorded host"))
        self.version = version("unveil")
        self._now_s = self.started_s = float(self._replay.metadata.get("started_s", 0.0))
        self.knowledge = knowledge or LoadedKnowledge(kb, self._now_s)
        self.facts = FactTable()
        self._facts_then: list[tuple[float, FactTable]] = []  # each time that the recorded facts changed
        self._folder = Path(tempfile.mkdtemp(prefix="unveil-replay-"))
        self.journal = Journal(self._folder / "journal.db")
        self.queries = Queries(self.journal.path)
        self.history = History(self.journal.path)
        self.settings = _RecordedSettings(self)
        self.runs = _PlannedRuns(self)
        self.trained = False
        self.gpus = None  # nobody holds those of the host that was recorded
        self._watch = self.journal.begin_watch(at_s=self._now_s, version=self.version, host=self.host)
        numbers = itertools.count(1)  # the same names in each replay
        self.pipeline = Pipeline(
            watch=self._watch,
            fingerprints=self.knowledge.current.fingerprints,
            generation=self.knowledge.current.generation,
            correlations=self.knowledge.current.correlations,
            filters=self.knowledge.current.filters,
            host=self.host,
            new_id=lambda: f"e{next(numbers):012x}",
            settings=settings,
            kinds=kinds,
        )
        self._rule = self.pipeline.ensemble.rule.text
        self._commands = Commands(self)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what whoever made the recording wrote about it."""
        return dict(self._replay.metadata)

    def continue_with(self, learnt: Ensemble) -> None:
        """Judge by what an earlier watch learned, as a watcher does after a restart. Call it before `outcomes`."""
        self.pipeline.ensemble.restore(learnt.state())
        if learnt.model is not None:
            self.pipeline.ensemble.adopt(learnt.model)

    def outcomes(self) -> Iterator[Outcome]:
        """Let the recorded time pass, as fast as it is taken; yield what each window led to."""
        ensemble = self.pipeline.ensemble
        for tick in looked_at(self._replay, self._view):
            self._now_s = tick.wall_s
            if tick.facts is not None:
                self.facts = tick.facts
                self._facts_then.append((tick.wall_s, tick.facts))
            for outcome in self.pipeline.push(tick.blocks, wall_s=tick.wall_s, facts=self.facts):
                self.journal.append_second(outcome.summary, (*outcome.changed, *self.pipeline.episodes.open))
                yield outcome
            if self._trains and ensemble.wants_training:
                ensemble.adopt(train_now(ensemble.training_set(), seed=self._seed))
                self.trained = True

    def grounds(self, episode: Episode) -> Grounds:
        """Return what a plan is drawn from: facts and features of the newest window in which the episode matched.

        A recording goes on after its fault was mended; a plan for the fault is of the time when it was there.
        """
        last = episode.last
        facts = next((each for at_s, each in reversed(self._facts_then) if at_s <= last.wall_s), self.facts)

        def baseline(name: str, entity: Entity) -> float | None:
            return self.pipeline.trail.mean(name, entity, until=last.window, over=RECENT)

        return Grounds(facts=facts, read=facts.settings.get, baseline=baseline)

    def clock(self) -> float:
        """Return the recorded time."""
        return self._now_s

    def mode(self, remediation: Remediation) -> Mode:
        """Return the remediation's own upper bound: a recording has no profile."""
        return remediation.mode

    def call(self, method: str, **params: Any) -> Any:
        """Answer like a watcher."""
        return self._commands.handle(method, params, "replay")

    def status(self) -> dict[str, Any]:
        """Return the status of the recorded host as plain JSON."""
        latest = self.pipeline.latest
        return {
            "version": self.version,
            "pid": 0,
            "host": self.host,
            "watch": self._watch,
            "started_s": self.started_s,
            "now_s": self._now_s,
            "uptime_s": self._now_s - self.started_s,
            "profile": "recording",
            "rule": self._rule,
            "window": None if latest is None else encode(latest.summary),
            "rhythm": encode(self.pipeline.progress.rhythm),
            "rhythm_absent": self.pipeline.progress.reason,
            "knowledge": encode(self.knowledge.state),
            "trained": self.trained,
            "training": "trained" if self.trained else "not trained yet",
            "ticks": {"taken": 0, "missed": 0, "late": 0, "late_p50_ms": 0.0, "late_p99_ms": 0.0},
            "cost": {"cpu_share": 0.0, "rss_bytes": 0},
            "channels": 0 if latest is None else sum(len(block.layout.channels) for block in latest.window.blocks),
            "features": 0 if latest is None else len(latest.vector.layout.ids),
            "episodes_open": len(self.pipeline.episodes.open),
            "runs_active": 0,
            "shape": {
                "cpus": self.facts.value("cpu.online_count"),
                "nodes": self.facts.value("interconnect.node_count"),
                "gpus": len({fact.entity for fact in self.facts.of("gpu.name")}),
                "nics": len(self.facts.entities(EntityKind.NIC)),
            },
            "gpu": None,
            "sources": [],
            "problems": [],
        }

    def close(self) -> None:
        """Forget everything about this replay."""
        self.history.close()
        self.queries.close()
        self.journal.close()
        shutil.rmtree(self._folder, ignore_errors=True)
