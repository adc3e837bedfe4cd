"""Isolation Forest (Liu, Ting and Zhou 2008): windows that few random cuts set apart from the past.

scikit-learn grows the forest; here it is a handful of flat arrays, walked by all trees at once. The score is the
same to the last bits, for a small part of what ``score_samples`` takes (``python -m unveil.benchmarks.scoring``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.detection.detector import DetectorKind, Score, neutral
from unveil.detection.kinship import voices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Estimators

_FLOAT32_LARGEST = 3e38


@dataclass(frozen=True, slots=True, eq=False)
class IsolationForest:
    """Score: ``-score_samples`` of scikit-learn, in (0, 1]; a half is ordinary. Contributions: shortened paths.

    Each node knows the mean path length of the training windows that passed it. A cut that sends this window to a
    child with a shorter one has made it stranger by the difference, and its feature gets the credit (Saabas' walk).
    Over one tree the credits sum to *mean path of all - path of this window*; summed over the trees, features whose
    credit is negative made it more ordinary and contribute 0. Features that say the same are cut as often as there are
    copies of them, so credit is weighted by their voices (``kinship``). Features that stood still during training are
    never cut: a forest does not see them.

    Attributes:
        feature, threshold, left, right: shape (nodes,), all trees one after the other; a leaf leads to itself.
        length: shape (nodes,), mean path length of the training windows below a node; of a leaf, its own.
        roots: shape (trees,).
        depth: cuts on the longest path.
        ordinary: mean path length that turns a path into a score, c(n) of the paper.
        voice: shape (features,), weight of each feature's credit.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    length: NDArray[np.float64]
    roots: NDArray[np.int32]
    depth: int
    ordinary: float
    voice: NDArray[np.float64]

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window; see ``Detector``."""
        bounded = np.minimum(np.maximum(neutral(z), -_FLOAT32_LARGEST), _FLOAT32_LARGEST)
        single = bounded.astype(
            np.float32
        )  # as scikit-learn does, or a value beside a cut would fall on its other side
        path = np.empty((self.depth + 1, len(self.roots)), dtype=np.int32)
        path[0] = node = self.roots
        for step in range(self.depth):
            below = single.take(self.feature.take(node)) <= self.threshold.take(node)
            path[step + 1] = node = np.where(below, self.left.take(node), self.right.take(node))
        lengths = self.length.take(path)
        score = 2.0 ** (-lengths[-1].sum() / (len(self.roots) * self.ordinary)) if self.ordinary else 0.5
        credit = np.bincount(
            self.feature.take(path[:-1]).ravel(), (lengths[:-1] - lengths[1:]).ravel(), minlength=len(z)
        )
        return Score(score=float(score), contributions=np.maximum(credit, 0.0) * self.voice)


def fit(z: NDArray[np.float64], estimators: Estimators | None, seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Grow a forest on past windows, shape (windows, features), and return it flattened."""
    assert estimators is not None
    voice, _ = voices(neutral(z))
    return {**flatten(estimators.isolation_forest(neutral(z), seed=seed)), "voice": voice}


def flatten(forest: Any) -> dict[str, NDArray[np.generic]]:
    """Return a fitted scikit-learn ``IsolationForest`` as flat arrays."""
    parts: dict[str, list[NDArray[np.generic]]] = {
        name: [] for name in ("feature", "threshold", "left", "right", "length")
    }
    roots, depth, start = [], 0, 0
    for estimator in forest.estimators_:
        tree = estimator.tree_
        nodes = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        parts["feature"].append(np.where(leaf, 0, tree.feature))
        parts["threshold"].append(np.where(leaf, np.inf, tree.threshold))
        parts["left"].append(start + np.where(leaf, nodes, tree.children_left))
        parts["right"].append(start + np.where(leaf, nodes, tree.children_right))
        parts["length"].append(_lengths(tree))
        roots.append(start)
        depth = max(depth, int(tree.max_depth))
        start += tree.node_count
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return {
        **{name: joined[name].astype(np.int32) for name in ("feature", "left", "right")},
        "threshold": joined["threshold"].astype(np.float64),
        "length": joined["length"].astype(np.float64),
        "roots": np.array(roots, dtype=np.int32),
        "depth": np.array(depth),
        "ordinary": np.array(_unbuilt(np.array([forest.max_samples_]))[0]),
    }


def _lengths(tree: Any) -> NDArray[np.float64]:
    """Return each node's mean path length over the training windows below it; scikit-learn numbers parents first."""
    left, right, windows = tree.children_left, tree.children_right, tree.n_node_samples
    depth = np.zeros(tree.node_count)
    for node in np.flatnonzero(left >= 0):
        depth[[left[node], right[node]]] = depth[node] + 1
    length = depth + _unbuilt(windows)
    for node in np.flatnonzero(left >= 0)[::-1]:
        low, high = left[node], right[node]
        length[node] = (windows[low] * length[low] + windows[high] * length[high]) / windows[node]
    return length


def _unbuilt(windows: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return c(n), the mean depth of the tree that was not grown below a leaf of n windows."""
    count = np.asarray(windows, dtype=np.float64)
    length = np.where(count == 2, 1.0, 0.0)
    many = count > 2
    length[many] = 2.0 * (np.log(count[many] - 1.0) + np.euler_gamma) - 2.0 * (count[many] - 1.0) / count[many]
    return length


def restore(arrays: Arrays) -> IsolationForest:
    """Return the detector."""
    return IsolationForest(
        feature=np.asarray(arrays["feature"], dtype=np.int32),
        threshold=np.asarray(arrays["threshold"], dtype=np.float64),
        left=np.asarray(arrays["left"], dtype=np.int32),
        right=np.asarray(arrays["right"], dtype=np.int32),
        length=np.asarray(arrays["length"], dtype=np.float64),
        roots=np.asarray(arrays["roots"], dtype=np.int32),
        depth=int(arrays["depth"]),
        ordinary=float(arrays["ordinary"]),
        voice=np.asarray(arrays["voice"], dtype=np.float64),
    )


ISOLATION_FOREST = DetectorKind(
    name="isolation_forest",
    meaning="windows that few random cuts set apart",
    fit=fit,
    restore=restore,
    in_child=True,
)
