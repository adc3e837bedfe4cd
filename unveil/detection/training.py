"""Training: fit the detectors on past windows and find out, honestly, how they score windows they have not seen.

The only door to scikit-learn, which is imported inside and only ever in a child process: what it costs
(``python -m unveil.benchmarks.imports``) the watcher does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.detection.catalogue import DETECTORS
from unveil.detection.model import TrainedModel
from unveil.detection.spread import median, spread, standardise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from unveil.detection.detector import DetectorKind, Estimators
    from unveil.detection.model import TrainingSet

TREES = 100
SAMPLES_PER_TREE = 256
BLOCKS = 5
GAP = 3  # windows overlap: next to a held-out stretch so many are left out of both


class ScikitLearn:
    """scikit-learn's estimators with the settings of this program; see ``Estimators``."""

    def isolation_forest(self, z: NDArray[np.float64], *, seed: int) -> Any:
        """Return a fitted ``IsolationForest``."""
        from sklearn.ensemble import IsolationForest  # the child alone pays for it

        forest = IsolationForest(
            n_estimators=TREES, max_samples=min(SAMPLES_PER_TREE, len(z)), random_state=seed, n_jobs=1
        )
        return forest.fit(z)

    def ledoit_wolf(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shrunk covariance of centred rows."""
        from sklearn.covariance import ledoit_wolf  # as above

        covariance, _ = ledoit_wolf(rows, assume_centered=True)
        return np.asarray(covariance, dtype=np.float64)


def fit(training_set: TrainingSet, *, seed: int = 0, kinds: tuple[DetectorKind, ...] = DETECTORS) -> TrainedModel:
    """Fit every detector that needs a training, and score each stretch of time by detectors fitted without it.

    Costs seconds of CPU for half an hour of windows.

    Args:
        training_set: at least as many windows as make a reference.
        seed: of the forest; the same seed and set give the same model.
    """
    estimators: Estimators = ScikitLearn()
    residuals, floor = training_set.residuals, training_set.floor
    trained = tuple(kind for kind in kinds if kind.in_child)
    scale = _scale(residuals, floor)
    z = standardise(residuals, scale)
    return TrainedModel(
        names=training_set.names,
        scale=scale,
        detectors={kind.name: kind.fit(z, estimators, seed) for kind in trained},
        held_out=held_out(residuals, floor, kinds=trained, estimators=estimators, seed=seed),
        windows=len(residuals),
        regime=training_set.regime,
    )


def held_out(
    residuals: NDArray[np.float32],
    floor: NDArray[np.float64],
    *,
    kinds: tuple[DetectorKind, ...],
    estimators: Estimators | None,
    seed: int = 0,
    gap: int = GAP,
    excused: NDArray[np.bool_] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return detector → score of each window by a detector, centre and sigma that did not see its stretch of time.

    Conformal cross-fitting over contiguous blocks: neighbouring windows share samples and phases of the workload, so
    windows left out at random would score as if they had been seen (in-sample thresholds gave up to 53 % false alarms).

    Args:
        excused: what no detector would have been shown of the window it scores, shape of the residuals.
    """
    scores = {kind.name: np.zeros(len(residuals)) for kind in kinds}
    for inside, outside in _blocks(len(residuals), gap):
        centre = np.nan_to_num(median(residuals[outside]))
        seen = residuals[outside] - centre
        scale = _scale(seen, floor)
        unseen = standardise(residuals[inside] - centre, scale)
        if excused is not None:
            unseen[excused[inside]] = np.nan
        z = standardise(seen, scale)
        for kind in kinds:
            detector = kind.restore(kind.fit(z, estimators, seed))
            scores[kind.name][inside] = [detector.score(row).score for row in unseen]
    return scores


def _scale(residuals: NDArray[np.floating], floor: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(spread(residuals), floor)


def _blocks(count: int, gap: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield positions of a held-out stretch and of the rest, without the windows that overlap both."""
    positions = np.arange(count)
    for inside in np.array_split(positions, min(BLOCKS, count)):
        near = (positions >= inside[0] - gap) & (positions <= inside[-1] + gap)
        yield inside, positions[~near]
