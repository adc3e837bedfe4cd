"""What judging a window costs: each detector, attribution and the whole, beside scikit-learn's own scoring.

Run it with ``python -m unveil.benchmarks.scoring [features …]``. CPU time of this thread, in a hot loop; the watcher,
which judges once a second with cold caches, pays a multiple of it.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unveil.attribution.attribute import attribute
from unveil.detection.catalogue import DETECTORS
from unveil.detection.detector_input import DetectorInput, Trait, select
from unveil.detection.ensemble import Ensemble
from unveil.detection.training import ScikitLearn, fit
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_PAST = 1800  # windows
_REPEATS = 7


def main() -> None:
    """Measure and print a table."""
    widths = [int(argument) for argument in sys.argv[1:]] or [200, 300]
    columns = [_measure(width) for width in widths]
    print(f"{'microseconds of CPU for one window':<48}" + "".join(f"{width:>14} features" for width in widths))
    for name in columns[0]:
        print(f"{name:<48}" + "".join(f"{column[name]:>23,.1f}" for column in columns))


def _measure(width: int) -> dict[str, float]:
    ensemble, vectors = _warm(width)
    begun = time.process_time()
    model = fit(ensemble.training_set())
    fitting = (time.process_time() - begun) * 1e6
    ensemble.adopt(model)
    residuals = np.nan_to_num(ensemble.training_set().residuals).astype(np.float64)
    z, window = residuals / model.scale, residuals[-1] / model.scale
    rows = {}
    for kind in DETECTORS:
        arrays = model.detectors[kind.name] if kind.in_child else kind.fit(z[-300:], None, 0)
        detector = kind.restore(arrays)
        rows[f"{kind.name}, contributions included"] = _cost(partial(detector.score, window), 300)
    judgement = ensemble.judge(vectors[0])
    rows["attribution, the 12 largest"] = _cost(lambda: attribute(judgement, largest=12), 100)
    rows["attribution, every feature"] = _cost(lambda: attribute(judgement), 30)
    rows["judge: reference, all detectors, votes, verdict"] = _cost(lambda: ensemble.judge(vectors[0]), 100)
    rows["judge and learn, refreshes of the reference"] = _cost(_follow(ensemble, vectors), 1, repeats=1) / len(vectors)
    forest = ScikitLearn().isolation_forest(z, seed=0)
    row = window.reshape(1, -1)
    rows["scikit-learn: score_samples of the same forest"] = _cost(lambda: forest.score_samples(row), 10)
    rows[f"training on {len(z)} windows (in the child, hourly)"] = fitting
    return rows


def _warm(width: int) -> tuple[Ensemble, list[FeatureVector]]:
    """Return an ensemble that has a full past of correlated features, and windows that come next."""
    layout = FeatureLayout(tuple(FeatureId(f"{list(Subsystem)[index % 6]}.m{index}.rate") for index in range(width)))
    random = np.random.default_rng(0)
    mix = random.normal(size=(12, width)) * 0.2

    def vector(window: int) -> FeatureVector:
        values: NDArray[np.float64] = np.expm1(5 + random.normal(size=12) @ mix + random.normal(size=width) * 0.2)
        return FeatureVector(window=window, wall_s=float(window), layout=layout, values=values)

    ensemble = Ensemble(_scope)
    for window in range(_PAST):
        ensemble.judge(vector(window))
        ensemble.learn()
    return ensemble, [vector(_PAST + window) for window in range(240)]


def _scope(layout: FeatureLayout) -> DetectorInput:
    return select(layout, lambda feature: Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=True))


def _follow(ensemble: Ensemble, vectors: list[FeatureVector]) -> Callable[[], None]:
    def follow() -> None:
        for vector in vectors:
            ensemble.judge(vector)
            ensemble.learn()

    return follow


def _cost(call: Callable[[], object], count: int, *, repeats: int = _REPEATS) -> float:
    """Return the median CPU time of a call, in microseconds."""
    taken = []
    for _ in range(repeats):
        begun = time.thread_time_ns()
        for _ in range(count):
            call()
        taken.append((time.thread_time_ns() - begun) / count / 1e3)
    return float(np.median(taken))


if __name__ == "__main__":
    main()
