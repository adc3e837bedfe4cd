from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.fleet_host import FleetStep
from unveil.errors import RefusedError
from unveil.records.run import RunState
from unveil.remediation.lifecycle import Cause

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_step_is_in_the_journal_when_it_is_told_and_the_table_holds(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    told = []
    steps = FleetStep(
        {"h1": run}, here.journal, actor="uid:0", tell=lambda host, run: told.append((host, here.stored(run).state))
    )
    steps.step("h1", RunState.APPROVED, Cause.OPERATOR)
    assert told == [("h1", RunState.APPROVED)]
    with pytest.raises(RefusedError, match="cannot go"):
        steps.step("h1", RunState.KEPT, Cause.VERIFIED)
