"""`unveil kb diff`: for a terminal, for a pull request, for a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.cli.kb_diff import markdown
from unveil.cli.main import main
from unveil.knowledge.change import Change, Effect

if TYPE_CHECKING:
    from collections.abc import Callable

FINGERPRINT = "fingerprints/memory/reduced_huge_page_coverage.yml"


@pytest.fixture
def sides(tmp_path: Path, build_kb: Callable[..., Path]) -> tuple[str, str]:
    before, after = (build_kb(tmp_path / side) for side in ("before", "after"))
    return str(before), str(after)


def edit(side: str, old: str, new: str) -> None:
    file = Path(side) / FINGERPRINT
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_no_difference_is_zero_and_any_is_one(sides: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "diff", *sides]) == 0
    assert capsys.readouterr().out == "no differences\n"
    edit(sides[1], "  for: ", "  for: 1")
    assert main(["kb", "diff", *sides, "--no-recordings"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("tightened  fingerprint reduced_huge_page_coverage: for ")
    assert said.endswith("1 difference: 1 tightened\n")
    assert main(["kb", "diff", sides[0], "--kb", sides[1], "--no-recordings", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["recordings"], told["behaviour"]) == ([], [])
    (change,) = told["changes"]
    assert (change["effect"], change["kind"]) == ("tightened", "fingerprint")


def test_text_is_said_to_be_text_and_folded_away_in_markdown(
    sides: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(sides[1], "title: ", "title: Now ")
    assert main(["kb", "diff", *sides]) == 1
    assert "1 difference, in text only" in capsys.readouterr().out
    assert main(["kb", "diff", *sides, "--format", "markdown"]) == 1
    said = capsys.readouterr().out
    assert "<details><summary>Text only</summary>" in said
    assert "| text | fingerprint `reduced_huge_page_coverage` | title edited |" in said


@pytest.mark.slow
def test_what_fires_differently_on_a_recording_is_told(
    sides: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(sides[1], "title: ", "title: Now ")
    edit(sides[1], "gte: 0.05\n", "gte: 50\n")
    assert main(["kb", "diff", *sides, "--format", "markdown"]) == 1
    said = capsys.readouterr().out
    assert "#### On 1 recording" in said
    row = next(line for line in said.splitlines() if "behaviour" in line)
    assert row.startswith("| tightened | behaviour `reduced_huge_page_coverage` | recording.parquet: fires 1 → 0; ")
    assert "would no longer be done: enable\\_huge\\_pages on cgroup:/training, asks" in row
    assert main(["kb", "diff", *sides, "--json", "--jobs", "1"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["recordings"] == ["recording.parquet"]
    (found,) = told["behaviour"]
    assert (found["fires_before"], found["fires_after"], found["gained"]) == (1, 0, [])
    assert len(found["lost"]) > 30


@pytest.mark.slow
def test_what_changes_nothing_on_a_recording_is_said_to(
    sides: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(sides[1], "  for: ", "  for: 1")
    assert main(["kb", "diff", *sides]) == 1
    assert "on 1 recording everything fires as before" in capsys.readouterr().out


def test_what_an_author_wrote_is_no_markup_in_the_comment() -> None:
    change = Change(kind="tests", name="n", effect=Effect.RISK, what="a | b\n<script> [x](y) `c`")
    row = markdown((change,)).splitlines()[-1]
    assert row == "| **risk** | tests `n` | a \\| b &lt;script&gt; \\[x](y) \\`c\\` |"


def test_a_side_that_is_none_is_bad_input(sides: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "diff", "no_such_revision", "--kb", sides[1]]) == 2
    assert "neither a folder" in capsys.readouterr().err
    edit(sides[0], "kind: Fingerprint", "kind: [")
    assert main(["kb", "diff", *sides]) == 2
    assert f"{sides[0]} cannot be loaded: {FINGERPRINT}:" in capsys.readouterr().err
