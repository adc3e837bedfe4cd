"""docs/TRAPS.md: all 44, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (\d+) \|(.*)\|(.*)\|(.*)\|$", (ROOT / "docs/TRAPS.md").read_text(), re.MULTILINE)


def test_all_are_there_once_and_in_order() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 45))


@pytest.mark.parametrize(("number", "trap", "answer", "proof"), ROWS, ids=[number for number, *_ in ROWS])
def test_each_has_a_test_or_a_sentence(number: str, trap: str, answer: str, proof: str) -> None:
    assert trap.strip()
    assert len(answer.split()) >= 5, "what keeps it from happening"
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", proof)
    assert len(named) == proof.count("::")
    assert named or len(answer.split()) >= 12, "without a test the sentence says why it cannot occur"
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), f"{file}::{name}"


def test_no_shipped_playbook_reloads_systemd() -> None:
    """Trap 11: containers with GPUs lose them."""
    texts = {file: file.read_text() for file in (ROOT / "playbooks").rglob("*") if file.suffix in (".yml", ".py")}
    assert len(texts) > 20
    for file, text in texts.items():
        assert not re.search(r"daemon[-_ ]re(load|exec)|builtin\.systemd", text), file
