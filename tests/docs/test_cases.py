"""The tables over the knowledge base: every case has an answer, every answer is there and tested, none is left out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.knowledge.testing import Suite, read_suite
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("cases")  # loaded once, by one worker


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_cases", ROOT / "docs/draw_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def suite() -> Suite:
    suite, problems = read_suite(ROOT)
    assert suite is not None, problems
    return suite


@pytest.fixture(scope="module")
def cases(drawing: ModuleType) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = drawing.cases()
    return found


def test_every_case_has_an_answer_or_a_reason(cases: list[dict[str, Any]]) -> None:
    numbers = [*map(str, range(1, 56))]
    assert [each["id"] for each in cases] == [*numbers[:9], "9b", *numbers[9:]]
    for each in cases:
        assert set(each) == {
            "id",
            "title",
            "subsystem",
            "reference",
            "fingerprints" if "fingerprints" in each else "cannot",
        }
        assert each["subsystem"] in set(Subsystem)
        assert each["reference"].startswith("https://")
        assert each.get("fingerprints") or len(each["cannot"].split()) >= 10
    assert len({each["title"] for each in cases}) == len(cases)


def test_every_fingerprint_that_answers_is_there_and_tells_it_from_look_alikes(
    cases: list[dict[str, Any]], suite: Suite
) -> None:
    for each in cases:
        for name in each.get("fingerprints", ()):
            assert suite.knowledge.fingerprint(name) is not None, f"case {each['id']}: {name}"
            expected = {case["expect"] for case in suite.documents[name].data["cases"]}
            assert {"match", "no_match"} <= expected, name


def test_the_page_is_drawn_from_the_cases_and_the_knowledge_base(drawing: ModuleType, suite: Suite) -> None:
    assert (ROOT / "docs/CASES.md").read_text() == drawing.page(suite), "python docs/draw_cases.py draws it anew"


def test_the_table_of_fingerprints_has_each_with_its_fixes(suite: Suite) -> None:
    table = (ROOT / "fingerprints/README.md").read_text()
    told = {row[1]: re.findall(r"\w+", row[2]) for row in re.finditer(r"^\| `\w+/(\w+)` \|.*\| (.*) \|$", table, re.M)}
    assert told == {each.name: list(each.remediations) or ["a", "person"] for each in suite.knowledge.fingerprints}


def test_the_table_of_remediations_has_each_with_its_upper_bound(suite: Suite) -> None:
    table = (ROOT / "playbooks/README.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| .* \| (\w+) \| .* \|$", table, re.M))
    assert told == {each.name: str(each.mode) for each in suite.knowledge.remediations}
