"""What settings read before and after, and the step that follows from it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.run_settings import after_playbook, after_restore, save_before
from unveil.errors import RefusedError
from unveil.execution.settings import Outcome, Restored
from unveil.records.run import RunState
from unveil.remediation.lifecycle import Cause

if TYPE_CHECKING:
    from collections.abc import Callable


def test_what_was_there_is_on_the_disk_before_anything_happens(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    directory = here.supervisor.directory_of(run.id)
    saved = save_before(run, directory, here.settings.peek, at_s=5.0)
    assert saved.saved == {here.address: "always [madvise] never", here.ratio: "20"}
    assert json.loads((directory / "snapshot.json").read_text())["saved"] == saved.saved
    with pytest.raises(RefusedError, match="could not be put back"):
        save_before(run, directory, lambda _address: None, at_s=5.0)


def test_each_setting_is_read_once_for_all_questions(rig: Callable[..., Any]) -> None:
    here = rig()
    run = save_before(here.approved(), here.supervisor.directory_of("r000000000001"), here.settings.peek, at_s=5.0)
    asked: list[str] = []

    def read(address: str) -> str | None:
        asked.append(address)
        return {here.address: "[always] madvise never", here.ratio: "30"}[address]

    after, state, cause, _ = after_playbook(run, Cause.APPLIED, read, changed=None, canceled=False, detail="")
    assert sorted(asked) == sorted([here.address, here.ratio])
    assert (state, cause) == (RunState.VERIFYING, Cause.APPLIED)
    assert after.written == {here.address: "[always] madvise never", here.ratio: "30"}


@pytest.mark.parametrize(
    ("ended", "canceled", "reads", "expected"),
    [
        (Cause.APPLIED, False, ("always [madvise] never", "20"), (RunState.FAILED_CLEAN, Cause.APPLY_FAILED)),
        (Cause.APPLIED, False, ("[always] madvise never", "20"), (RunState.ROLLING_BACK, Cause.APPLY_FAILED)),
        (Cause.APPLIED, True, ("[always] madvise never", "30"), (RunState.ROLLING_BACK, Cause.CANCELED)),
        (Cause.APPLIED, True, ("always [madvise] never", "20"), (RunState.CANCELED, Cause.CANCELED)),
        (Cause.LOST, False, ("always [madvise] never", "20"), (RunState.FAILED_CLEAN, Cause.LOST)),
        (Cause.TIMEOUT, False, ("[always] madvise never", "20"), (RunState.ROLLING_BACK, Cause.TIMEOUT)),
        (Cause.LOST, False, (None, "20"), (RunState.ROLLING_BACK, Cause.LOST)),
    ],
)
def test_the_step_follows_from_what_the_settings_read(
    rig: Callable[..., Any], ended: Cause, canceled: bool, reads: tuple[str, str], expected: tuple[RunState, Cause]
) -> None:
    here = rig()
    run = save_before(here.approved(), here.supervisor.directory_of("r000000000001"), here.settings.peek, at_s=5.0)
    contents = dict(zip((here.address, here.ratio), reads, strict=True))
    _, state, cause, _ = after_playbook(run, ended, contents.get, changed=None, canceled=canceled, detail="")
    assert (state, cause) == expected


def test_a_rollback_ends_by_what_could_not_be_put_back(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.stepped(here.stepped(here.approved(), "applying", "started"), "rolling_back", "timeout")
    good = Restored(address="a", outcome=Outcome.RESTORED)
    foreign = Restored(address="b", outcome=Outcome.LEFT_ALONE, reason="theirs", foreign=True)
    bad = Restored(address="c", outcome=Outcome.FAILED, reason="read-only")
    assert after_restore(run, (good,))[::2] == (RunState.FAILED_CLEAN, "1 settings read as before")
    assert after_restore(run, (good, foreign))[::2] == (RunState.REVERTED_BY_OTHER, "b: theirs")
    assert after_restore(run, (good, foreign, bad))[::2] == (RunState.FAILED_DIRTY, "c: read-only")
