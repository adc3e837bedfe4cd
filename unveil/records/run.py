"""Plan and Run: a remediation with all its values filled in, and that plan carried out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.entity import Entity
    from unveil.records.fact import FactValue
    from unveil.records.remediation import VerificationRule


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """One managed setting in a plan: what it is and what it shall become.

    Attributes:
        before: content when the plan was made, None where it could not be read (with *reason*).
        after: wanted content, None when only the playbook knows.
        coupled: saved and restored only, because the kernel moves it along with another.
    """

    address: str
    before: str | None
    after: str | None
    coupled: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done, exactly.

    Attributes:
        variables: values of the playbook's variables, typed and checked.
        untrusted: names of the variables whose text a tenant chose.
        baseline: named features right before, that verification compares with.
        risk: what the remediation's author says of its risk; shown wherever the plan is approved.
        hash: sha256 over everything else that matters; the hash is what is approved and applied.
        grounds: what it was drawn from: the window and a digest of the clauses that held in it.
    """

    remediation: str
    remediation_revision: str
    playbook: str
    fingerprint: str
    episode: str
    entity: Entity
    variables: Mapping[str, FactValue]
    untrusted: tuple[str, ...]
    changes: tuple[SettingChange, ...]
    verification: VerificationRule
    timeout_s: float
    mode: str
    impact: str
    reversible: bool
    rollback_triggers: tuple[str, ...]
    baseline: Mapping[str, float]
    created_s: float
    hash: str
    risk: str = ""
    grounds: str = ""


class RunState(StrEnum):
    """Where a run stands. The table of steps is `unveil/remediation/lifecycle.py`."""

    PLANNED = "planned"
    APPROVED = "approved"
    APPLYING = "applying"
    VERIFYING = "verifying"
    ROLLING_BACK = "rolling_back"
    # terminal
    KEPT = "kept"
    NO_CHANGE = "no_change"
    ROLLED_BACK = "rolled_back"
    FAILED_CLEAN = "failed_clean"
    FAILED_DIRTY = "failed_dirty"
    REVERTED_BY_OTHER = "reverted_by_other"
    INCONCLUSIVE = "inconclusive"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step in the life of a run, journalled before it is taken.

    Attributes:
        cause: what led to it, e.g. ``operator``, ``verification failed``, ``watcher restarted``.
        actor: who asked: ``uid:0``, ``watcher``.
        evidence: digests of what the step stands on (grounds, plan, values saved and written); chained with it.
    """

    at_s: float
    state: RunState
    cause: str
    actor: str
    detail: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A plan carried out.

    Attributes:
        id: ``r`` and 12 hex digits.
        steps: history, oldest first; the last one's state is the run's state.
        saved: address → content of every managed setting right before apply (the snapshot).
        written: address → content right after apply: what compare-and-swap expects to find.
    """

    id: str
    plan: Plan
    steps: tuple[Step, ...]
    saved: Mapping[str, str]
    written: Mapping[str, str]

    @property
    def state(self) -> RunState:
        """Return where the run stands."""
        return self.steps[-1].state
