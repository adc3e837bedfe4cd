"""A silence covers what its patterns say, while it lasts."""

from __future__ import annotations

import pytest

from unveil.records.silence import Silence

SILENCE = Silence(
    id="s1", fingerprint="gpu_*", entity="gpu:*", until_s=200.0, reason="r", actor="uid:0", created_s=100.0
)


@pytest.mark.parametrize(
    ("fingerprint", "entity", "at_s", "covered"),
    [
        ("gpu_power_limit", "gpu:GPU-1", 150.0, True),
        ("gpu_power_limit", "gpu:GPU-1", 100.0, True),
        ("gpu_power_limit", "gpu:GPU-1", 99.9, False),
        ("gpu_power_limit", "gpu:GPU-1", 200.0, False),
        ("nic_irq", "gpu:GPU-1", 150.0, False),
        ("gpu_power_limit", "host", 150.0, False),
        ("GPU_power_limit", "gpu:GPU-1", 150.0, False),
    ],
)
def test_who_is_covered_when(fingerprint: str, entity: str, at_s: float, covered: bool) -> None:
    assert SILENCE.covers(fingerprint, entity, at_s) is covered
