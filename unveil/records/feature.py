"""FeatureId and FeatureVector: one number per feature and entity for one window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, order=True)
class FeatureId:
    """A feature of one entity: ``network.rx_bytes.rate`` of ``nic:eth0``."""

    name: str
    entity: Entity = HOST

    def __str__(self) -> str:
        return self.name if self.entity == HOST else f"{self.name}[{self.entity}]"


@dataclass(frozen=True, eq=False)
class FeatureLayout:
    """Which feature stands where. Shared by all vectors between two changes of the host's shape."""

    ids: tuple[FeatureId, ...]

    @cached_property
    def position(self) -> dict[FeatureId, int]:
        """Return the position of each feature."""
        return {feature: index for index, feature in enumerate(self.ids)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FeatureVector:
    """The features of one window.

    Attributes:
        window: index of the window.
        wall_s: wall clock at its end.
        layout: names of the values.
        values: shape (features,), NaN where the feature is absent. Never infinite.
    """

    window: int
    wall_s: float
    layout: FeatureLayout
    values: NDArray[np.float64]

    def get(self, name: str, entity: Entity = HOST) -> float | None:
        """Return the value of a feature, or None where it is absent."""
        index = self.layout.position.get(FeatureId(name, entity))
        if index is None:
            return None
        value = float(self.values[index])
        return None if math.isnan(value) else value
