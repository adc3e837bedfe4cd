"""A made-up host for the benchmarks of scoring: correlated features, and an ensemble that has watched it for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.detector_input import DetectorInput, Trait, select
from unveil.detection.ensemble import Ensemble
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAST = 1800  # windows


def warm(width: int) -> tuple[Ensemble, list[FeatureVector]]:
    """Return an ensemble that has a full past of correlated features, and windows that come next."""
    layout = FeatureLayout(tuple(FeatureId(f"{list(Subsystem)[index % 6]}.m{index}.rate") for index in range(width)))
    random = np.random.default_rng(0)
    mix = random.normal(size=(12, width)) * 0.2

    def vector(window: int) -> FeatureVector:
        values: NDArray[np.float64] = np.expm1(5 + random.normal(size=12) @ mix + random.normal(size=width) * 0.2)
        return FeatureVector(window=window, wall_s=float(window), layout=layout, values=values)

    ensemble = Ensemble(_scope)
    for window in range(PAST):
        ensemble.judge(vector(window))
        ensemble.learn()
    return ensemble, [vector(PAST + window) for window in range(240)]


def _scope(layout: FeatureLayout) -> DetectorInput:
    return select(layout, lambda feature: Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=True))
