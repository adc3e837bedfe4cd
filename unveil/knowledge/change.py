"""Change: one thing that differs between two knowledge bases, and which way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Effect(StrEnum):
    """Which way a change goes. In the order in which a reviewer should look."""

    RISK = "risk"  # more may be done to a host than before, or with less care
    LOOSENED = "loosened"  # matches more, or bounds less
    TIGHTENED = "tightened"  # matches less, or bounds more
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"  # neither more nor less, or both
    TEXT = "text"  # nothing that is evaluated or done


Told = tuple[Effect, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference.

    Attributes:
        kind: what it is about: fingerprint, tests, remediation, module, filter, value, profiles, role.
        name: of that.
        what: the difference in words, before and after.
    """

    kind: str
    name: str
    effect: Effect
    what: str


def opposite(effect: Effect) -> Effect:
    """Return the effect of a change under *not*."""
    return {Effect.LOOSENED: Effect.TIGHTENED, Effect.TIGHTENED: Effect.LOOSENED}.get(effect, effect)


def bound(what: str, old: float, new: float, *, more: Effect, unit: str = "") -> Iterator[Told]:
    """Yield how a number changed; *more* is the effect of a larger one."""
    if old != new:
        before, after = (f"{each:g}{unit}" if math.isfinite(each) else "unbounded" for each in (old, new))
        yield more if new > old else opposite(more), f"{what} {before} → {after}"


def listed(what: str, old: tuple[str, ...], new: tuple[str, ...], *, gone: Effect, came: Effect) -> Iterator[Told]:
    """Yield which entries of a list came and went."""
    for entry in old:
        if entry not in new:
            yield gone, f"{what} {entry} is gone"
    for entry in new:
        if entry not in old:
            yield came, f"{what} {entry} is new"
    if old != new and sorted(old) == sorted(new):
        yield Effect.CHANGED, f"{what}: another order, {', '.join(new)}"
