"""Match and Episode: a fingerprint held against a window, and a run of matching windows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.entity import Entity


class Answer(StrEnum):
    """The three answers of a clause and of a fingerprint (Kleene's logic)."""

    MATCH = "match"
    NO_MATCH = "no_match"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseResult:
    """One clause on one window: what was asked, what was there.

    Attributes:
        subject: ``feature NAME``, ``ratio NAME per NAME``, ``slope NAME over 30s``, ``fact NAME``, ``share SUBSYSTEM``.
        operator: ``lt lte gt gte eq neq in not_in up down``.
        threshold: what it was compared with, as text.
        value: what was there, None where absent.
        reason: why it is unknown.
    """

    name: str
    subject: str
    operator: str
    threshold: str
    value: float | str | None
    answer: Answer
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One fingerprint on one entity in one window.

    Attributes:
        bindings: companions of the entity and values for remediation variables, e.g. ``{"nic": "eth0"}``.
    """

    window: int
    wall_s: float
    fingerprint: str
    entity: Entity
    answer: Answer
    clauses: tuple[ClauseResult, ...]
    bindings: Mapping[str, str]


class EpisodeState(StrEnum):
    """The life of an episode: pending until it held ``for`` long enough, firing, then cleared."""

    PENDING = "pending"
    FIRING = "firing"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A run of matching windows of one fingerprint on one entity.

    Attributes:
        id: ``e`` and 12 hex digits, unique in a journal.
        revision: digest of the fingerprint that opened it; an edit of the fingerprint closes the episode.
        windows: how many windows matched so far.
        last: the newest matching window, the reasons included.
    """

    id: str
    fingerprint: str
    revision: str
    entity: Entity
    state: EpisodeState
    started_s: float
    fired_s: float | None
    last_s: float
    cleared_s: float | None
    windows: int
    last: Match
