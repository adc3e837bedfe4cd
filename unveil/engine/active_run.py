"""ActiveRun: a run that has the host in hand, and what is known of it between two looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.execution.supervisor import ChildRun
    from unveil.records.run import Run, RunState
    from unveil.remediation.lifecycle import Cause
    from unveil.remediation.verification import Verifier


@dataclass(slots=True)
class ActiveRun:
    """One of them.

    Attributes:
        canceled_by: who asked for its end while its playbook ran.
        ending: the step that follows from a rollback, once it is in the journal.
    """

    run: Run
    child: ChildRun | None = None
    verifier: Verifier | None = None
    canceled_by: str = ""
    ending: tuple[RunState, Cause, str, str] | None = None
