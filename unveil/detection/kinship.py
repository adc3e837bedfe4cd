"""Kinship: which features say the same, so that they share one voice when a verdict is attributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KIN = 0.5  # squared correlation from which two features say the same thing
_BOUND = 3.0  # sigmas; or one common glitch would make all features kin


def voices(z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return how loud each feature may speak, and which never moved, from past windows.

    A feature's voice is 1 over the sum of squared correlations with all features of its kin, itself included: two
    copies have half a voice each, and a metric with six statistics does not outweigh a metric with one.

    Args:
        z: shape (windows, features), sigmas, nothing absent.

    Returns:
        Voices, shape (features,), in (0, 1]; and whether a feature never moved, and so has no correlation.
    """
    bounded = np.clip(z, -_BOUND, _BOUND).astype(np.float32)
    if len(bounded):
        bounded -= bounded.mean(axis=0)
    length = np.sqrt(np.square(bounded).sum(axis=0))
    still = length < 1e-6
    unit = bounded / np.where(still, np.float32(1.0), length)
    kinship = np.square(unit.T @ unit)
    kinship[kinship < _KIN] = 0.0
    np.fill_diagonal(kinship, 1.0)
    return 1.0 / kinship.sum(axis=1, dtype=np.float64), still
