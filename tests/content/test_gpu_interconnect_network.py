"""What is shipped about GPUs, the interconnect and the network: complete, and honest about what nobody can fix here."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.fingerprint import Fingerprint

pytestmark = pytest.mark.xdist_group("content")  # loaded once, by one worker
SUBSYSTEMS = ("gpu", "interconnect", "network")
NAMES = sorted(
    path.stem for subsystem in SUBSYSTEMS for path in (shipped_root() / "fingerprints" / subsystem).glob("*.yml")
    if not path.name.endswith(".test.yml")
)  # fmt: skip
SAYS_WHO_ACTS = re.compile(
    r"Drain ticket:|Report:|[Nn]othing is changed|Never cleared|reported only|no setting of the host"
)


@cache
def knowledge() -> KnowledgeBase:
    loaded = load(shipped_root())
    assert loaded.knowledge is not None, "\n".join(map(str, loaded.problems))
    return loaded.knowledge


def fingerprint_of(name: str) -> Fingerprint:
    return next(fingerprint for fingerprint in knowledge().fingerprints if fingerprint.name == name)


def test_the_three_subsystems_are_covered() -> None:
    assert len(NAMES) >= 40
    assert {fingerprint_of(name).subsystem for name in NAMES} == set(SUBSYSTEMS)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_cure_or_says_who_acts(name: str) -> None:
    fingerprint = fingerprint_of(name)
    assert fingerprint.remediations or SAYS_WHO_ACTS.search(" ".join(fingerprint.description.split()))
    assert [clause.name for clause in fingerprint.clauses if not clause.note] == []
    assert fingerprint.references
    assert all(url.startswith("https://") for url in fingerprint.references)


@pytest.mark.parametrize("name", NAMES)
def test_its_cases_show_a_match_a_look_alike_an_unknown_and_the_hold(name: str) -> None:
    fingerprint = fingerprint_of(name)
    path = shipped_root() / "fingerprints" / fingerprint.subsystem / f"{name}.test.yml"
    cases = read_yaml(path.name, path.read_bytes()).data["cases"]
    assert {case["expect"] for case in cases} == {"match", "no_match", "unknown"}
    assert "# Look-alikes" in path.read_text()
    held = [case["expect"] for case in cases if case.get("at") == f"{fingerprint.hold_s - 1:g}s"]
    assert held == ["no_match"]
