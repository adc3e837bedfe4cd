"""The watch loop: ten ticks a second in a thread that only reads, and once a second all that is made of them.

Waking is what costs: a process that slept for 100 ms finds no cache warm. So nine ticks of ten only read, and all that
can wait is done with the tenth. Training, playbooks, GPUs and loading of knowledge are other processes (or, for the
last, a thread that only reads files). What this loop itself waits for, a disk above all, delays no tick.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from unveil.detection.ensemble import EnsembleSettings
from unveil.engine.allocator import keep_little, keep_together
from unveil.engine.attention import Attention
from unveil.engine.commands import Commands
from unveil.engine.control import ControlServer
from unveil.engine.history import History
from unveil.engine.housekeeping import Housekeeping
from unveil.engine.journalling import Journalling
from unveil.engine.knowledge import KnowledgeInUse
from unveil.engine.metrics import Meter
from unveil.engine.metrics_link import MetricsLink
from unveil.engine.nvml_backend import NvmlBackend, NvmlLooks
from unveil.engine.observation import Observation
from unveil.engine.people import admitted
from unveil.engine.pipeline import Pipeline
from unveil.engine.problems import Problems
from unveil.engine.release import release
from unveil.engine.reserve import Reserve
from unveil.engine.run_driver import RunDriver
from unveil.engine.situation import Situation
from unveil.engine.state_dir import StateDir
from unveil.engine.status import Cost, Lateness, describe
from unveil.engine.ticker import Ticker
from unveil.engine.training import Training
from unveil.engine.watched import Grounds
from unveil.errors import RefusedError, UnveilError
from unveil.execution.settings import Settings as ManagedSettings
from unveil.execution.supervisor import RunSupervisor
from unveil.records.match import EpisodeState
from unveil.records.remediation import Mode
from unveil.records.run import RunState
from unveil.remediation.planner import measure
from unveil.remediation.variables import companions
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.pipeline import Outcome
    from unveil.engine.settings import Settings
    from unveil.host.gpu import GpuReader
    from unveil.records.fact import FactTable
    from unveil.records.match import Episode
    from unveil.records.remediation import Remediation
    from unveil.records.run import Plan

_LOG = logging.getLogger(__name__)
IDLE_NS = 10_000_000_000  # the loop looks around after so long, should no tick come
SWITCH_S = 0.001  # how long a tick waits for the interpreter while the loop computes
MOST_FAULTS = 10
FOLLOW_S = 5.0  # how often an episode that merely goes on is journalled
GPU_SETTLE_S = 4.0  # values of the GPU child are up to two seconds old: those from before a write are not looked at


class Watch:
    """One watcher. `start`, then `run` until `stop`, then `close`."""

    def __init__(self, settings: Settings) -> None:
        self.config = settings
        self.host = socket.gethostname()
        self.version = release()
        self.clock = time.time
        self.state_dir = StateDir(settings.state_dir)
        self.lateness = Lateness()
        self.cost = Cost()
        self.attention = Attention()
        self.problems = Problems()
        self._follow_ns = 0
        self._ticker: Ticker | None = None
        self._judged = 0  # seconds
        self._stopping = False
        self._wake: Callable[[], None] = lambda: None
        self._rescan = False
        self._faults: dict[str, int] = {}
        self._leaving = ExitStack()

    def start(self) -> None:
        """Claim the state directory, take up what an earlier watcher left, and open the control socket.

        Raises:
            UnveilError: another watcher runs, or something a person wrote is wrong. Nothing stays open then.
        """
        with ExitStack() as opened:
            self._open(opened)
            self._leaving = opened.pop_all()
        gc.collect()
        gc.freeze()  # what lives as long as the watcher is not looked at again
        gc.set_threshold(20_000, 20, 100)  # the loop makes no cycles: looking for them every 700 objects is waste

    def _open(self, opened: ExitStack) -> None:
        self.started_s = self.clock()
        self.state_dir.claim()
        opened.callback(self.state_dir.release)
        self.journal = Journal(self.state_dir.journal)
        opened.callback(self.journal.close)
        self.journalling = Journalling(self.journal)
        self.queries = Queries(self.state_dir.journal)
        opened.callback(self.queries.close)
        self.history = History(self.state_dir.journal)
        opened.callback(self.history.close)
        self.number = self.journal.begin_watch(at_s=self.started_s, version=self.version, host=self.host)
        opened.callback(
            lambda: self.journalling.attempt(
                lambda: self.journal.end_watch(self.number, at_s=self.clock()), self.clock()
            )
        )
        wake = lambda: self._wake()  # noqa: E731, PLW0108  # what wakes the loop is made last
        self.knowledge = KnowledgeInUse(self.config.kb, now_s=self.started_s, ready=wake)
        opened.callback(self.knowledge.close)
        self.journalling.knowledge(self.knowledge.state)
        self.meter = Meter(self)
        metrics: MetricsLink | None = None
        if self.config.metrics or self.config.metrics_file:
            metrics = MetricsLink(listen=self.config.metrics, file=self.config.metrics_file)
            opened.callback(metrics.close)
        self._housekeeping = Housekeeping(self, metrics)
        self.observation = Observation(self.config.host_root, gpu=self.config.gpu)
        opened.callback(self.observation.close)
        self.pipeline = self._new_pipeline()
        left = self.queries.episodes(limit=10_000, open_only=True)
        self.journalling.episodes(self.pipeline.episodes.restore(left, self.started_s), self.started_s)
        self.training = Training(self.state_dir, self.pipeline.ensemble, always=self.config.train_always)
        opened.callback(self.training.close)
        self.settings = ManagedSettings(self.config.host_root, backends={"nvml": NvmlBackend()})
        self._looks = NvmlLooks()
        self.runs = self._run_driver()
        opened.callback(self.runs.close)
        for line in self.runs.adopt():
            _LOG.warning("adopted after a restart: %s", line)
        self._commands = Commands(self)
        self._server = ControlServer(
            self.state_dir.socket,
            self._commands.handle,
            admits=lambda uid: admitted(uid, self.knowledge.current.profiles),
            came=self._judge,
        )
        opened.callback(self._server.close)
        self.open_door()
        self._wake = self._server.wake

    def _new_pipeline(self) -> Pipeline:
        return Pipeline(
            watch=self.number,
            fingerprints=self.knowledge.current.fingerprints,
            generation=self.knowledge.current.generation,
            correlations=self.knowledge.current.correlations,
            filters=self.knowledge.current.filters,
            host=self.host,
            new_id=lambda: f"e{os.urandom(6).hex()}",
            settings=EnsembleSettings(
                rule=self.config.rule, false_alarms_per_hour=self.config.false_alarms_per_day / 24
            ),
        )

    def _run_driver(self) -> RunDriver:
        return RunDriver(
            journal=self.journal,
            queries=self.queries,
            settings=self.settings,
            supervisor=RunSupervisor(
                self.state_dir.runs,
                self.knowledge.root / "playbooks" / "modules",
                host_root=str(self.config.host_root),
                judged=self.knowledge.refuse_altered,
            ),
            situation=self._situation,
            peek=self._peek,
            changed=self._changed,
            clock=self.clock,
            reserve=Reserve(self.state_dir.path / "reserve"),
        )

    def run(self) -> None:
        """Watch until `stop`.

        Raises:
            RefusedError: the state directory is no longer ours; what is remembered and decided would be lost.
        """
        self.cost = Cost()  # anew: from here on it is the loop's
        sys.setswitchinterval(SWITCH_S)
        ticker = self._ticker = Ticker(
            partial(self._guarded, self.observation.tick),
            lateness=self.lateness,
            wake=self._server.wake,
            due=lambda seconds: self.attention.due(seconds, asked=self._server.asked),
        )
        ticker.start()
        try:
            while not self._stopping:
                self._server.serve_until(time.monotonic_ns() + IDLE_NS)
                ticker.check()
                self._refuse_lost_state()
                look_after = self._housekeeping.second if self._judge() else self._housekeeping.take_up
                self._guarded(look_after, time.monotonic_ns())
                if self._rescan:
                    self._rescan = False
                    self.knowledge.rescan()
            self._judge()
        finally:
            ticker.close()

    def _judge(self) -> bool:
        """Judge the seconds that wait for it, return whether there were any: also before who comes is answered."""
        if self._ticker is None or self._ticker.seconds == self._judged:
            return False
        self._judged = self._ticker.seconds
        self._guarded(self._second, time.monotonic_ns())
        return True

    def _guarded(self, step: Callable[[int], None], now_ns: int) -> None:
        """Take a step of the loop; one that fails must not end the watch, the same one ten times in a row does."""
        try:
            step(now_ns)
            if self._faults:
                self._faults.pop(step.__name__, None)
        except Exception as error:
            name = step.__name__
            self._faults[name] = self._faults.get(name, 0) + 1
            _LOG.exception("a fault in unveil itself")
            self.complain(f"a fault in unveil itself: {type(error).__name__}: {error}"[:300])
            if self._faults[name] >= MOST_FAULTS:
                raise

    def _refuse_lost_state(self) -> None:
        """End rather than act beside another watcher, or write a history that nobody will ever read."""
        if not (self.state_dir.held() and self.journal.in_place()):
            raise RefusedError(
                f"the state directory {self.config.state_dir} was removed or replaced under the watcher",
                hint="start it again; settings that a run had in hand are to be looked at",
            )

    def stop(self) -> None:
        """End `run` at once; safe in a signal handler."""
        self._stopping = True
        self._wake()

    def rescan(self) -> None:
        """Look at the knowledge base's files again now; safe in a signal handler."""
        self._rescan = True
        self._wake()

    def close(self) -> None:
        """Leave in good order. Runs go on, and are adopted by the next watcher: nothing is undone because we end."""
        self._leaving.close()

    def open_door(self) -> None:
        """Let those reach the control socket whom the site's roles name; without roles nobody else."""
        self._server.open_to_others(bool(self.knowledge.current.profiles.roles))

    @property
    def facts(self) -> FactTable:
        """Return the facts as last read."""
        return self.observation.facts

    @property
    def gpus(self) -> GpuReader | None:
        """Return who holds the GPUs."""
        return self.observation.gpu

    def mode(self, remediation: Remediation) -> Mode:
        """Return how far automation may go with a remediation on this host."""
        return self.knowledge.mode(remediation, profile=self.config.profile, host=self.host)

    def status(self) -> dict[str, Any]:
        """Return how the watcher and its host are, as plain JSON."""
        return describe(self)

    def _second(self, now_ns: int) -> None:
        """Judge what the last second brought, or on a calm host the last few."""
        wall_s = self.clock()
        outcomes: tuple[Outcome, ...] = ()
        try:
            outcomes = self.pipeline.push(self.observation.collect(now_ns), wall_s=wall_s, facts=self.facts)
            self.meter.second(outcomes)
            going_on = self.pipeline.episodes.open
            self.attention.look(outcomes, going_on, busy=self.runs.active > 0 or self.observation.reads_gpus)
            seconds = [(outcome.summary, outcome.changed) for outcome in outcomes]
            if outcomes and now_ns >= self._follow_ns:
                self._follow_ns = now_ns + int(1e9 * FOLLOW_S)
                seconds[-1] = outcomes[-1].summary, (*outcomes[-1].changed, *going_on)
            self.journalling.seconds(seconds)
            for episode in (each for outcome in outcomes for each in outcome.changed):
                self._announce(episode)
        finally:  # runs are looked after whatever becomes of a window
            for trouble in self.runs.second(outcomes[-1].vector if outcomes else None, self.pipeline.matching):
                self.complain(trouble)

    def _announce(self, episode: Episode) -> None:
        _LOG.info(
            "episode %s: %s on %s is %s", episode.id, episode.fingerprint, ascii(str(episode.entity)), episode.state
        )
        if episode.state in (EpisodeState.PENDING, EpisodeState.FIRING):
            self._automate(episode)

    def _automate(self, episode: Episode) -> None:
        """Propose, and where the profile goes as far, apply the first fix of an episode that has just fired."""
        fixes = self.knowledge.current.fixes(episode.fingerprint)
        if not fixes or self.mode(fixes[0]) in (Mode.OBSERVE, Mode.MANUAL):
            return
        if episode.state is EpisodeState.PENDING:
            if self.mode(fixes[0]) is Mode.AUTO:  # else a person comes first
                self.runs.expect(Mode.AUTO)
            return
        try:
            run = self._commands.runs.propose(episode, fixes[0], actor="watcher")
            if self.mode(fixes[0]) is Mode.AUTO and run.state is RunState.PLANNED:  # else one is at it already
                run = self.runs.approve(run, plan_hash=run.plan.hash, actor="watcher")
                self.runs.apply(run, plan_hash=run.plan.hash, actor="watcher")
        except UnveilError as error:
            self.complain(f"{fixes[0].name} was not started by itself: {error.what}")

    def _situation(self, plan: Plan) -> Situation:
        remediation = self.knowledge.current.remediation(plan.remediation)
        if remediation is None or remediation.revision != plan.remediation_revision:
            raise RefusedError(f"{plan.remediation} is not what it was when the plan was made", hint="plan again")
        episode = self.pipeline.episodes.find(plan.fingerprint, plan.entity)
        places = companions(episode) if episode is not None else (plan.entity,)
        return Situation(
            remediation=remediation,
            profile=self.mode(remediation),
            silences=self.queries.silences(at_s=self.clock()),
            still_matching=self.pipeline.matching(plan.fingerprint, plan.entity),
            baseline=measure(remediation, places, self.pipeline.recent),
            filters=self.pipeline.exceptions,
            host=self.host,
            resets=self.queries.resets(),
            calendar=self.knowledge.current.profiles,
        )

    def grounds(self, episode: Episode) -> Grounds:  # noqa: ARG002  # a plan is drawn from the present, whatever it is for
        """Return what a plan is drawn from: the facts as last read, the settings as they are, the newest windows."""
        return Grounds(facts=self.facts, read=self.settings.peek, baseline=self.pipeline.recent)

    def _changed(self) -> None:
        """Begin anew with what the host was like before a run or a rollback changed it."""
        self.pipeline.ensemble.reset()
        self.observation.facts_changed()

    def _peek(self, address: str, since_write_s: float) -> str | None:
        """Return a setting's content without ever waiting: a GPU's from its newest sample, others from the kernel."""
        if address.startswith("nvml:"):
            if since_write_s < GPU_SETTLE_S:
                return None
            sampled = self.observation.gpu_settings()
            return sampled[address] if address in sampled else self._looks.peek(address, self.clock())
        return self.settings.peek(address)

    def complain(self, what: str) -> None:
        """Have something that went wrong told by the status for a while, and logged once."""
        if self.problems.add(what, self.clock()):
            _LOG.warning("%s", what)


def run_watch(settings: Settings) -> None:
    """Watch this host until SIGTERM or SIGINT; SIGHUP has the knowledge base looked at again.

    Started on a terminal, SIGHUP means that the terminal is gone, and ends the watch as well.
    """
    import signal

    keep_little()
    watch = Watch(settings)
    signal.signal(signal.SIGTERM, lambda *_: watch.stop())
    signal.signal(signal.SIGINT, lambda *_: watch.stop())
    hangup = watch.stop if sys.stdin.isatty() else watch.rescan
    signal.signal(signal.SIGHUP, lambda *_: hangup())
    watch.start()
    keep_together()
    try:
        watch.run()
    finally:
        watch.close()
