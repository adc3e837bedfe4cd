"""`kb lint` as a function: the whole is judged, and what lies in the files that were asked for is told."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.linting import lint, lint_against

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
AFTER_ITS_END_S = 4.0e10  # of the filter, in 2999


def test_only_what_lies_where_was_asked_is_told_although_all_is_judged(kb: Path) -> None:
    (kb / FINGERPRINT.replace(".yml", ".test.yml")).unlink()
    (kb / "playbooks/raise_quota/remediation.yml").write_text("kind: [")
    everywhere = lint(kb, cached=False)
    assert {"K704", "K002"} & {problem.check for problem in everywhere}
    told = {folder: lint(kb, [kb / folder], cached=False) for folder in ("fingerprints", "playbooks", "inventory")}
    assert sorted(map(str, everywhere)) == sorted(str(problem) for each in told.values() for problem in each)
    assert told["fingerprints"]
    assert told["playbooks"]
    assert lint(kb, [kb / FINGERPRINT], cached=False) == tuple(
        problem for problem in everywhere if problem.file.endswith(FINGERPRINT)
    )


def test_the_time_is_the_one_that_is_given(kb: Path) -> None:
    assert lint(kb, now_s=1.8e9, cached=False) == ()
    assert [problem.check for problem in lint(kb, now_s=AFTER_ITS_END_S, cached=False)] == ["K404"]


def test_the_way_from_a_folder_is_judged_and_an_unknown_revision_is_bad_input(kb: Path, tmp_path: Path) -> None:
    before = str(shutil.copytree(kb, tmp_path / "before"))
    assert lint_against(kb, before) == ()
    (kb / FINGERPRINT).write_text((kb / FINGERPRINT).read_text().replace("status: test", "status: experimental"))
    assert [problem.check for problem in lint_against(kb, before)] == ["K108"]
    with pytest.raises(BadInputError):
        lint_against(kb, "no-such-revision")
