"""Events of a run are plain JSON, each with a message to show."""

from __future__ import annotations

import json

from unveil.engine.run_events import checked, measured, reported, restored
from unveil.execution.request import Difference, RunEvent, RunResult, Status
from unveil.execution.settings import Outcome, Restored
from unveil.remediation.verification import Measured


def test_each_kind_of_event_is_json_with_a_message() -> None:
    difference = Difference(name="x", before="1", after="2")
    result = RunResult(
        status=Status.SUCCESSFUL, check=True, rc=0, changed=2, survivors=0, duration_s=1.0, differences=(difference,)
    )
    events = [
        reported(RunEvent(counter=3, kind="runner_on_ok", task="t", message="m")),
        checked(result),
        measured(Measured(feature="f", demand="improve", before=0.0, after=None, change=None, holds=None)),
        restored(Restored(address="sysctl:x", outcome=Outcome.LEFT_ALONE, reason="theirs")),
    ]
    assert json.loads(json.dumps(events)) == events
    assert [event["event"] for event in events] == ["runner_on_ok", "check_finished", "measured", "restore"]
    assert [event["message"] for event in events] == [
        "m",
        "2 tasks would change something",
        "f: 0 before, absent after; improve: cannot be told",
        "sysctl:x left_alone: theirs",
    ]


def test_a_dry_run_that_failed_says_why() -> None:
    failed = RunResult(
        status=Status.FAILED, check=True, rc=2, changed=0, survivors=0, duration_s=1.0, message="no such module"
    )
    assert (checked(failed)["ok"], checked(failed)["message"]) == (False, "no such module")
