"""Series: one feature over consecutive windows, as the watcher told it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil_tui.drawing.bars import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.entity import Entity
    from unveil.records.match import ClauseResult

MOST = 12  # asked for at a time
_SUBJECT = re.compile(r"(?:feature|slope|ratio) ([a-z0-9_.]+)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """A feature's values, oldest first; absent ones are None.

    Attributes:
        expected, sigma: of the host's own past, None where there is no reference.
    """

    feature: str
    values: tuple[float | None, ...]
    expected: float | None
    sigma: float | None

    def is_far(self, value: float | None) -> bool:
        """Tell whether a value is outside of what is usual."""
        if value is None or self.expected is None or not self.sigma:
            return False
        return abs(value - self.expected) > USUAL * self.sigma


def decode_series(told: Iterable[dict[str, Any]]) -> dict[str, Series]:
    """Return series by the name of their feature; what has no value at all is left out."""
    return {
        each["feature"]: Series(
            feature=each["feature"], values=tuple(each["values"]), expected=each["expected"], sigma=each["sigma"]
        )
        for each in told
        if any(value is not None for value in each["values"])
    }


def candidates(clause: ClauseResult, entity: Entity) -> tuple[str, ...]:
    """Return the features that a clause may be about: of the entity, or of the host."""
    found = _SUBJECT.match(clause.subject)
    if found is None:
        return ()
    return (f"{found[1]}[{entity}]", found[1]) if str(entity) != "host" else (found[1],)


def of_clause(clause: ClauseResult, entity: Entity, known: dict[str, Series]) -> Series | None:
    """Return the series behind a clause, None where there is none."""
    return next((known[name] for name in candidates(clause, entity) if name in known), None)
