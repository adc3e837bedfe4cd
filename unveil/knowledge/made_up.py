"""What the cases beside fingerprints and correlations have in common: made-up entities, a made-up time, a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.match import ClauseResult

# Made-up entities, one for each kind, that pass the patterns remediations give their variables.
MADE_UP: Mapping[EntityKind, Entity] = {
    EntityKind.HOST: HOST,
    EntityKind.CPU: Entity(EntityKind.CPU, "0"),
    EntityKind.NODE: Entity(EntityKind.NODE, "0"),
    EntityKind.GPU: Entity(EntityKind.GPU, "GPU-00000000-0000-4000-8000-000000000000"),
    EntityKind.NIC: Entity(EntityKind.NIC, "eth0"),
    EntityKind.DISK: Entity(EntityKind.DISK, "sda"),
    EntityKind.IRQ: Entity(EntityKind.IRQ, "24"),
    EntityKind.CGROUP: Entity(EntityKind.CGROUP, "/test"),
}
EPOCH_S = 1_000_000.0  # any time will do, as long as it is the same in every run


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case.

    Attributes:
        fingerprint: name of it, or of the correlation.
        got: the answer at that time, in the words of ``expect``.
        failures: what was not as expected, one sentence each; empty when it passed.
        clauses: every clause in the last window, what was asked and what was there.
        planned: the fix that the case plans, empty when it plans none.
        recording: that it was held against, empty when everything was made up.
    """

    fingerprint: str
    name: str
    file: str
    line: int
    expected: str
    got: str
    failures: tuple[str, ...] = ()
    clauses: tuple[ClauseResult, ...] = ()
    planned: str = ""
    recording: str = ""

    @property
    def passed(self) -> bool:
        """Return whether everything was as expected."""
        return not self.failures
