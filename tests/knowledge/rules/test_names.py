"""Misspelt features and facts are found wherever they stand, with the right name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
TEST = "fingerprints/cpu/quota_throttling.test.yml"

MISTAKES = [
    (FINGERPRINT, "cpu.cgroup_throttled_share.rate, gte", "cpu.cgroup_throtled_share.rate, gte", [
        ("19:26: error K203: unknown feature 'cpu.cgroup_throtled_share.rate' (did you mean "
         "cpu.cgroup_throttled_share.rate?)"),
    ]),
    (FINGERPRINT, "fact: cpu.cgroup_quota", "fact: cpu.cgroup_qouta", [
        "21:21: error K216: unknown fact 'cpu.cgroup_qouta' (did you mean cpu.cgroup_quota?)",
    ]),
    (FINGERPRINT, "fields: [cpu.cgroup_throttled_share.rate]", "fields: [cpu.idle.rat]", [
        "26:10: error K203: unknown feature 'cpu.idle.rat' (did you mean cpu.idle.rate?)",
    ]),
    (TEST, "{cpu.cgroup_throttled_share.rate: 0.4x10", "{cpu.cgroup_throttled_shar.rate: 0.4x10", [
        ("11:16: error K203: unknown feature 'cpu.cgroup_throttled_shar.rate' (did you mean "
         "cpu.cgroup_throttled_share.rate?)"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_name_that_the_catalogues_do_not_have_is_told_with_the_nearest(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
