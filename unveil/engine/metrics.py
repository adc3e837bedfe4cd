"""What a watcher tells a monitoring system of itself and of its host, as families of samples.

Nothing here knows how they travel: ``metrics_link`` hands them to a child process, which serves them. Names follow
Prometheus: base units, ``_total`` for counters. Every label is a name out of unveil's own catalogues or the knowledge
base's, the host's GPUs or a closed set, so that no tenant can make a series by choosing a name.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from unveil.engine.status import complaints, resident_bytes
from unveil.errors import UnveilError
from unveil.host.source import SourceState
from unveil.records.match import EpisodeState
from unveil.records.run import RunState
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from unveil.engine.pipeline import Outcome
    from unveil.engine.watch import Watch

MOST_SERIES = 2000
"""Of one family; a knowledge base of thousands of fingerprints must not fill a monitoring system."""


class FamilyKind(StrEnum):
    """Kinds of families, as Prometheus names them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Samples of one name.

    Attributes:
        name: without the suffix ``_total`` or ``_info``, which the kind adds.
        labels: names of the labels.
        samples: values of the labels, and the value; NaN is left out by whoever makes them.
    """

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...] = ()
    samples: tuple[tuple[tuple[str, ...], float], ...]


class Meter:
    """Counts what happens in one watch, and describes it when asked."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._windows: Counter[str] = Counter()
        self._votes: Counter[str] = Counter()
        self._fired: Counter[str] = Counter()
        self._dropped = 0

    def second(self, outcomes: Iterable[Outcome]) -> None:
        """Count the windows of a second."""
        for outcome in outcomes:
            summary = outcome.summary
            self._windows[summary.verdict.state] += 1
            self._dropped += summary.ticks_missed > 0
            for vote in summary.verdict.votes:
                self._votes[vote.detector] += vote.anomalous
            for episode in outcome.changed:
                if episode.state is EpisodeState.FIRING:
                    self._fired[episode.fingerprint] += 1

    def families(self) -> tuple[Family, ...]:
        """Return everything, as it is now."""
        return (*self._windows_now(), *self._findings(), *self._knowledge(), *self._cost(), *self._sources())

    def _windows_now(self) -> Iterator[Family]:
        yield _gauge("start_time_seconds", "When the watcher started, since the epoch.", self._watch.started_s)
        yield Family(
            name="unveil_build",
            kind=FamilyKind.INFO,
            help="Version of the watcher, and how far it may go.",
            labels=("version", "profile", "rule"),
            samples=(((self._watch.version, self._watch.config.profile, self._watch.config.rule), 1.0),),
        )
        yield _counters(
            "windows", "Windows judged, by verdict.", "verdict", {state: self._windows[state] for state in State}
        )
        yield _counter("windows_with_missed_ticks", "Windows in which a tick did not happen.", self._dropped)
        yield _counters("detector_votes", "Windows that a detector called anomalous.", "detector", self._votes)
        latest = self._watch.pipeline.latest
        if latest is None:
            return
        verdict = latest.summary.verdict
        yield _gauge("window_index", "Number of the newest window.", verdict.window)
        yield _gauge("window_end_time_seconds", "When the newest window ended, since the epoch.", latest.summary.wall_s)
        yield _gauge("severity", "Strangeness of the newest window: -log10 of its p-value, smoothed.", verdict.severity)
        yield _gauges(
            "detector_score", "Score of the newest window.", "detector",
            {vote.detector: vote.score for vote in verdict.votes},
        )  # fmt: skip
        yield _gauges(
            "detector_threshold", "Score above which a detector votes anomalous.", "detector",
            {vote.detector: vote.threshold for vote in verdict.votes},
        )  # fmt: skip
        yield _gauges(
            "attribution_share", "Share of each subsystem in the newest window's verdict.", "subsystem",
            latest.attribution.subsystems,
        )  # fmt: skip
        yield _gauge("features", "Features of the newest window.", len(latest.vector.layout.ids))
        channels = sum(len(block.layout.channels) for block in latest.window.blocks)
        yield _gauge("channels", "Channels of the newest window.", channels)

    def _findings(self) -> Iterator[Family]:
        names = [fingerprint.name for fingerprint in self._watch.knowledge.current.fingerprints]
        open_now = Counter((episode.fingerprint, episode.state) for episode in self._watch.pipeline.episodes.open)
        known = sorted({*names, *(name for name, _ in open_now)})
        yield Family(
            name="unveil_episodes_open",
            kind=FamilyKind.GAUGE,
            help="Open episodes, by fingerprint.",
            labels=("fingerprint", "state"),
            samples=tuple(
                ((name, state), float(open_now[name, state]))
                for name in known
                for state in (EpisodeState.PENDING, EpisodeState.FIRING)
            )[:MOST_SERIES],
        )
        yield _counters("episodes_fired", "Episodes that fired.", "fingerprint", dict.fromkeys(names, 0) | self._fired)
        yield _gauge("runs_active", "Runs that are not settled.", self._watch.runs.active)
        try:
            runs = self._watch.queries.count_runs()
        except UnveilError:  # a journal that cannot be read is a problem that is told below
            return
        yield _gauges(
            "runs", "Runs in the journal, by state.", "state", {state: runs.get(state, 0) for state in RunState}
        )

    def _knowledge(self) -> Iterator[Family]:
        state = self._watch.knowledge.state
        yield _gauge("knowledge_generation", "Generation of the knowledge base in use.", state.generation)
        yield _gauge("knowledge_loaded_time_seconds", "When it was taken into use, since the epoch.", state.at_s)
        yield _gauge("knowledge_fingerprints", "Fingerprints in use.", state.fingerprints)
        yield _gauge("knowledge_remediations", "Remediations in use.", state.remediations)
        stale_s = 0.0 if state.stale_since_s is None else max(0.0, self._watch.clock() - state.stale_since_s)
        yield _gauge("knowledge_stale", "1 while the files on disk cannot be loaded.", state.stale_since_s is not None)
        yield _gauge("knowledge_stale_seconds", "For how long; 0 when what is on disk is in use.", stale_s)

    def _cost(self) -> Iterator[Family]:
        ticks = self._watch.lateness
        yield _counter("process_cpu_seconds", "CPU time of the watcher, without its children.", time.process_time())
        yield _gauge("process_resident_memory_bytes", "Memory of the watcher, without its children.", resident_bytes())
        yield _gauge("process_open_fds", "Files that the watcher has open.", len(os.listdir("/proc/self/fd")))  # noqa: PTH208
        yield _counter("ticks", "Readings taken.", ticks.taken)
        yield _counter("ticks_missed", "Readings that were due and did not happen.", ticks.missed)
        yield _counter("ticks_late", "Readings taken more than 5 ms late.", ticks.late)
        yield _gauges(
            "tick_lateness_seconds", "Lateness of the ticks of the last ten minutes.", "quantile",
            {f"{share:g}": ticks.quantile(share) / 1e3 for share in (0.5, 0.99)},
        )  # fmt: skip
        problems = complaints(self._watch, self._watch.clock())
        yield _gauge("problems", "Problems that `unveil status` tells.", len(problems))
        gpu = self._watch.observation.gpu
        if gpu is not None:
            ages = gpu.ages()
            yield _gauges("gpu_value_age_seconds", "Age of each GPU's values.", "gpu", ages)

    def _sources(self) -> Iterator[Family]:
        sources = self._watch.observation.health()
        yield Family(
            name="unveil_source_state",
            kind=FamilyKind.GAUGE,
            help="1 for the state that each source is in.",
            labels=("source", "state"),
            samples=tuple(
                ((source.name, state), float(source.state is state)) for source in sources for state in SourceState
            ),
        )
        read = {source.name: (source.read_us + source.parse_us) / 1e6 for source in sources}
        yield _gauges("source_read_seconds", "CPU time of reading and parsing a source once.", "source", read)
        pace = {source.name: source.period_s for source in sources}
        yield _gauges("source_period_seconds", "How often a source is read now.", "source", pace)
        yield _gauges("source_channels", "Channels of a source.", "source", {s.name: s.channels for s in sources})


def _gauge(name: str, text: str, value: float) -> Family:
    return Family(name=f"unveil_{name}", kind=FamilyKind.GAUGE, help=text, samples=(((), float(value)),))


def _counter(name: str, text: str, value: float) -> Family:
    return Family(name=f"unveil_{name}", kind=FamilyKind.COUNTER, help=text, samples=(((), float(value)),))


def _gauges(name: str, text: str, label: str, values: Mapping[Any, float]) -> Family:
    return _labelled(FamilyKind.GAUGE, name, text, label, values)


def _counters(name: str, text: str, label: str, values: Mapping[Any, float]) -> Family:
    return _labelled(FamilyKind.COUNTER, name, text, label, values)


def _labelled(kind: FamilyKind, name: str, text: str, label: str, values: Mapping[Any, float]) -> Family:
    samples = tuple(((str(key),), float(value)) for key, value in values.items() if not math.isnan(value))
    return Family(name=f"unveil_{name}", kind=kind, help=text, labels=(label,), samples=samples[:MOST_SERIES])
