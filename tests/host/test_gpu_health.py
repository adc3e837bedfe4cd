"""How the reading of GPUs stands, as doctor tells it."""

from __future__ import annotations

import pytest

from unveil.host.gpu_health import GpuCondition, GpuHealth
from unveil.host.source import SourceState


@pytest.mark.parametrize("condition", list(GpuCondition))
def test_every_condition_is_a_state_of_a_source(condition: GpuCondition) -> None:
    health = GpuHealth(
        condition=condition,
        reason="so",
        gpus=("GPU-1",),
        lost={"GPU-2": "fell off"},
        starts=1,
        age_s=None,
        channels=21,
        period_s=1.0,
    )
    source = health.as_source()
    assert isinstance(source.state, SourceState)
    assert source.state is SourceState.FAILED, "a GPU that was lost should work and does not"
    assert source.channels == 21
    assert source.reason == "so; GPU-2 is gone: fell off"


def test_a_host_without_gpus_is_absent_and_a_hanging_driver_is_stale() -> None:
    states = {
        condition: GpuHealth(
            condition=condition, reason="", gpus=(), lost={}, starts=0, age_s=None, channels=0, period_s=1.0
        ).as_source().state
        for condition in (GpuCondition.ABSENT, GpuCondition.STALE)
    }  # fmt: skip
    assert states == {GpuCondition.ABSENT: SourceState.ABSENT, GpuCondition.STALE: SourceState.STALE}
