"""Whether a plan may be proposed or applied now, with every reason and a cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.situation import cure, permit
from unveil.errors import RefusedError
from unveil.records.remediation import Mode
from unveil.remediation.policy import Intent

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_person_may_and_an_observer_is_told_how_to_become_more(rig: Callable[..., Any]) -> None:
    here = rig()
    plan = here.drawn()
    permit(plan, here.situation(plan), (), intent=Intent.APPLY, person=True, now_s=1000.0)
    here.profile = Mode.OBSERVE
    with pytest.raises(RefusedError, match="some_fix may not be proposed now") as refused:
        permit(plan, here.situation(plan), (), intent=Intent.PROPOSE, person=False, now_s=1000.0)
    assert "--profile manual" in (refused.value.hint or "")


def test_every_reason_is_given_and_an_old_approval_counts_no_longer(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    here.still_matching = None
    with pytest.raises(RefusedError, match=f"{run.id} may not run now: .*unknown; .*approve again") as refused:
        permit(
            run.plan, here.situation(run.plan), (run,), intent=Intent.APPLY, person=True, now_s=2000.0,
            run_id=run.id, approved_s=1000.0,
        )  # fmt: skip
    assert "unveil explain" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("silenced by uid:0 for another 3 min: work", "unveil silence --end"),
        ("the site is frozen until the end of 2027-01-03 (UTC): year end", "profiles.yml"),
        ("run r1 (some_fix, applying) has sysctl:vm.x in hand", "runs list --active"),
        ("whether f still matches is unknown", "unveil explain"),
    ],
)
def test_each_refusal_says_what_can_be_done(said: str, told: str) -> None:
    assert told in cure(Mode.MANUAL, said)
    assert "--profile manual" in cure(Mode.OBSERVE, said)
