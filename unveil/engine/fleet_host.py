"""FleetStep: the steps of a fleet's runs, each in the journal before it is taken."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.remediation.lifecycle import advance

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Run, RunState
    from unveil.remediation.lifecycle import Cause
    from unveil.store.journal import Journal


@dataclass(slots=True)
class FleetStep:
    """Steps of the runs of one fleet.

    Attributes:
        runs: host → its run, brought up to date with every step.
        tell: called with a host and its run after each.
    """

    runs: dict[str, Run]
    journal: Journal
    actor: str
    tell: Callable[[str, Run], None]

    def step(self, host: str, state: RunState, cause: Cause, detail: str = "") -> Run:
        """Journal a step of a host's run, then let it hold."""
        run = advance(self.runs[host], state, cause, self.actor, time.time(), detail=detail)
        self.journal.put_run(run)
        self.runs[host] = run
        self.tell(host, run)
        return run
