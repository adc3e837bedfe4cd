"""Ensemble: the detectors on one window, their votes, and the verdict that a rule makes of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.calibration import OF_A_RANGE, OF_TRENDS, Calibration
from unveil.detection.catalogue import DETECTORS
from unveil.detection.demand import queues_alone, staying, steady
from unveil.detection.judgement import Judgement
from unveil.detection.lens import Lens, Mounted
from unveil.detection.model import TrainingSet
from unveil.detection.reference import Reference, ReferenceSettings
from unveil.detection.rule import DEFAULT_RULE, parse_rule
from unveil.detection.spread import spread, standardise
from unveil.detection.training import held_out
from unveil.errors import BadInputError
from unveil.records.verdict import State, Verdict, Vote

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, DetectorKind, Score
    from unveil.detection.detector_input import DetectorInput
    from unveil.detection.model import TrainedModel
    from unveil.records.feature import FeatureLayout, FeatureVector

    _Scored = tuple[NDArray[np.float64], NDArray[np.float64], dict[str, float]]  # values, trend, detector → score

_PROBATION = 8  # windows until one is learned: as long as smoothing needs to tell that it began an anomaly
_KIN_OVER = 300  # newest windows whose correlations tell which features say the same
_RETRAIN_EVERY = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleSettings:
    """What an operator may choose.

    Attributes:
        rule: see ``parse_rule``.
        false_alarms_per_hour: how often the rule may call healthy windows anomalous; a run of them counts once. A
            few times as many find little more, and what other tenants do differently from one hour to the next then
            alarms for minutes.
        hold: windows in a row the rule must hold before the verdict is anomalous.
        windows_per_hour: 3,600 over the stride in seconds.
        reference: see ``ReferenceSettings``.
    """

    rule: str = DEFAULT_RULE
    false_alarms_per_hour: float = 1.0
    hold: int = 2
    windows_per_hour: float = 3600.0
    reference: ReferenceSettings = field(default_factory=ReferenceSettings)


class Ensemble:
    """Judge one window after the other.

    The order of one window is ``judge(vector)``, then ``learn(episode=…)``. A window is scored by a reference and by
    detectors that have not seen it, so its score is a held-out one and calibrates those that follow.

    Attributes:
        norm_since_s: wall clock at which what is ordinary was taken up. What was there then is part of it.
    """

    def __init__(
        self,
        scope_of: Callable[[FeatureLayout], DetectorInput],
        settings: EnsembleSettings | None = None,
        *,
        kinds: tuple[DetectorKind, ...] = DETECTORS,
    ) -> None:
        """Prepare to judge.

        Args:
            scope_of: which features of a layout have a reference; called when the layout changes.
            kinds: the detectors, e.g. with the paper's form of the z-score instead of ours.

        Raises:
            BadInputError: the rule is none.
        """
        self.settings = settings or EnsembleSettings()
        self.rule = parse_rule(self.settings.rule, tuple(kind.name for kind in kinds))
        self.model: TrainedModel | None = None
        self.norm_since_s = -np.inf
        self._scope_of = scope_of
        self._kinds = kinds
        self._reference: Reference | None = None
        self._saved: Arrays | None = None
        self._mounted: dict[str, Mounted] = {}
        self._fitted_for = (-1, -1)  # revision and regime of the reference that the watcher's own detectors stand on
        self._calibrations = {kind.name: _calibration(kind) for kind in kinds}
        self._held = 0
        self._probation: deque[_Scored] = deque()
        self._unlearned: tuple[Judgement, _Scored | None] | None = None
        self._age = 0  # windows since the reference began
        self._newest_s = -np.inf  # wall clock at the window that was judged last
        self._next_training = 0

    @property
    def reference(self) -> Reference | None:
        """Return the reference; None before the first window."""
        return self._reference

    # Each window

    def judge(self, vector: FeatureVector) -> Judgement:
        """Return what the detectors make of a window. Changes nothing that the next window is compared with."""
        self._newest_s = vector.wall_s
        reference = self._reference_for(vector.layout)
        values = reference.scope.take(vector.values)
        residual = reference.residual(values)
        z = standardise(residual, reference.scale)
        heard = np.where(reference.scope.judged, residual, np.nan)
        reason = self._blind(reference, values, heard)
        if reason:
            verdict = Verdict(window=vector.window, state=State.UNKNOWN, rule=self.rule.text, reason=reason)
            judgement = Judgement(verdict=verdict, reference=reference, values=values, z=z, contributions={})
            self._unlearned = judgement, None
            return judgement
        self._fit_own(reference)
        trend = reference.follow(residual)
        stays = staying(reference.scope, trend, reference.centre, reference.scale)
        lenses = {mounted.lens for mounted in self._mounted.values()}
        seen = {lens: lens.look(stays if lens.slow else heard) for lens in lenses}
        scores = {name: mounted.detector.score(seen[mounted.lens]) for name, mounted in self._mounted.items()}
        rate = self.rule.rate(self.settings.false_alarms_per_hour / self.settings.windows_per_hour)
        votes = tuple(
            self._calibrations[kind.name].vote(scores[kind.name].score, rate=rate)
            for kind in self._kinds
            if kind.name in scores and self._calibrations[kind.name].ready
        )
        verdict = self._verdict(vector.window, votes)
        deciding = {
            vote.detector
            for vote in votes
            if verdict.state is not State.ANOMALOUS or (vote.anomalous and vote.detector in self.rule.members)
        }
        contributions = {name: self._spread_out(name, score) for name, score in scores.items() if name in deciding}
        judgement = Judgement(verdict=verdict, reference=reference, values=values, z=z, contributions=contributions)
        self._unlearned = judgement, (values, trend, {name: score.score for name, score in scores.items()})
        return judgement

    def learn(self, *, episode: bool = False) -> None:
        """Let the window that was judged last into the reference, or keep it aside.

        Args:
            episode: one is firing that began after what is ordinary here (``norm_since_s``): the window is kept aside,
                whatever the detectors say.
        """
        if self._unlearned is None:
            return
        judgement, scored = self._unlearned
        self._unlearned = None
        self._age += 1
        reference, values, state = judgement.reference, judgement.values, judgement.verdict.state
        regime = reference.regime
        if not reference.ready:
            if not np.isnan(values).all():
                reference.learn(values)
        elif state is State.ANOMALOUS or episode:
            while self._probation:
                reference.refuse(self._probation.popleft()[0], episode=episode)
            reference.refuse(values, episode=episode)
        elif scored is not None:
            self._probation.append(scored)
            if len(self._probation) > _PROBATION:
                self._accept(reference)
        if reference.regime != regime:
            self._begin(reference)

    def reset(self) -> None:
        """Forget the evidence gathered so far: a remediation has just changed the host."""
        for calibration in self._calibrations.values():
            calibration.calm()
        if self._reference is not None:
            self._reference.calm()
        self._held = 0

    def rescope(self) -> None:
        """Ask anew which features have a reference: another generation of fingerprints compares others."""
        if self._reference is not None:
            self._realign(self._reference, self._scope_of(self._reference.scope.layout))

    # Training

    @property
    def wants_training(self) -> bool:
        """Return whether a training is due: after warm-up, at each doubling of the past, then hourly."""
        return self._reference is not None and self._reference.ready and self._age >= self._next_training

    def training_set(self) -> TrainingSet:
        """Return what the training child is to be given. The next training is due when the past has doubled.

        Raises:
            BadInputError: there is no reference yet.
        """
        reference = self._reference
        if reference is None or not reference.ready:
            raise BadInputError("there is nothing to train on yet", hint="wait until the reference is warm")
        self._next_training = self._age + min(max(self._age, reference.windows), _RETRAIN_EVERY)
        scope, chosen = reference.scope, np.flatnonzero(reference.scope.judged)
        floor = reference.scope.least(reference.centre)
        return TrainingSet(
            names=tuple(scope.names[position] for position in chosen),
            residuals=reference.residuals()[:, chosen],
            floor=floor[chosen],
            regime=reference.regime,
        )

    def adopt(self, model: TrainedModel) -> bool:
        """Take over a trained model between two windows.

        Returns:
            False when it was trained for a norm that the host has left meanwhile, and was not taken.

        Raises:
            BadInputError: its arrays do not work.
        """
        reference = self._reference
        if reference is not None and reference.ready and model.regime != reference.regime:
            return False
        self._try(model)
        self.model = model
        for kind in self._kinds:
            if kind.in_child and kind.name in model.held_out:
                self._calibrations[kind.name].seed(model.held_out[kind.name])
        if reference is not None:
            self._mount(reference.scope)
        return True

    # What outlives the process

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return reference and calibrations as plain arrays; the model is saved apart. Empty before any window."""
        if self._reference is None:
            return dict(self._saved or {})
        calibrations = {f"scores/{name}": each.scores() for name, each in self._calibrations.items()}
        reference = {f"reference/{name}": array for name, array in self._reference.state().items()}
        return {**reference, **calibrations, "norm_since": np.array(self.norm_since_s)}

    def restore(self, state: Arrays) -> None:
        """Continue from what ``state`` returned in an earlier process. Call it before the first window.

        The arrays are read when the first window shows the layout; when they do not fit, all is learned anew.
        """
        self._saved = state

    # Inside

    def _reference_for(self, layout: FeatureLayout) -> Reference:
        reference = self._reference
        if reference is not None and reference.scope.layout is layout:
            return reference
        scope = self._scope_of(layout)
        if reference is None:
            reference = self._reference = self._restored(scope) or Reference(scope, self.settings.reference)
            if self.model is not None and self.model.regime != reference.regime:
                self.model = None
            self._mount(scope)
        else:
            self._realign(reference, scope)
        return reference

    def _realign(self, reference: Reference, scope: DetectorInput) -> None:
        while self._probation:  # their columns are those of the old scope
            self._accept(reference)
        reference.realign(scope)
        self._unlearned = None
        self._mount(scope)

    def _restored(self, scope: DetectorInput) -> Reference | None:
        saved, self._saved = self._saved, None
        if not saved:
            return None
        state = {key.removeprefix("reference/"): value for key, value in saved.items() if key.startswith("reference/")}
        try:
            reference = Reference.from_state(state, scope, self.settings.reference)
        except BadInputError:
            return None  # an older format: learning anew takes a minute
        self.norm_since_s = float(saved.get("norm_since", np.array(-np.inf)))
        for name, calibration in self._calibrations.items():
            if f"scores/{name}" in saved and reference.ready:
                calibration.seed(np.asarray(saved[f"scores/{name}"], dtype=np.float64))
        return reference

    def _blind(self, reference: Reference, values: NDArray[np.float64], heard: NDArray[np.float64]) -> str:
        if not len(values) or np.isnan(values).all():
            return "no feature is present"
        if not reference.ready:
            return f"warming up: {reference.windows} of {self.settings.reference.warm_up} windows"
        if np.isnan(heard).all():
            return "no feature that is present has a reference yet"
        return ""

    def _begin(self, reference: Reference) -> None:
        """Start judging by a reference that has just begun, or begun anew: what was fitted before is stale."""
        self.model = None
        self.norm_since_s = self._newest_s
        self._mounted.clear()
        self._probation.clear()
        self.reset()
        self._age = self._next_training = reference.windows
        residuals = reference.residuals()
        own = tuple(kind for kind in self._kinds if not kind.in_child and not kind.slow)
        chosen = np.flatnonzero(reference.scope.judged)
        floor = reference.scope.least(reference.centre)[chosen]
        scores = held_out(residuals[:, chosen], floor, kinds=own, estimators=None) | self._slow_held_out(reference)
        for kind in self._kinds:
            self._calibrations[kind.name].seed(scores.get(kind.name, np.empty(0)))

    def _slow_held_out(self, reference: Reference) -> dict[str, NDArray[np.float64]]:
        chosen = np.flatnonzero(steady(reference.scope))
        kinds = tuple(kind for kind in self._kinds if kind.slow)
        floor = reference.scope.least(reference.centre)[chosen]
        past = reference.trends()
        excused = queues_alone(reference.scope, past, reference.centre, reference.scale)[:, chosen]
        return held_out(past[:, chosen], floor, kinds=kinds, estimators=None, gap=_PROBATION, excused=excused)

    def _fit_own(self, reference: Reference) -> None:
        """Refit the detectors that need no training child, whenever the reference was refreshed."""
        stands_on = reference.revision, reference.regime
        if self._fitted_for == stands_on:
            return
        self._fitted_for = stands_on
        chosen = np.flatnonzero(reference.scope.judged)
        scale = reference.scale[chosen]
        z = standardise(reference.residuals(_KIN_OVER)[:, chosen], scale)
        lens = Lens(positions=chosen, own=np.arange(len(chosen)), scale=scale)
        kept = np.flatnonzero(steady(reference.scope))
        rows = reference.trends()[:, kept]
        strays = np.maximum(np.nan_to_num(spread(rows)), reference.scope.least(reference.centre)[kept])
        slow = Lens(positions=kept, own=np.arange(len(kept)), scale=strays, slow=True)
        past = standardise(rows, strays)
        for kind in self._kinds:
            if not kind.in_child:
                detector = kind.restore(kind.fit(past if kind.slow else z, None, 0))
                self._mounted[kind.name] = Mounted(detector=detector, lens=slow if kind.slow else lens)

    def _mount(self, scope: DetectorInput) -> None:
        """Put the model's detectors on the features that it shares with the scope."""
        self._mounted.clear()
        self._fitted_for = (-1, -1)
        if self.model is None:
            return
        own = [index for index, name in enumerate(self.model.names) if name in scope.place]
        positions = np.array([scope.place[self.model.names[index]] for index in own], dtype=np.intp)
        lens = Lens(positions=positions, own=np.array(own, dtype=np.intp), scale=self.model.scale)
        for kind in self._kinds:
            if kind.in_child and kind.name in self.model.detectors:
                detector = kind.restore(self.model.detectors[kind.name])
                self._mounted[kind.name] = Mounted(detector=detector, lens=lens)

    def _try(self, model: TrainedModel) -> None:
        for kind in self._kinds:
            if kind.name not in model.detectors:
                continue
            try:
                score = kind.restore(model.detectors[kind.name]).score(np.ones(len(model.names)))
            except (KeyError, ValueError, IndexError, TypeError) as error:
                raise BadInputError(
                    f"model of {kind.name} does not work: {error}", hint="it is trained anew"
                ) from error
            if score.contributions.shape != model.scale.shape or not np.isfinite(score.score):
                raise BadInputError(f"model of {kind.name} does not work", hint="it is trained anew")

    def _verdict(self, window: int, votes: tuple[Vote, ...]) -> Verdict:
        state = self.rule.decide(votes)
        self._held = self._held + 1 if state is State.ANOMALOUS else 0
        if state is State.ANOMALOUS and self._held < self.settings.hold:
            state = State.NORMAL
        reason = "the detectors of the rule are not trained yet" if state is State.UNKNOWN else ""
        severity = max((vote.score for vote in votes if vote.detector in self.rule.members), default=0.0)
        return Verdict(window=window, state=state, votes=votes, rule=self.rule.text, severity=severity, reason=reason)

    def _spread_out(self, name: str, score: Score) -> NDArray[np.float64]:
        """Return a detector's contributions at the places of the scope's features."""
        assert self._reference is not None
        lens = self._mounted[name].lens
        contributions = np.zeros(len(self._reference.scope.ids))
        contributions[lens.positions] = score.contributions.take(lens.own)
        return contributions

    def _accept(self, reference: Reference) -> None:
        values, trend, scores = self._probation.popleft()
        reference.learn(values, trend)
        for name, score in scores.items():
            self._calibrations[name].push(score)


def _calibration(kind: DetectorKind) -> Calibration:
    return Calibration(kind.name, paces=OF_TRENDS, newest=OF_A_RANGE) if kind.slow else Calibration(kind.name)
