"""Attribution: each feature's and each subsystem's share in a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.feature import FeatureId
    from unveil.records.subsystem import Subsystem


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureShare:
    """How much one feature moved the verdict.

    Attributes:
        share: in [0, 1]; all shares of a window sum to one.
        value: the feature in its own unit.
        expected: what the reference makes of it, same unit.
        sigma: signed distance in robust standard deviations of the reference (up is positive).
    """

    feature: FeatureId
    subsystem: Subsystem
    share: float
    value: float
    expected: float
    sigma: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Shares of one window: by feature in descending order, and by subsystem (all six, summing to one).

    Empty features mean that there is nothing to attribute (no reference yet, or an entirely ordinary window).
    """

    window: int
    features: tuple[FeatureShare, ...]
    subsystems: Mapping[Subsystem, float]
