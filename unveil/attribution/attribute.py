"""Attribution: each feature's and each subsystem's share in a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.features.load import WORK
from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.judgement import Judgement

_SUBSYSTEMS = tuple(Subsystem)


def attribute(judgement: Judgement, *, largest: int | None = None) -> Attribution:
    """Return who moved a verdict.

    Each detector's contributions are brought to a sum of one; shares are their mean over the detectors that decided
    (see ``Judgement.contributions``), so that no detector speaks louder for having larger numbers. How much gets done
    is what every fault lowers, of whatever subsystem: it has a share only where a detector names nothing else.

    Args:
        largest: list only so many features; the subsystems are over all of them nevertheless.

    Returns:
        Shares that sum to one over all features, and over the six subsystems; both empty where there is nothing to
        attribute: the reference is warming up, or every feature stands exactly where it is expected.
    """
    shares = _shares(judgement)
    window = judgement.verdict.window
    if shares is None:
        return Attribution(window=window, features=(), subsystems={})
    scope = judgement.reference.scope
    summed = np.bincount(scope.subsystem_index, shares, minlength=len(_SUBSYSTEMS))
    subsystems = dict(zip(_SUBSYSTEMS, summed.tolist(), strict=True))
    order = (-shares).argsort(kind="stable")[: np.count_nonzero(shares)][:largest]
    centre, _ = judgement.reference.expectations()
    told = [each.take(order).tolist() for each in (shares, judgement.values, centre, judgement.z)]
    features = tuple(
        FeatureShare(
            feature=scope.ids[position],
            subsystem=scope.subsystems[position],
            share=share,
            value=value,
            expected=expected,
            sigma=sigma,
        )
        for position, share, value, expected, sigma in zip(order.tolist(), *told, strict=True)
    )
    return Attribution(window=window, features=features, subsystems=subsystems)


def _shares(judgement: Judgement) -> NDArray[np.float64] | None:
    """Return shares, shape (features,), that sum to one; None where nothing contributed."""
    present = ~np.isnan(judgement.values)
    place = judgement.reference.scope.place
    outcomes = [place[name] for name in WORK if name in place]
    voices = [
        _causes(np.where(present, contributions, 0.0), outcomes) for contributions in judgement.contributions.values()
    ]
    loud = [voice / voice.max() for voice in voices if voice.size and voice.max() > 0.0]
    if not loud:
        return None
    shares = np.zeros(len(present))
    for voice in loud:
        shares += voice / voice.sum()
    shares /= len(loud)
    shares /= shares.sum()
    return shares


def _causes(voice: NDArray[np.float64], outcomes: list[int]) -> NDArray[np.float64]:
    """Return a detector's contributions without the outcomes, where anything else contributed."""
    causes = voice.copy()
    causes[outcomes] = 0.0
    return causes if causes.any() else voice
