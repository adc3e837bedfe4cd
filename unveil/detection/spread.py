"""Robust centre and spread of columns with gaps: what a reference and a trained model stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_VALUES = 20  # a column with fewer values has no reference yet
_TAIL = 0.002  # of the values on either side, and at least one, count as no farther than the next
CLIP = 40.0  # sigmas; beyond it nothing is more wrong, and one glitch must not drown all other features


def median(rows: NDArray[np.floating], *, least: int = MIN_VALUES) -> NDArray[np.float64]:
    """Return each column's median over its values that are there, NaN where those are fewer than *least*."""
    ordered, count = _ordered(rows)
    if not len(rows):
        return np.full(rows.shape[1], np.nan)
    below, above = _pick(ordered, (count - 1) // 2), _pick(ordered, count // 2)
    return np.where(count >= least, (below + above) / 2, np.nan)


def spread(residuals: NDArray[np.floating], *, least: int = MIN_VALUES) -> NDArray[np.float64]:
    """Return each column's root mean square about zero, its outer 2.5 % on either side pulled in first.

    Not the median absolute deviation: features of a training job are bursty (a checkpoint each minute), and to a
    median each burst is an outlier. Pulled in, because a single glitch of 1e18 would blind the reference until it is
    forgotten.

    Args:
        residuals: shape (windows, features), distances from the centre, NaN where absent.

    Returns:
        Shape (features,); NaN where fewer than *least* values are there.
    """
    ordered, count = _ordered(residuals)
    if not len(residuals):
        return np.full(residuals.shape[1], np.nan)
    outer = np.maximum(np.ceil(_TAIL * count), 1).astype(np.intp)
    low, high = _pick(ordered, outer), _pick(ordered, count - 1 - outer)
    pulled = ordered.astype(np.float64)  # megabytes, so all that follows is done in place
    np.maximum(pulled, low[:, None], out=pulled)
    np.minimum(pulled, high[:, None], out=pulled)
    pulled[np.isnan(ordered)] = 0.0
    mean_square = np.square(pulled, out=pulled).sum(axis=1) / np.maximum(count, 1)
    return np.where(count >= least, np.sqrt(mean_square), np.nan)


def standardise(residuals: NDArray[np.floating], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return residuals in sigmas within ±CLIP; 0, which is neutral, where the value or its scale is absent."""
    sigmas: NDArray[np.float64] = within(residuals / scale)
    sigmas[np.isnan(sigmas)] = 0.0
    return sigmas


def within(sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring sigmas within ±CLIP, in place, and return them; NaN stays."""
    np.maximum(sigmas, -CLIP, out=sigmas)  # cheaper than np.clip on so few numbers
    return np.minimum(sigmas, CLIP, out=sigmas)


def _ordered(rows: NDArray[np.floating]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return each column sorted (one a row, NaN last), and how many values it has."""
    columns = np.array(rows.T, dtype=np.float32, order="C")  # a copy, whatever the memory order of the rows
    columns.sort(axis=1)
    return columns, np.isfinite(columns).sum(axis=1)


def _pick(ordered: NDArray[np.float32], position: NDArray[np.intp]) -> NDArray[np.float64]:
    inside = np.clip(position, 0, ordered.shape[1] - 1)
    chosen = np.take_along_axis(ordered, inside[:, None], axis=1)[:, 0]
    return chosen.astype(np.float64)
