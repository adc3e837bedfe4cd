"""A file that nobody reviews is told where CODEOWNERS says who reviews what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.linting import lint
from unveil.knowledge.pack import read_pack
from unveil.knowledge.rules.owners import check_owners

if TYPE_CHECKING:
    from pathlib import Path

GPU, CPU, FIX = (
    "fingerprints/gpu/power_limit_low.yml",
    "fingerprints/cpu/quota_throttling.yml",
    "playbooks/raise_quota/remediation.yml",
)


@pytest.mark.parametrize(
    ("text", "unowned"),
    [
        ("* @all\n", []),
        ("# nobody\n\n", [CPU, GPU, FIX]),
        ("/fingerprints/ @us\n", [FIX]),
        ("fingerprints/gpu/ @gpu\nplaybooks/**/remediation.yml @fixes # why\n", [CPU]),
        ("*.yml @all\n/fingerprints/gpu/\n", [GPU]),
        ("fingerprints/* @direct\n", [CPU, GPU, FIX]),
        ("[Section]\nraise_quota @fixes\nfingerprints/?pu @us\n", []),
        ("power_limit_low.yml a@b.org\n/cpu @wrong-place\n", [CPU, FIX]),
    ],
)
def test_the_last_pattern_that_fits_says_who(kb: Path, text: str, unowned: list[str]) -> None:
    found = [str(each) for each in check_owners(read_pack(kb), text, "")]
    assert found == [
        f"{kb}/{path}:1:1: warning K705: CODEOWNERS names nobody for it (/{path} @team)" for path in unowned
    ]


def test_a_knowledge_base_in_a_part_of_a_repository_is_found_there(kb: Path) -> None:
    (kb.parent / ".git").mkdir()
    (kb.parent / ".github").mkdir()
    (kb.parent / ".github/CODEOWNERS").write_text("/kb/fingerprints/ @us\n")
    assert [f"{each}" for each in lint(kb, cached=False)] == [
        f"{kb}/{FIX}:1:1: warning K705: CODEOWNERS names nobody for it (/kb/{FIX} @team)"
    ]
    (kb / FIX).write_text("# unveil-ignore: K705 it is the author's own\n" + (kb / FIX).read_text())
    assert lint(kb, cached=False) == ()
