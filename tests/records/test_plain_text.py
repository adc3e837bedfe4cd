"""What a tenant writes is drawn as text, whatever it holds."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.records.plain_text import plain, quantity, several, span


@pytest.mark.parametrize(
    ("hostile", "drawn"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\nb\rc\x9bd", "a\\nb\\rc\\x9bd"),
        ("left\u202eright", "left\\u202eright"),
        ("one\u2028two", "one\\u2028two"),
        ("[bold red]markup[/]", "[bold red]markup[/]"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("Müller-パン", "Müller-パン"),
    ],
)
def test_what_could_bend_a_screen_becomes_visible(hostile: str, drawn: str) -> None:
    assert plain(hostile) == drawn


def test_a_tower_of_accents_does_not_grow_over_the_lines_around_it() -> None:
    assert sum(unicodedata.category(char) == "Mn" for char in plain("e" + "\u0301" * 50)) == 2


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_it_is_short_printable_and_one_line(text: str, limit: int) -> None:
    drawn = plain(text, limit)
    assert len(drawn) <= limit
    assert not any(unicodedata.category(char)[0] == "C" for char in drawn)
    assert len(drawn.splitlines()) <= 1


def test_a_length_of_time_is_said_in_its_own_size() -> None:
    assert [span(each) for each in (42, 200, 7500, 200_000)] == ["42 s", "3 min 20 s", "2 h 05 min", "2 days"]


def test_a_number_has_four_digits_and_an_absent_one_a_dash() -> None:
    assert [quantity(each) for each in (None, 12345, 0.123456, 3.2e9, "a\x1bb")] == [
        "-", "12,345", "0.1235", "3.2 G", "a\\x1bb",
    ]  # fmt: skip


def test_one_takes_no_plural() -> None:
    assert [several(count, "window") for count in (0, 1, 1234)] == ["0 windows", "1 window", "1,234 windows"]
