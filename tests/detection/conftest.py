"""A host that is made of numbers: correlated features, some of which never move."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.detection.detector_input import DetectorInput, Trait, select
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.detection.training import fit as training_fit
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from unveil.detection.model import TrainedModel, TrainingSet

SUBSYSTEMS = tuple(Subsystem)


def names(width: int) -> tuple[FeatureId, ...]:
    return tuple(FeatureId(f"{SUBSYSTEMS[index % 6]}.m{index}.rate") for index in range(width))


def trait(feature: FeatureId) -> Trait:
    return Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=True)


def scope_of(layout: FeatureLayout) -> DetectorInput:
    return select(layout, trait)


@dataclass
class Host:
    """Rates of a quiet host: every third feature stands still at zero, the others follow four hidden loads."""

    width: int = 30
    seed: int = 0
    layout: FeatureLayout | None = None

    def __post_init__(self) -> None:
        self.layout = self.layout or FeatureLayout(names(self.width))
        self._random = np.random.default_rng(self.seed)
        self._mix = np.random.default_rng(99).normal(size=(4, self.width)) * 0.2
        self._loads = np.zeros(4)
        self._window = 0

    def values(self) -> np.ndarray:
        self._loads = 0.7 * self._loads + self._random.normal(size=4)
        log = 5 + self._loads @ self._mix + self._random.normal(size=self.width) * 0.1
        values = np.expm1(log)
        values[::3] = 0.0
        return values

    def vector(self, change=None) -> FeatureVector:
        values = self.values()
        if change is not None:
            change(values)
        vector = FeatureVector(window=self._window, wall_s=float(self._window), layout=self.layout, values=values)
        self._window += 1
        return vector


def run(ensemble: Ensemble, host: Host, windows: int, change=None, *, episode: bool = False):
    judgements = []
    for _ in range(windows):
        judgements.append(ensemble.judge(host.vector(change)))
        ensemble.learn(episode=episode)
    return judgements


FITTED: dict[bytes, TrainedModel] = {}


def fit(training: TrainingSet) -> TrainedModel:
    """Return what was fitted to this set before, where it was: it takes a second."""
    asked = b"".join(array.tobytes() for array in training.arrays().values())
    if asked not in FITTED:
        FITTED[asked] = training_fit(training)
    return FITTED[asked]


@pytest.fixture
def lab() -> SimpleNamespace:
    return SimpleNamespace(Host=Host, run=run, fit=fit, names=names, scope_of=scope_of)


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble(scope_of, EnsembleSettings())
