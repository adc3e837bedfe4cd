"""The registry of checks is complete, and the checks that exist are in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unveil.knowledge
from unveil.knowledge.checks import CHECKS, nearest
from unveil.records.problem import Gravity

SOURCES = sorted(Path(unveil.knowledge.__file__).parent.rglob("*.py"))


def test_every_check_that_is_raised_is_listed_and_every_listed_one_is_raised() -> None:
    used: set[str] = set()
    for source in SOURCES:
        if source.name != "checks.py":
            used |= set(re.findall(r'"(K\d{3})"', source.read_text()))
    used |= set(re.findall(r'"(K\d{3})"(?!, _)', (Path(unveil.knowledge.__file__).parent / "checks.py").read_text()))
    assert used == set(CHECKS)


@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_every_check_says_what_it_asks_and_why(check: object) -> None:
    known = CHECKS[check.id]  # type: ignore[attr-defined]  # parametrised with checks
    assert known is check
    assert len(known.title) < 60
    assert not known.title.endswith(".")
    assert known.explanation.endswith(".")


# An unquoted date is read as text. What a playbook does beside its settings (memory is moved) may have nothing that
# could be put back: the reason stands beside it, where a reviewer reads it.
MAY_BE_MEANT = {"K003", "K503"}


def test_what_keeps_a_host_safe_cannot_be_silenced() -> None:
    for check in CHECKS.values():
        if check.id.startswith(("K5", "K6")) or (check.id.startswith("K0") and check.gravity is Gravity.ERROR):
            assert not check.silenceable or check.id in MAY_BE_MEANT
    assert CHECKS["K503"].gravity is Gravity.WARNING


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("statsu", ["status", "title"], "did you mean status?"),
        ("gpu_uuid", ["host", "gpu"], "did you mean gpu?"),
        ("zzz", ["status"], ""),
        ("", ["status"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_right_name_is_offered(name: str, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint
