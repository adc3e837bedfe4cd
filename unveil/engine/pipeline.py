"""Pipeline: the whole core on one thread of data, sans-I/O. The table of contents of the program.

    samples → window → features → verdict → attribution → matches → episodes

It has no clock and no file: the watch loop, a replay, a test and a backtest push the same blocks and get the same
outcomes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unveil.attribution.attribute import attribute
from unveil.detection.catalogue import DETECTORS
from unveil.detection.detector_input import Trait, select
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.engine.trail import Trail
from unveil.features.catalogue import FEATURES
from unveil.features.extract import Extractor
from unveil.features.load import COUNTS, WORK, is_load
from unveil.features.progress import Progress
from unveil.matching.correlate import Correlator
from unveil.matching.episodes import EpisodeTracker
from unveil.matching.filters import suppressed
from unveil.matching.matcher import Matcher
from unveil.records.averages import mean
from unveil.records.feature import FeatureId
from unveil.records.fingerprint import FeatureClause
from unveil.records.match import Answer, EpisodeState
from unveil.records.verdict import State
from unveil.records.window import Sighting, WindowSummary
from unveil.windows.slider import Slider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from unveil.detection.detector import DetectorKind
    from unveil.detection.detector_input import DetectorInput
    from unveil.detection.judgement import Judgement
    from unveil.detection.reference import Reference
    from unveil.records.attribution import Attribution
    from unveil.records.correlation import Correlation
    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable
    from unveil.records.feature import FeatureLayout, FeatureVector
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.match import Episode, Match
    from unveil.records.sample import SampleBlock
    from unveil.records.site import Filter
    from unveil.records.window import Window

KEPT_SHARES = {State.ANOMALOUS: 12}  # strongest features of a window that its summary keeps; of ordinary ones fewer:
ORDINARY_SHARES = 4  # there are 86,400 of them a day
RECENT = 5  # newest vectors, over which a baseline is taken


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Outcome:
    """Everything that one window led to.

    Attributes:
        changed: episodes that opened, fired or cleared with this window.
    """

    window: Window
    vector: FeatureVector
    judgement: Judgement
    attribution: Attribution
    matches: tuple[Match, ...]
    changed: tuple[Episode, ...]
    summary: WindowSummary


class _Expected:
    """What the reference expects until it is made anew, as the matcher asks for it."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._revision = reference.revision

    def holds(self, reference: Reference) -> bool:
        return self._reference is reference and self._revision == reference.revision

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        found = self._reference.expected(FeatureId(name, entity))
        return None if found is None else (found.centre, found.sigma)


class Pipeline:
    """Judges what is pushed.

    Args:
        watch: number of the watch, for the summaries.
        fingerprints: those to hold against each window.
        generation: of the knowledge base that they are from.
        correlations: held against the episodes of the fingerprints, a window later.
        filters: the site's declared exceptions; one that suppresses keeps its matches from being seen at all.
        host: name of this host, for the filters.
        new_id: returns a new episode's id.
        kinds: the detectors that are asked.

    Attributes:
        learning: windows enter the reference; False keeps the past as it is.
    """

    def __init__(
        self,
        *,
        watch: int,
        fingerprints: Iterable[Fingerprint],
        generation: int,
        new_id: Callable[[], str],
        settings: EnsembleSettings | None = None,
        correlations: Iterable[Correlation] = (),
        filters: tuple[Filter, ...] = (),
        host: str = "",
        kinds: tuple[DetectorKind, ...] = DETECTORS,
    ) -> None:
        self.learning = True
        self._watch = watch
        self._slider = Slider()
        self._extractor = Extractor(FEATURES)
        fingerprints = tuple(fingerprints)
        self._compared = _compared(fingerprints)
        self.ensemble = Ensemble(self._scope, settings, kinds=kinds)
        self.matcher = Matcher(fingerprints)
        self.correlator = Correlator(correlations)
        self.episodes = EpisodeTracker((*fingerprints, *self.correlator.correlations), new_id=new_id)
        self._generation = generation
        self._filters = filters
        self._host = host
        self._expected: _Expected | None = None
        self._recent: deque[FeatureVector] = deque(maxlen=RECENT)
        self.trail = Trail()
        self.progress = Progress()
        self.latest: Outcome | None = None

    def push(self, blocks: Iterable[SampleBlock], *, wall_s: float, facts: FactTable) -> tuple[Outcome, ...]:
        """Take samples and return what the windows that they complete led to, oldest first.

        Args:
            wall_s: wall clock at the newest sample, a label.
            facts: the state of the host now.
        """
        return tuple(self._judge(window, facts) for window in self._slider.push(blocks, wall_s=wall_s))

    def replace_knowledge(
        self,
        fingerprints: Iterable[Fingerprint],
        *,
        generation: int,
        wall_s: float,
        correlations: Iterable[Correlation] = (),
        filters: tuple[Filter, ...] = (),
    ) -> tuple[Episode, ...]:
        """Go over to another generation between two windows; return the episodes that end with it."""
        fingerprints = tuple(fingerprints)
        self.matcher = Matcher(fingerprints, before=self.matcher)
        self.correlator = Correlator(correlations, before=self.correlator)
        self._generation = generation
        self._filters = filters
        compared = _compared(fingerprints)
        if compared != self._compared:
            self._compared = compared
            self.ensemble.rescope()
        return self.episodes.replace((*fingerprints, *self.correlator.correlations), wall_s)

    @property
    def exceptions(self) -> tuple[Filter, ...]:
        """Return the site's filters, and what correlations that fire hold back."""
        return (*self._filters, *self.correlator.holds(self.episodes.open))

    def recent(self, name: str, entity: Entity) -> float | None:
        """Return a feature's mean over the newest windows, None where it is absent: what a fix is compared with."""
        values = [value for vector in self._recent if (value := vector.get(name, entity)) is not None]
        return mean(values) if values else None

    def matching(self, fingerprint: str, entity: Entity) -> bool | None:
        """Return whether the newest window matches; None when that is unknown."""
        answer = self.matcher.answer(fingerprint, entity)
        return None if answer in (None, Answer.UNKNOWN) else answer is Answer.MATCH

    def _judge(self, window: Window, facts: FactTable) -> Outcome:
        known = self.progress.push(window)
        vector = self._extractor.extract(replace(window, blocks=(*window.blocks, known)), facts)
        self._recent.append(vector)
        judgement = self.ensemble.judge(vector)
        shares = attribute(judgement, largest=KEPT_SHARES.get(judgement.verdict.state, ORDINARY_SHARES))
        if self._expected is None or not self._expected.holds(judgement.reference):
            self._expected = _Expected(judgement.reference)
        found = self.matcher.evaluate(
            vector,
            facts,
            self._expected,
            shares if shares.subsystems else None,
            wall_s=window.wall_s,
        )
        together = self.correlator.push(self.episodes.open, window.wall_s, window=window.index, host=self._host)
        matches = tuple(
            match
            for match in (*found, *together)
            if suppressed(match, self._filters, window.wall_s, host=self._host) is None
        )
        if (evidence := self.matcher.evidence) is not None:
            self.trail.push(evidence)
        changed = self.episodes.push(matches, self.matcher.unknown, window.wall_s)
        if self.learning:
            self.ensemble.learn(episode=any(self._is_new(episode) for episode in self.episodes.open))
        summary = WindowSummary(
            watch=self._watch,
            index=window.index,
            wall_s=window.wall_s,
            ticks_missed=window.ticks_missed,
            verdict=judgement.verdict,
            attribution=shares,
            sightings=tuple(
                Sighting(fingerprint=match.fingerprint, entity=str(match.entity), answer=match.answer)
                for match in matches
            ),
            knowledge=self._generation,
        )
        self.latest = Outcome(
            window=window,
            vector=vector,
            judgement=judgement,
            attribution=shares,
            matches=matches,
            changed=changed,
            summary=summary,
        )
        return self.latest

    def _is_new(self, episode: Episode) -> bool:
        """Return whether an episode fires that the norm does not hold: what has stood since before it is part of it.

        Else a host with something that fires since it was set up would never have a past longer than its first minute.
        """
        return episode.state is EpisodeState.FIRING and episode.started_s > self.ensemble.norm_since_s

    def _scope(self, layout: FeatureLayout) -> DetectorInput:
        """Return what has a reference: what the detectors see, and what some fingerprint compares with it."""

        def trait(feature: FeatureId) -> Trait | None:
            declared = FEATURES[feature.name]
            if not declared.detect and feature.name not in self._compared:
                return None
            return Trait(
                subsystem=declared.subsystem,
                log=declared.log,
                judged=declared.detect,
                load=is_load(feature.name),
                trouble=declared.trouble,
                counted=declared.unit in COUNTS,
                floor=WORK.get(feature.name),
            )

        return select(layout, trait)


def _compared(fingerprints: Iterable[Fingerprint]) -> frozenset[str]:
    """Return the features that some clause holds against the host's own reference."""
    return frozenset(
        clause.feature
        for fingerprint in fingerprints
        for clause in fingerprint.clauses
        if isinstance(clause, FeatureClause) and clause.operator in ("up", "down") and clause.against == "past"
    )
