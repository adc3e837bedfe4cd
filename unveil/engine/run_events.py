"""What happens during a run as events of the journal: plain JSON objects, each with a `message` to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.execution.request import Status
from unveil.records.codec import encode

if TYPE_CHECKING:
    from unveil.execution.request import RunEvent, RunResult
    from unveil.execution.settings import Restored
    from unveil.remediation.verification import Measured

Event = dict[str, Any]


def reported(event: RunEvent) -> Event:
    """Return what the playbook reported."""
    value: Event = encode(event)
    return {"event": value.pop("kind"), **value}


def checked(result: RunResult) -> Event:
    """Return how a dry run ended."""
    return {
        "event": "check_finished",
        "status": str(result.status),
        "ok": result.status is Status.SUCCESSFUL,
        "message": result.message or f"{result.changed} tasks would change something",
        "differences": encode(result.differences),
    }


def measured(feature: Measured) -> Event:
    """Return one feature before and after."""
    held = {True: "holds", False: "does not hold", None: "cannot be told"}[feature.holds]
    before, after = ("absent" if value is None else f"{value:.4g}" for value in (feature.before, feature.after))
    return {
        "event": "measured",
        **encode(feature),
        "message": f"{feature.feature}: {before} before, {after} after; {feature.demand}: {held}",
    }


def restored(setting: Restored) -> Event:
    """Return what became of one setting in a rollback."""
    reason = f": {setting.reason}" if setting.reason else ""
    return {"event": "restore", **encode(setting), "message": f"{setting.address} {setting.outcome}{reason}"}
