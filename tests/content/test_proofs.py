"""What is called stable names a test of this repository that saw it on a real kernel, and that test is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load

if TYPE_CHECKING:
    from unveil.records.fingerprint import Fingerprint

ROOT = Path(__file__).parents[2]
ON_A_REAL_KERNEL = ("tests/journeys/", "tests/guest/")
NOT_A_KERNEL = ("tests/journeys/test_gpu_power.py", "tests/journeys/test_someone_else.py")  # a stand-in; plain files


@cache
def stable() -> tuple[Fingerprint, ...]:
    knowledge = load(shipped_root()).knowledge
    assert knowledge is not None
    return tuple(each for each in knowledge.fingerprints if each.status == "stable")


def test_some_are_stable() -> None:
    assert len(stable()) >= 9


@pytest.mark.parametrize("fingerprint", stable(), ids=lambda each: each.name)
def test_its_proof_is_a_test_on_a_real_kernel_that_names_it(fingerprint: Fingerprint) -> None:
    file, _, test = (fingerprint.metadata or {}).get("proof", "").partition("::")
    assert file.startswith(ON_A_REAL_KERNEL)
    assert file not in NOT_A_KERNEL
    tree = ast.parse((ROOT / file).read_text())
    assert test in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    beside = sorted((ROOT / file).parent.glob("*.py")) if file.startswith("tests/guest/") else [ROOT / file]
    assert any(f'"{fingerprint.name}"' in each.read_text() for each in beside), "the test says which one it sees"
