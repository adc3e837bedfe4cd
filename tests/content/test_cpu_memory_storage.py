"""What is shipped about CPUs, memory and storage: wide, complete, and clear about what only a person can mend."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from unveil.knowledge.knowledge_base import KnowledgeBase

pytestmark = pytest.mark.xdist_group("content")  # loaded once, by one worker
FILES = {
    path.stem: path
    for subsystem in ("cpu", "memory", "storage")
    for path in sorted((shipped_root() / "fingerprints" / subsystem).glob("*.yml"))
    if not path.name.endswith(".test.yml")
}


ANSWERS = {"match", "no_match", "unknown"}


@cache
def knowledge() -> KnowledgeBase:
    loaded = load(shipped_root())
    assert loaded.knowledge is not None, "\n".join(map(str, loaded.problems))
    return loaded.knowledge


def test_each_of_the_three_has_a_dozen_and_many_have_a_fix() -> None:
    found = [each for each in knowledge().fingerprints if each.name in FILES]
    for subsystem in ("cpu", "memory", "storage"):
        assert len([each for each in found if each.subsystem == subsystem]) >= 12
    assert len([each for each in found if each.remediations]) >= 20


@pytest.mark.parametrize("name", FILES)
def test_it_has_a_fix_or_leaves_it_to_a_person_in_so_many_words(name: str) -> None:
    fingerprint = next(each for each in knowledge().fingerprints if each.name == name)
    assert bool(fingerprint.remediations) is ("Report only:" not in fingerprint.description)
    assert [clause.name for clause in fingerprint.clauses if not clause.note] == []
    assert len(fingerprint.falsepositives) >= 2


@pytest.mark.parametrize("name", FILES)
def test_its_cases_have_both_sides_of_each_threshold_and_the_hold(name: str) -> None:
    fingerprint = next(each for each in knowledge().fingerprints if each.name == name)
    path = FILES[name].with_suffix(".test.yml")
    cases = read_yaml(path.name, path.read_bytes()).data["cases"]
    assert {case["expect"] for case in cases} == ANSWERS
    made_up = [case for case in cases if "at" in case]  # the others name a recording
    at = {
        answer: {int(case["at"].removesuffix("s")) for case in made_up if case["expect"] == answer}
        for answer in ANSWERS
    }
    assert any(second - 1 in at["no_match"] for second in at["match"]), "it does not fire a window too early"
    assert min(at["match"]) >= fingerprint.hold_s
