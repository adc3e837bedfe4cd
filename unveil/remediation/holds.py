"""Holds: what a person changed by hand after we did, automation leaves alone until a person lets it go.

A run that was kept left a value, one that was undone put another back. When the setting reads neither any more, someone
has decided otherwise since, and to write it again would be to fight them. A person's own order is never held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.reset import ResetKind
from unveil.records.run import RunState
from unveil.remediation.lifecycle import TERMINAL
from unveil.remediation.setting import equal
from unveil.remediation.setting_kinds import lock_of, observed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from unveil.records.reset import Reset
    from unveil.records.run import Plan, Run

_LEFT = frozenset({RunState.KEPT, RunState.INCONCLUSIVE})  # our value stands
_PUT_BACK = frozenset({RunState.ROLLED_BACK, RunState.FAILED_CLEAN, RunState.CANCELED})


def held(plan: Plan, runs: Sequence[Run], resets: Iterable[Reset]) -> list[str]:
    """Return why automation must leave settings of a plan alone.

    Args:
        runs: of this host, oldest first.
        resets: what people let go.
    """
    let_go = {each.subject: each.at_s for each in resets if each.kind is ResetKind.HOLD}
    reasons = []
    for change in plan.changes:
        if change.coupled or change.before is None or observed(change.address):
            continue
        last = next((run for run in reversed(runs) if run.state in TERMINAL and _acted(run, change.address)), None)
        if last is None or last.steps[-1].at_s < let_go.get(change.address, float("-inf")):
            continue
        if last.state is RunState.REVERTED_BY_OTHER or not _as_left(last, change.address, change.before):
            reasons.append(
                f"someone changed {change.address} by hand after run {last.id}: "
                f"`unveil runs release '{change.address}' --reason …` lets it go"
            )
    return reasons


def _acted(run: Run, address: str) -> bool:
    return any(lock_of(each) == lock_of(address) for each in run.written)


def _as_left(run: Run, address: str, now: str) -> bool:
    expected = run.written if run.state in _LEFT else run.saved if run.state in _PUT_BACK else None
    if expected is None or address not in expected:
        return True  # it ended in a way that a person has to look at anyway
    return equal(address, now, expected[address])
