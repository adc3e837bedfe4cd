"""Coverage: what no case has seen of a fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.coverage import cover
from unveil.knowledge.testing import read_suite, run_suite

if TYPE_CHECKING:
    from pathlib import Path


def gaps(kb: Path) -> dict[str, tuple[str, ...]]:
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    report = run_suite(suite)
    return {each.name: cover(each, report).gaps for each in suite.fingerprints()}


def test_what_no_case_has_seen_is_said(kb: Path) -> None:
    assert gaps(kb) == {
        "power_limit_low": ("no case expects unknown", "clause busy is never false"),
        "quota_throttling": (
            "clause throttled is never false",
            "clause host_idle is never false",
            "clause limited is never false",
        ),
    }


def test_a_fix_that_no_case_plans_and_an_untested_fingerprint_have_gaps(kb: Path) -> None:
    tests = kb / "fingerprints/cpu/quota_throttling.test.yml"
    text = tests.read_text()
    begin, end = text.index("    plan:"), text.index("  - name: it has to hold")
    tests.write_text(text[:begin] + text[end:])
    (kb / "fingerprints/gpu/power_limit_low.test.yml").unlink()
    found = gaps(kb)
    assert "no case plans raise_quota" in found["quota_throttling"]
    assert found["power_limit_low"][:2] == ("no case expects match", "no case expects no_match")
    assert len(found["power_limit_low"]) == 3 + 2 * 3
