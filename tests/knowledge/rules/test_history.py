"""A status takes one step at a time."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.linting import lint_against

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/gpu/power_limit_low.yml"


def told(kb: Path, tmp_path: Path, old: str, new: str) -> list[str]:
    before = tmp_path / "before"
    shutil.copytree(kb, before)
    (kb / FINGERPRINT).write_text((kb / FINGERPRINT).read_text().replace(old, new))
    return [str(problem).replace(f"{kb}/", "") for problem in lint_against(kb, str(before))]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("test", ""), ("deprecated\nmetadata: {replaced_by: none}", ""), ("experimental", ""),
     ("stable", "status experimental → stable is not the next step")],
)  # fmt: skip
def test_a_step_that_is_skipped_is_told(kb: Path, tmp_path: Path, status: str, expected: str) -> None:
    lines = told(kb, tmp_path, "status: experimental", f"status: {status}")
    steps = "(experimental → test → stable → deprecated)"
    assert lines == ([f"{FINGERPRINT}:1:1: warning K108: {expected} {steps}"] if expected else [])


def test_a_new_one_does_not_begin_stable(kb: Path, tmp_path: Path) -> None:
    new_id = "2b9f4f5e-2a0c-4b6e-8f38-0d6d1c7a9e43"
    (kb / FINGERPRINT).write_text((kb / FINGERPRINT).read_text().replace("experimental", "stable"))
    lines = told(kb, tmp_path, "2b9f4f5e-2a0c-4b6e-8f38-0d6d1c7a9e42", new_id)
    assert lines == [f"{FINGERPRINT}:1:1: warning K108: it is new, and called stable (begin with test)"]


def test_a_revision_that_is_none_is_told(kb: Path) -> None:
    with pytest.raises(BadInputError):
        lint_against(kb, "no-such-revision")
