"""What judging a window costs: each detector, attribution and the whole, beside scikit-learn's own scoring.

Run it with ``python -m unveil.benchmarks.scoring [features …]``. CPU time of this thread, in a hot loop; the watcher,
which judges once a second with cold caches, pays two to four times as much. Then what a training costs the child that
does it, and what it does to the memory of the process that watches. What is wanted stands beside.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unveil.attribution.attribute import attribute
from unveil.benchmarks.scoring_host import warm
from unveil.detection.catalogue import DETECTORS
from unveil.detection.model import TrainingSet
from unveil.detection.training import ScikitLearn, fit
from unveil.engine.training import train_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.detection.ensemble import Ensemble
    from unveil.records.feature import FeatureVector

_REPEATS = 7
_FITTED = (3600, 300)  # windows and features of the training that is measured
_ALL = "judge and attribute: all detectors, the 12 largest"
WANTED_US, WANTED_FIT_S = 500.0, 10.0


def main() -> None:
    """Measure and print a table."""
    widths = [int(argument) for argument in sys.argv[1:]] or [200, 300]
    columns = [_measure(width) for width in widths]
    print(f"{'microseconds of CPU for one window':<52}" + "".join(f"{width:>14} features" for width in widths))
    for name in columns[0]:
        print(f"{name:<52}" + "".join(f"{column[name]:>23,.1f}" for column in columns))
    print(f"\n{'of that, wanted at 300 features':<52}{WANTED_US:>20,.0f} µs at most: {_ALL.partition(':')[0]}")
    seconds = _fitted_in_child()
    print(
        f"{f'fitting {_FITTED[0]:,} x {_FITTED[1]} in the child, CPU':<52}{seconds:>21.2f} s, wanted {WANTED_FIT_S:g}"
    )
    untrained, *trained = _watching(widths[-1])
    print(f"{'resident memory of the watching process, untrained':<52}{untrained / 1e6:>20.1f} MB")
    for number, each in enumerate(trained, 1):
        told = (
            f"{(each - untrained) / 1e6:+.1f}, the models" if number == 1 else f"{(each - trained[0]) / 1e6:+.1f} since"
        )
        print(f"{f'… after training {number}, wanted unchanged':<52}{each / 1e6:>20.1f} MB, {told}")


def _measure(width: int) -> dict[str, float]:
    ensemble, vectors = warm(width)
    model = fit(ensemble.training_set())
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
    rows[_ALL] = _cost(lambda: attribute(ensemble.judge(vectors[0]), largest=12), 100)
    rows["judge and learn, refreshes of the reference"] = _cost(_follow(ensemble, vectors), 1, repeats=1) / len(vectors)
    forest = ScikitLearn().isolation_forest(z, seed=0)
    row = window.reshape(1, -1)
    rows["scikit-learn: score_samples of the same forest"] = _cost(lambda: forest.score_samples(row), 10)
    return rows


def _fitted_in_child() -> float:
    """Return the CPU seconds of a child that fits everything, its start and its imports included."""
    windows, width = _FITTED
    random = np.random.default_rng(0)
    rows = random.normal(size=(windows, 12)) @ random.normal(size=(12, width)) * 0.2
    rows += random.normal(size=(windows, width)) * 0.2
    training_set = TrainingSet(
        names=tuple(f"cpu.m{index}.rate" for index in range(width)),
        residuals=rows.astype(np.float32),
        floor=np.full(width, 0.2),
        regime=1,
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    train_now(training_set)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _watching(width: int) -> list[int]:
    """Return the resident bytes of a process that watches: untrained, and after each training."""
    said = subprocess.run(
        [sys.executable, "-m", "unveil.benchmarks.scoring_watcher", str(width)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return [int(each) for each in json.loads(said.stdout)]


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
