"""What a run's managed settings read before its playbook, after it and after a rollback, and which step follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.errors import UnwritableError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome
from unveil.remediation.lifecycle import Cause, after_apply, after_rollback

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.execution.settings import Restored
    from unveil.records.run import Run, RunState


def save_before(run: Run, directory: Path, read: Callable[[str], str | None], *, at_s: float) -> Run:
    """Return a run with what its settings read, which is on the disk beside the run, too.

    Raises:
        RefusedError: one that is to be changed cannot be read.
        UnwritableError: they cannot be saved.
    """
    saved = snapshot.take(run.plan, read)
    try:
        snapshot.save(directory, snapshot.Snapshot(run=run.id, plan_hash=run.plan.hash, at_s=at_s, saved=saved))
    except OSError as error:
        raise UnwritableError(
            f"the settings cannot be saved beside {run.id} ({error.strerror}); nothing was changed",
            hint="make room in the state directory",
        ) from error
    return replace(run, saved=saved)


def after_playbook(
    run: Run,
    ended: Cause,
    read: Callable[[str], str | None],
    *,
    changed: bool | None,
    canceled: bool,
    detail: str,
) -> tuple[Run, RunState, Cause, str]:
    """Return the run with what it wrote, and the step that follows: (run, state, cause, detail).

    Args:
        read: asked once for each setting, so that all answers are of one moment.
        changed: whether the playbook changed something; None leaves that to the settings.
        canceled: a person asked for its end; one that was through before it heard is undone all the same.
    """
    contents = {change.address: read(change.address) for change in run.plan.changes}
    if changed is None:
        changed = bool(snapshot.changed(run.saved, contents.get))
    if ended is Cause.APPLIED and canceled:
        ended, detail = Cause.CANCELED, "the playbook was through when it was asked to stop"
    if ended is Cause.APPLIED and (missed := snapshot.missed(run.plan, contents.get)):
        ended, detail = Cause.APPLY_FAILED, f"the playbook succeeded, but {', '.join(missed)} did not change"
    state, cause = after_apply(run.plan, ended, changed=changed)
    return replace(run, written=snapshot.written(run.plan, run.saved, contents.get)), state, cause, detail


def after_restore(run: Run, answers: tuple[Restored, ...]) -> tuple[RunState, Cause, str]:
    """Return the step that follows a rollback: (state, cause, detail)."""
    failed = [each for each in answers if each.outcome is Outcome.FAILED]
    foreign = [each for each in answers if each.foreign]
    state, cause = after_rollback(run, foreign=len(foreign), failed=len(failed))
    told = "; ".join(f"{each.address}: {each.reason}" for each in failed or foreign)
    return state, cause, told or f"{len(answers)} settings read as before"
