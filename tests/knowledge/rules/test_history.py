"""A status takes one step at a time."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.linting import lint_against
from unveil.knowledge.loading import load

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/gpu/power_limit_low.yml"


def told(kb: Path, tmp_path: Path, old: str, new: str) -> list[str]:
    shutil.copytree(kb, tmp_path / "before")
    return told_again(kb, tmp_path, old, new)


def told_again(kb: Path, tmp_path: Path, old: str, new: str) -> list[str]:
    (kb / FINGERPRINT).write_text((kb / FINGERPRINT).read_text().replace(old, new))
    return against(kb, tmp_path)


def against(kb: Path, tmp_path: Path) -> list[str]:
    return [str(problem).replace(f"{kb}/", "") for problem in lint_against(kb, str(tmp_path / "before"))]


@pytest.mark.parametrize(
    ("status", "expected"),
    [("test", ""), ("deprecated\nmetadata: {replaced_by: none}", ""), ("experimental", ""),
     ("stable", "status experimental → stable is not the next step")],
)  # fmt: skip
def test_a_step_that_is_skipped_is_told(kb: Path, tmp_path: Path, status: str, expected: str) -> None:
    lines = told(kb, tmp_path, "status: experimental", f"status: {status}")
    steps = "(experimental → test → stable → deprecated)"
    assert lines == ([f"{FINGERPRINT}:6:9: warning K108: {expected} {steps}"] if expected else [])


def test_a_new_one_does_not_begin_stable(kb: Path, tmp_path: Path) -> None:
    new_id = "2b9f4f5e-2a0c-4b6e-8f38-0d6d1c7a9e43"
    (kb / FINGERPRINT).write_text((kb / FINGERPRINT).read_text().replace("experimental", "stable"))
    lines = told(kb, tmp_path, "2b9f4f5e-2a0c-4b6e-8f38-0d6d1c7a9e42", new_id)
    assert lines == [f"{FINGERPRINT}:6:9: warning K108: it is new, and called stable (begin with test)"]


def test_an_id_that_stands_for_something_else_now_is_told(kb: Path, tmp_path: Path) -> None:
    text = (kb / FINGERPRINT).read_text()
    head, _, tail = text.partition("signature:")
    for old, new in (("power_limit_low", "clock_is_low"), ("GPU power limit", "Clock of a GPU"), ("A busy", "An idle")):
        head = head.replace(old, new)
    lines = told(kb, tmp_path, text, f"{head}signature:{tail}")
    assert lines == [], "a new name is only a new name: it still asks for the same"
    (kb / FINGERPRINT).write_text(f"{head}signature:{tail.replace('0.6', '0.7')}")
    told_at = f"{FINGERPRINT}:4:5: warning K104: this id was 'power_limit_low', of which nothing is left"
    assert against(kb, tmp_path) == [f"{told_at} (a new one gets an id of its own)"]
    (kb / FINGERPRINT).write_text(f"# unveil-ignore: K104 it was never released\n{head}signature:{tail}")
    assert against(kb, tmp_path) == []
    assert not [each for each in load(kb).problems if each.check == "K013"]


def test_a_knowledge_base_that_does_not_load_is_compared_as_far_as_it_can_be_read(kb: Path, tmp_path: Path) -> None:
    (kb / "fingerprints/cpu/quota_throttling.yml").write_text("kind: [")
    assert [line.split()[2] for line in told(kb, tmp_path, "status: experimental", "status: stable")] == ["K108:"]
    assert told_again(kb, tmp_path, "status: stable", "status: [7]") == []


def test_a_revision_that_is_none_is_told(kb: Path) -> None:
    with pytest.raises(BadInputError):
        lint_against(kb, "no-such-revision")
