"""What a tenant chose as a name cannot bend the terminal that it is drawn on."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.cli import draw


@given(st.text())
def test_plain_text_has_no_character_that_controls_or_reorders(text: str) -> None:
    drawn = draw.plain(text)
    assert len(drawn) <= 200
    assert not any(unicodedata.category(char)[0] == "C" for char in drawn)


@pytest.mark.parametrize(
    ("hostile", "drawn"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\u202egpj.exe", "a\\u202egpj.exe"),
        ("line\nbreak", "line\\nbreak"),
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
        ("\udcff", "\\udcff"),
    ],
)
def test_a_hostile_name_is_shown_as_what_it_is(hostile: str, drawn: str) -> None:
    assert draw.plain(hostile) == drawn


def test_a_table_takes_hostile_cells_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    draw.table(("name",), (("[red]\x1b[31mx[/red]",),))
    assert "[red]\\x1b[31mx[/red]" in capsys.readouterr().out


def test_a_table_too_wide_for_a_terminal_becomes_paragraphs_whose_names_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns = ("episode", "state", "fingerprint", "entity", "since", "lasted", "windows>")
    row = ("e7647f240d187", "firing", "reduced_huge_page_coverage", "cgroup:/train-job", "18:05:01", "3 s", 4)
    draw.table(columns, (row, row))
    said = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert said.count("reduced_huge_page_coverage") == 2
    assert "──" not in said
    assert max(map(len, said.splitlines())) <= 80
    draw.table(columns[:3], (row[:3],))
    assert "──" in capsys.readouterr().out, "three columns have room"


def test_a_long_line_is_broken_between_words_on_a_terminal_and_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = "  the memory of a busy workload is in small pages\n\nnext"
    draw.line(said)
    assert capsys.readouterr().out == f"{said}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    draw.line(said)
    assert capsys.readouterr().out.splitlines() == [
        "  the memory of a busy workload is in", "  small pages", "", "next"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.0, "0"), (12345.0, "12,345"), (0.123456, "0.1235"), (2.5e9, "2.5 G"), ("x\ny", "x\\ny")],
)
def test_quantities_are_short(value: float | str | None, text: str) -> None:
    assert draw.quantity(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (200, "3 min 20 s"), (7500, "2 h 05 min"), (200000, "2 days")]
)
def test_spans_are_in_the_unit_that_a_person_would_use(seconds: float, text: str) -> None:
    assert draw.span(seconds) == text
