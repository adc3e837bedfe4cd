"""Patterns that a hostile name makes take for ever are found; those that are shipped are not among them."""

from __future__ import annotations

import pytest

from unveil.knowledge.rules.patterns import takes_for_ever


@pytest.mark.parametrize(
    "pattern",
    ["^(a+)+$", "([a-z]+/?)+", r"^(?:\w+\s?)*$", "((a*)b?)*", "(?:x|[a-z]+)+", "^/(?P<part>[^/]*/*)*$", "((a{1,})+)"],
)
def test_what_divides_a_text_in_many_ways_is_found(pattern: str) -> None:
    assert takes_for_ever(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(/[\w.:@=+,~\\-]+)+$",
        "^[0-9]+([,-][0-9]+)*$",
        "^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}$",
        "a+b+",
        "(ab)+",
        "(a+){2}",
    ],
)
def test_what_has_something_between_its_repetitions_is_not(pattern: str) -> None:
    assert not takes_for_ever(pattern)
