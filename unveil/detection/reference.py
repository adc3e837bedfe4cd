"""Reference: what this host's own recent past makes expected of each feature, and how far it usually strays.

There is no healthy baseline and no label. A feature's *centre* is its median over the newest ordinary windows; its
*sigma* is the robust spread of the distances that past windows had from the centre of their own time, never below a
floor. Windows that are anomalous or belong to an episode are not learned, so that a fault does not become the norm
while it lasts; but they are kept aside, and when they outlast the patience they *are* the norm: the workload changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.history import Ring, ThinnedRing, realign
from unveil.detection.spread import MIN_VALUES, median, spread, standardise
from unveil.detection.trend import Trend, trends
from unveil.errors import BadInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays
    from unveil.detection.detector_input import DetectorInput
    from unveil.records.feature import FeatureId

FORMAT = 2  # of what ``state`` returns
_ROWS = ("values", "near", "far", "aside", "trends", "far_trends")  # of it, those with one row a window
_TREND_EVERY = 3  # windows of which one trend is kept: those between differ little


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSettings:
    """How much past makes a reference. Counts are windows, one a second at the default stride.

    Attributes:
        warm_up: windows that are learned unseen before anything is judged.
        kept: windows kept one by one, and as many again thinned.
        thinning: of the older windows one in so many is kept.
        centre_over: the newest windows whose median is the centre.
        patience: windows that may be refused, on balance, before they are taken for the new norm.
        episode_weight: what a window within an episode counts for that patience. Less than one, because a fault that
            has a name should not become the norm as fast as a change that nobody can name.
    """

    warm_up: int = 60
    kept: int = 900
    thinning: int = 8
    centre_over: int = 600
    patience: int = 1800
    episode_weight: float = 0.125

    def __post_init__(self) -> None:
        if self.warm_up < MIN_VALUES:
            raise BadInputError(
                f"a warm-up of {self.warm_up} windows is too short", hint=f"use at least {MIN_VALUES} windows"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the reference expects of a feature, in the feature's own unit."""

    centre: float
    sigma: float


class Reference:
    """The rolling reference of one host. Absent features contribute nothing, here and to every detector."""

    def __init__(self, scope: DetectorInput, settings: ReferenceSettings | None = None) -> None:
        self.scope = scope
        self.settings = settings or ReferenceSettings()
        width = len(scope.ids)
        self.centre = np.full(width, np.nan)
        self.scale = np.full(width, np.nan)
        self.revision = 0  # grows with every refresh
        self.regime = 0  # grows when a norm begins: what was trained before is stale
        centred = max(self.settings.centre_over, self.settings.warm_up)
        self._values = Ring(centred, width)
        self._residuals = ThinnedRing(self.settings.kept, width, thinning=self.settings.thinning)
        self._aside = Ring(centred, width)
        self._aside.clear()  # on most hosts it stays empty, and its megabyte is not taken
        self._trend = Trend(scope.log)
        self._trends = ThinnedRing(
            max(self.settings.kept // _TREND_EVERY, self.settings.warm_up), width, thinning=self.settings.thinning
        )
        self._learned = 0
        self._refused = 0.0
        self._since_refresh = 0
        self._expectations = self._in_own_units()

    # What it says

    @property
    def ready(self) -> bool:
        """Return whether enough was learned to judge by."""
        return self.regime > 0

    @property
    def windows(self) -> int:
        """Return how many windows it stands on."""
        return len(self._residuals) if self.ready else len(self._values)

    def residual(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances from the centre on the compared scale, NaN where value or centre is absent.

        Args:
            values: shape (features,), as ``DetectorInput.take`` returns them.
        """
        distances: NDArray[np.float64] = self.scope.forward(values) - self.centre
        return distances

    def sigmas(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return signed distances in sigmas, shape (features,), within ±40; 0 where absent."""
        return standardise(self.residual(values), self.scale)

    def follow(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take a window into the trend of all features and return that: distances from the centre, NaN where absent.

        Args:
            residual: of the window; each window once, in order.
        """
        return self._trend.follow(residual, self.scale)

    def trends(self) -> NDArray[np.float32]:
        """Return trends that past windows had, oldest first."""
        return self._trends.rows().astype(np.float32)

    def calm(self) -> None:
        """Let the trend begin at the centre again."""
        self._trend.calm()

    def expectations(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return centre and sigma of every feature in its own unit, NaN where there is no reference.

        On a log scale one sigma up is longer than one down; the sigma given is their mean, ``(1 + |c|) sinh(s)``.
        """
        return self._expectations

    def expected(self, feature: FeatureId) -> Expected | None:
        """Return what is expected of one feature, or None where it has no reference (yet)."""
        position = self.scope.index.get(feature)
        if position is None or np.isnan(self.scale[position]):
            return None
        centre, sigma = self._expectations
        return Expected(centre=float(centre[position]), sigma=float(sigma[position]))

    def residuals(self, newest: int | None = None) -> NDArray[np.float32]:
        """Return the distances that past windows had from the centre of their time, oldest first."""
        rows = self._residuals.rows() if newest is None else self._residuals.near()[-newest:]
        return rows.astype(np.float32)

    # What it learns

    def learn(self, values: NDArray[np.float64], trend: NDArray[np.float64] | None = None) -> None:
        """Take in an ordinary window (or any window during warm-up).

        Args:
            trend: what ``follow`` returned for it.
        """
        compared = self.scope.forward(values)
        self._values.push(compared)
        if not self.ready:
            if len(self._values) >= self.settings.warm_up:
                self._begin(self._values.newest())
            return
        self._residuals.push(compared - self.centre)
        self._learned += 1
        if trend is not None and self._learned % _TREND_EVERY == 0:
            self._trends.push(trend)
        self._refused = max(0.0, self._refused - 1.0)
        if self._refused == 0.0 and len(self._aside):
            self._aside.clear()
        self._since_refresh += 1
        if self._since_refresh >= min(max(self.windows // 10, 5), 60):
            self._refresh()

    def refuse(self, values: NDArray[np.float64], *, episode: bool = False) -> None:
        """Set a window aside that is anomalous or belongs to an episode; adopt all of those when they outlast patience.

        During warm-up there is nothing to judge by, and the window is learned like any other.
        """
        if not self.ready:
            self.learn(values)
            return
        self._aside.push(self.scope.forward(values))
        self._refused += self.settings.episode_weight if episode else 1.0
        if self._refused >= self.settings.patience and len(self._aside) >= self.settings.warm_up:
            self._values.refill(self._aside.newest())
            self._aside.clear()
            self._refused = 0.0
            self._begin(self._values.newest())

    def realign(self, scope: DetectorInput) -> None:
        """Go over to another layout: features that stay keep their past, new ones begin without."""
        source = _source(self.scope.names, self.scope.log, scope)
        self.centre = realign(self.centre, source)
        self.scale = realign(self.scale, source)
        self._values = self._values.realigned(source)
        self._residuals = self._residuals.realigned(source)
        self._aside = self._aside.realigned(source)
        self._trend = self._trend.realigned(source, scope.log)
        self._trends = self._trends.realigned(source)
        self.scope = scope
        self.revision += 1
        self._expectations = self._in_own_units()

    def _in_own_units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        centre = self.scope.backward(self.centre)
        sigma = np.where(self.scope.log, (1 + np.abs(centre)) * np.sinh(np.minimum(self.scale, 60.0)), self.scale)
        return centre, sigma

    def _begin(self, values: NDArray[np.float32]) -> None:
        self._residuals.refill(values - median(values))
        self.regime += 1
        self._refresh()
        self._trends.refill(trends(self._residuals.near()[-len(values) :], self.scale, self.scope.log))
        self._trend.calm()

    def _refresh(self) -> None:
        values = self._values.newest()
        self.centre = median(values[-self.settings.centre_over :])
        spreads = spread(self._residuals.rows())
        young = np.isnan(spreads) & ~np.isnan(self.centre)  # appeared lately: its values are there, residuals are not
        if young.any():
            spreads[young] = spread(values[:, young] - self.centre[young])
        self.scale = np.maximum(spreads, self.scope.least(self.centre))
        self.revision += 1
        self._since_refresh = 0
        self._expectations = self._in_own_units()

    # What outlives the process

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything as plain arrays (no objects, nothing pickled)."""
        return {
            "format": np.array(FORMAT),
            "names": as_bytes(self.scope.names),
            "log": self.scope.log,
            "counters": np.array([self.revision, self.regime, self._since_refresh, self._refused]),
            "centre": self.centre,
            "scale": self.scale,
            "values": self._values.newest(),
            "near": self._residuals.near(),
            "far": self._residuals.far(),
            "aside": self._aside.newest(),
            "trends": self._trends.near(),
            "far_trends": self._trends.far(),
        }

    @classmethod
    def from_state(cls, state: Arrays, scope: DetectorInput, settings: ReferenceSettings | None = None) -> Reference:
        """Return the reference that ``state`` described, realigned to a scope.

        Raises:
            BadInputError: another format, or arrays that do not fit together.
        """
        try:
            if int(state["format"]) != FORMAT:
                raise BadInputError(
                    f"reference has format {int(state['format'])}, this version reads {FORMAT}",
                    hint="it is learned anew; nothing is to be done",
                )
            source = _source(from_bytes(state["names"]), np.asarray(state["log"], dtype=np.bool_), scope)
            reference = cls(scope, settings)
            counters = np.asarray(state["counters"], dtype=np.float64)
            rows = {name: np.asarray(state[name], dtype=np.float32) for name in _ROWS}
            reference.revision, reference.regime = int(counters[0]), int(counters[1])
            reference._since_refresh, reference._refused = int(counters[2]), float(counters[3])
            reference.centre = realign(np.asarray(state["centre"], dtype=np.float64), source)
            reference.scale = realign(np.asarray(state["scale"], dtype=np.float64), source)
            reference._expectations = reference._in_own_units()
            reference._values.refill(realign(rows["values"], source))
            reference._residuals.refill(realign(rows["near"], source), realign(rows["far"], source))
            reference._aside.refill(realign(rows["aside"], source))
            reference._trends.refill(realign(rows["trends"], source), realign(rows["far_trends"], source))
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise BadInputError(f"reference is damaged: {error}", hint="it is learned anew") from error
        return reference


def as_bytes(names: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return names as an array of bytes: they hold tenants' text, which a fixed-width string array would cut."""
    return np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)


def from_bytes(array: NDArray[np.generic]) -> tuple[str, ...]:
    """Return the names that ``as_bytes`` wrote.

    Raises:
        ValueError: the bytes are no list of names.
    """
    names = json.loads(np.asarray(array, dtype=np.uint8).tobytes())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("names are no list of texts")
    return tuple(names)


def _source(names: tuple[str, ...], log: NDArray[np.bool_], scope: DetectorInput) -> NDArray[np.intp]:
    """Return for each feature of a scope where it stood before; -1 where it is new or was compared otherwise."""
    before = {name: index for index, name in enumerate(names)}
    found = [before.get(name, -1) for name in scope.names]
    same = [at if at >= 0 and log[at] == wanted else -1 for at, wanted in zip(found, scope.log, strict=True)]
    return np.array(same, dtype=np.intp)
