"""Verdict: is this window unlike the host's own past, and what did each detector say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The three answers. *Unknown* is neither healthy nor sick: warming up, or nothing to judge by."""

    NORMAL = "normal"
    ANOMALOUS = "anomalous"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One detector on one window.

    Attributes:
        score: higher is stranger. Never NaN or infinite.
        threshold: the score above which this detector votes *anomalous*.
        p_value: share of the host's own recent windows that scored at least as high, in (0, 1]; None before there
            are enough.
    """

    detector: str
    score: float
    threshold: float
    p_value: float | None
    anomalous: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the ensemble says.

    Attributes:
        rule: the combination that decided, e.g. ``zscore|mahalanobis``.
        reason: why the state is unknown; empty otherwise.
        severity: the strangeness of the window on one scale, -log10 of the smallest p-value, smoothed; 0 is ordinary.
    """

    window: int
    state: State
    votes: tuple[Vote, ...] = ()
    rule: str = ""
    severity: float = 0.0
    reason: str = ""
