from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.records.remediation import Improvement
from unveil.records.run import RunState
from unveil.remediation.lifecycle import STEPS, Cause
from unveil.remediation.verification import Outcome, Verifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.feature import FeatureVector
    from unveil.records.run import Plan

WRITTEN = {"irq:24/smp_affinity_list": "4-7"}
BETTER = {"network.irq_remote_share.rate": 0.05, "cpu.idle.rate": 0.6}


STEP = "cpu.progress_rate.last"


@pytest.fixture
def watch(
    drawn: Callable[..., Plan], vector: Callable[..., FeatureVector]
) -> Callable[..., tuple[Outcome | None, float]]:
    """Push a window a second until there is an outcome; keywords are constants or functions of the second."""

    def watch(*, seconds: int = 60, triggers: tuple[str, ...] = ("verify_failed",), **given: Any) -> tuple[Any, float]:
        given = {"values": BETTER, "matching": False, "settings": WRITTEN, **given}
        verifier = Verifier(drawn(rollback_triggers=triggers), 1000.0, written=WRITTEN)
        for second in range(1, seconds + 1):
            values, matching, settings = (
                each(second) if callable(each) else each
                for each in (given["values"], given["matching"], given["settings"])
            )
            window = None if values is None else vector(values, wall_s=1000.0 + second)
            outcome = verifier.push(window, matching, settings, 1000.0 + second)
            if outcome is not None:
                assert outcome.cause in STEPS[RunState.VERIFYING][outcome.state], "the lifecycle has that step"
                return outcome, second
        return None, seconds

    return watch


def test_a_fix_that_helps_is_kept_soon(watch: Callable[..., Any]) -> None:
    outcome, second = watch()
    assert outcome.state is RunState.KEPT
    assert second == 8, "three seconds until windows hold nothing from before, five of clear ones"
    assert [each.holds for each in outcome.measured] == [True, True]
    assert outcome.measured[0].before == 0.8
    assert outcome.measured[0].change == pytest.approx(-0.9375)


def test_windows_that_still_hold_the_time_before_do_not_count(watch: Callable[..., Any]) -> None:
    outcome, _ = watch(values=lambda second: {**BETTER, "cpu.idle.rate": 0.0 if second < 3 else 0.6})
    assert outcome.state is RunState.KEPT


def test_a_fingerprint_that_still_matches_fails_it(watch: Callable[..., Any]) -> None:
    outcome, second = watch(matching=True)
    assert (outcome.state, outcome.cause, second) == (RunState.ROLLING_BACK, Cause.NOT_VERIFIED, 45)
    assert "still matches nic:eth0" in outcome.detail
    outcome, _ = watch(matching=True, triggers=())
    assert (outcome.state, outcome.cause) == (RunState.FAILED_DIRTY, Cause.NO_ROLLBACK)


def test_an_effect_that_is_missing_fails_it_and_is_named(watch: Callable[..., Any]) -> None:
    outcome, _ = watch(values={**BETTER, "network.irq_remote_share.rate": 0.7})
    assert (outcome.state, outcome.cause) == (RunState.ROLLING_BACK, Cause.NOT_VERIFIED)
    assert "network.irq_remote_share.rate" in outcome.detail
    assert "cpu.idle.rate" not in outcome.detail


def test_something_that_gets_worse_ends_it_early_and_a_single_dip_does_not(watch: Callable[..., Any]) -> None:
    outcome, second = watch(values={**BETTER, "cpu.idle.rate": 0.1})
    assert (outcome.state, outcome.cause, second) == (RunState.ROLLING_BACK, Cause.WORSENED, 5)
    assert "cpu.idle.rate" in outcome.detail
    outcome, _ = watch(values=lambda second: {**BETTER, "cpu.idle.rate": 0.2 if second == 5 else 0.6})
    assert outcome.state is RunState.KEPT


def test_a_setting_that_someone_else_changed_is_told_at_once(watch: Callable[..., Any]) -> None:
    outcome, second = watch(settings=lambda second: {"irq:24/smp_affinity_list": "0-3" if second == 6 else "4,5,6,7\n"})
    assert (outcome.state, second) == (RunState.REVERTED_BY_OTHER, 6)
    assert "reads '0-3', we wrote '4-7'" in outcome.detail


def test_what_cannot_be_measured_is_inconclusive_and_not_a_success(watch: Callable[..., Any]) -> None:
    outcome, second = watch(values={**BETTER, "network.irq_remote_share.rate": None})
    assert (outcome.state, second) == (RunState.INCONCLUSIVE, 45)
    assert "network.irq_remote_share.rate is absent" in outcome.detail
    outcome, _ = watch(matching=None)
    assert outcome.state is RunState.INCONCLUSIVE
    outcome, _ = watch(settings={"irq:24/smp_affinity_list": None})
    assert "settings could not be read" in outcome.detail
    outcome, _ = watch(values=None)
    assert outcome.state is RunState.INCONCLUSIVE, "no window at all"


def test_clearing_must_last(watch: Callable[..., Any]) -> None:
    outcome, second = watch(matching=lambda second: second % 4 == 0)
    assert outcome.state in (RunState.INCONCLUSIVE, RunState.ROLLING_BACK)
    assert second == 45
    outcome, second = watch(matching=lambda second: None if second < 20 else False)
    assert (outcome.state, second) == (RunState.KEPT, 25)


def test_a_value_before_of_zero_is_compared_by_the_plain_difference(
    drawn: Callable[..., Plan], vector: Callable[..., FeatureVector]
) -> None:
    baseline = {"network.irq_remote_share.rate[nic:eth0]": 0.0, "cpu.idle.rate": 0.0}
    verifier = Verifier(drawn(), 0.0, written={}, baseline=baseline)
    verifier.push(vector({"network.irq_remote_share.rate": 0.25, "cpu.idle.rate": 0.0}), False, {}, 4.0)
    assert [each.change for each in verifier.measured()] == [0.25, 0.0]


@pytest.fixture
def slow_effect(drawn: Callable[..., Plan], vector: Callable[..., FeatureVector]) -> Callable[..., tuple[Any, int]]:
    """Verify a fix whose rule also asks for steps at least two per cent faster, from the 20th second on."""

    def verify(before: float | None, steps: Callable[[int], float | None]) -> tuple[Any, int]:
        plan = drawn(rollback_triggers=("verify_failed",))
        faster = Improvement(feature=STEP, direction="up", effect=0.02, optional=True, after_s=20.0)
        rule = replace(plan.verification, improve=(*plan.verification.improve, faster))
        baseline = {**plan.baseline, **({} if before is None else {STEP: before})}
        verifier = Verifier(replace(plan, verification=rule, baseline=baseline), 1000.0, written=WRITTEN)
        for second in range(1, 60):
            told = {} if (now := steps(second)) is None else {STEP: now}
            window = vector({**BETTER, **told}, wall_s=1000.0 + second)
            if (outcome := verifier.push(window, False, WRITTEN, 1000.0 + second)) is not None:
                return outcome, second
        raise AssertionError("no answer")

    return verify


def test_an_optional_effect_counts_only_where_it_was_measured_before(slow_effect: Callable[..., Any]) -> None:
    outcome, second = slow_effect(None, lambda _: 3.0)
    assert (outcome.state, second) == (RunState.KEPT, 8)


def test_an_optional_effect_is_waited_for_and_values_from_before_its_time_do_not_count(
    slow_effect: Callable[..., Any],
) -> None:
    outcome, second = slow_effect(3.0, lambda second: 3.0 if second < 20 else 3.3)
    assert (outcome.state, second) == (RunState.KEPT, 20)
    assert outcome.measured[-2].change == pytest.approx(0.1)
    outcome, second = slow_effect(3.0, lambda _: 3.0)
    assert (outcome.state, outcome.cause, second) == (RunState.ROLLING_BACK, Cause.NOT_VERIFIED, 45)
    assert STEP in outcome.detail


def test_an_optional_effect_that_cannot_be_measured_any_more_does_not_count(slow_effect: Callable[..., Any]) -> None:
    outcome, second = slow_effect(3.0, lambda second: 3.0 if second < 20 else None)
    assert (outcome.state, outcome.cause, second) == (RunState.KEPT, Cause.VERIFIED, 45)
