"""Judgement: a verdict together with the arrays that attribution needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from unveil.detection.reference import Reference
    from unveil.records.verdict import Verdict


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judgement:
    """What the ensemble says about one window, and why.

    Attributes:
        verdict: the record that travels.
        reference: what it was compared with; its ``scope`` names the features.
        values: shape (features,), what was judged, NaN where absent.
        z: shape (features,), signed sigmas, 0 where absent.
        contributions: detector → shape (features,), of those that decided: the members of the rule that voted
            anomalous in an anomalous window, otherwise all that voted. Empty while the reference warms up.
    """

    verdict: Verdict
    reference: Reference
    values: NDArray[np.float64]
    z: NDArray[np.float64]
    contributions: Mapping[str, NDArray[np.float64]]
