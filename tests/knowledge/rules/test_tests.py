"""A test that cannot be run as written is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TEST = "fingerprints/cpu/quota_throttling.test.yml"

MISTAKES = [
    (TEST, "cpu.cgroup_throttled_share.rate: 0.4x10", "cpu.cgroup_throttled_share.rate: 0.4*10", [
        "11:49: error K702: '0.4*10' is not VALUE, VALUExCOUNT, START+STEPxCOUNT or _ (e.g. 0.4x10, 0+10x20, _x3)",
    ]),
    (TEST, "entity: cgroup:/pod1", "entity: pod:/pod1", [
        "10:13: error K005: 'pod:/pod1' is no entity (e.g. cgroup:/pod1, gpu:GPU-1)",
    ]),
    (TEST, "    at: 6s\n", "    recording: {file: demo, from: 9, to: 4}\n", [
        "9:42: error K706: the stretch ends at 4 s, before it begins",
        "11:5: error K706: features with a recording: it holds what was so",
        "12:5: error K706: facts with a recording: it holds what was so",
        "13:5: error K706: clauses with a recording: it holds what was so",
        "14:5: error K706: plan with a recording: it holds what was so",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_test_that_cannot_be_run_is_told(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
