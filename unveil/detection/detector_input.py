"""DetectorInput: which features of the vector the detectors see, and on what scale they are compared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from unveil.features.feature import Trouble
from unveil.records.digest import sha256
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from unveil.records.feature import FeatureId, FeatureLayout

# The least standard deviation that is believed in. A feature that never moved has none of its own, and dropping it
# would drop the very counters that stand still until they are the fault.
LOG_FLOOR = 0.2  # log1p units: a rate has to change by about a fifth to be one sigma away
LINEAR_FLOOR = 0.05  # own unit: made for shares in 0..1, of which a twentieth is one sigma
RELATIVE_FLOOR = 0.03  # of the centre, for levels in other units (1755 MHz, 300 W)

_HARMLESS = {Trouble.UP: -1, Trouble.DOWN: 1, Trouble.EITHER: 0}
_LARGEST = 1e30  # beyond any unit; keeps the arithmetic below float32's own end


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """What the catalogue of features says about one feature, as far as detection is concerned.

    Attributes:
        log: compare on the scale of log1p (skewed rates and sizes) instead of the feature's own.
        judged: the detectors see it; otherwise only its reference is kept, for clauses such as ``deviates: down``.
        load: tells how much is done rather than how well; see ``features.load``.
        trouble: which way it moves when something is wrong; the detectors of what stays leave the other way out.
        counted: it counts events or tasks, so that one more of them is never farther than one sigma.
        floor: least standard deviation, in log1p units or the feature's own; None for the default of its scale.
    """

    subsystem: Subsystem
    log: bool
    judged: bool = True
    load: bool = False
    trouble: Trouble = Trouble.EITHER
    counted: bool = False
    floor: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DetectorInput:
    """The part of a feature layout that has a reference.

    Attributes:
        layout: the layout of the vectors that ``take`` understands.
        positions: shape (features,), where each stands in the vector.
        ids, subsystems: of each feature.
        harmless: shape (features,), the way of each feature that means no harm: -1 down, 1 up, 0 neither.
        log, judged, load, counted: shape (features,), see ``Trait``.
        floor: shape (features,), see ``Trait``.
    """

    layout: FeatureLayout
    positions: NDArray[np.intp]
    ids: tuple[FeatureId, ...]
    subsystems: tuple[Subsystem, ...]
    log: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    load: NDArray[np.bool_]
    harmless: NDArray[np.int8]
    counted: NDArray[np.bool_]
    floor: NDArray[np.float64]
    index: dict[FeatureId, int] = field(init=False)
    place: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {feature: index for index, feature in enumerate(self.ids)})
        object.__setattr__(self, "place", {name: index for index, name in enumerate(self.names)})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the features' names, entity included."""
        return tuple(str(feature) for feature in self.ids)

    @cached_property
    def subsystem_index(self) -> NDArray[np.intp]:
        """Return where each feature's subsystem stands among the six, shape (features,)."""
        order = {subsystem: index for index, subsystem in enumerate(Subsystem)}
        return np.array([order[subsystem] for subsystem in self.subsystems], dtype=np.intp)

    @cached_property
    def digest(self) -> str:
        """Return what a saved reference or model must have been made for: the names and their scales, hashed."""
        return sha256(json.dumps([self.names, self.log.tolist()]).encode()).hexdigest()

    def least(self, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least sigma of every feature, shape (features,).

        Args:
            centre: of the features, on the compared scale; NaN where there is none yet.
        """
        size = np.abs(centre)
        one_more = np.log1p(np.exp(-size))  # log1p(x + 1) - log1p(x)
        low = np.where(self.log, np.where(self.counted, one_more, 0.0), RELATIVE_FLOOR * size)
        return np.where(np.isnan(size), self.floor, np.maximum(self.floor, low))

    def take(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the part of a vector's values that has a reference, NaN where absent.

        Infinities, which no extractor should hand over, are absent too.
        """
        taken = values.take(self.positions)
        taken[~np.isfinite(taken)] = np.nan
        return taken

    def forward(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values on the scale on which they are compared: ``sign(x) log1p(|x|)`` where that is asked for."""
        bounded: NDArray[np.float64] = np.minimum(np.maximum(values, -_LARGEST), _LARGEST)
        compared = np.abs(bounded)
        np.log1p(compared, out=compared)
        np.copysign(compared, bounded, out=compared)
        np.copyto(bounded, compared, where=self.log)
        return bounded

    def backward(self, compared: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return compared values in the features' own units: the inverse of ``forward``."""
        size = np.expm1(np.minimum(np.abs(compared), np.log(_LARGEST)))
        return np.where(self.log, np.copysign(size, compared), compared)


def select(layout: FeatureLayout, trait: Callable[[FeatureId], Trait | None]) -> DetectorInput:
    """Return the features of a layout that have a trait, in the layout's order.

    Args:
        trait: what the catalogue says about a feature; None leaves it out.
    """
    chosen = [(position, feature, trait(feature)) for position, feature in enumerate(layout.ids)]
    kept = [(position, feature, found) for position, feature, found in chosen if found is not None]
    traits = [found for _, _, found in kept]
    return DetectorInput(
        layout=layout,
        positions=np.array([position for position, _, _ in kept], dtype=np.intp),
        ids=tuple(feature for _, feature, _ in kept),
        subsystems=tuple(found.subsystem for found in traits),
        log=np.array([found.log for found in traits], dtype=np.bool_),
        judged=np.array([found.judged for found in traits], dtype=np.bool_),
        load=np.array([found.load for found in traits], dtype=np.bool_),
        harmless=np.array([_HARMLESS[found.trouble] for found in traits], dtype=np.int8),
        counted=np.array([found.counted for found in traits], dtype=np.bool_),
        floor=np.array([_floor(found) for found in traits], dtype=np.float64),
    )


def _floor(trait: Trait) -> float:
    if trait.floor is not None:
        return trait.floor
    return LOG_FLOOR if trait.log else LINEAR_FLOOR
