"""ActiveRun: a run that has the host in hand, and what is known of it between two looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.execution.supervisor import ChildRun
    from unveil.records.run import Run
    from unveil.remediation.verification import Verifier


@dataclass(slots=True)
class ActiveRun:
    """One of them.

    Attributes:
        canceled_by: who asked for its end while its playbook ran.
    """

    run: Run
    child: ChildRun | None = None
    verifier: Verifier | None = None
    canceled_by: str = ""
