from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.cpulist import HIGHEST_ID, format_cpulist, parse_cpulist

ids = st.frozensets(st.integers(min_value=0, max_value=HIGHEST_ID), max_size=60)


@given(ids)
def test_what_is_written_reads_back(cpus: frozenset[int]) -> None:
    assert parse_cpulist(format_cpulist(cpus)) == cpus


@given(ids)
def test_runs_of_ids_are_written_as_one_span(cpus: frozenset[int]) -> None:
    text = format_cpulist(cpus)
    spans = [tuple(map(int, (part.split("-") * 2)[:2])) for part in text.split(",") if part]
    assert all(later[0] > earlier[1] + 1 for earlier, later in itertools.pairwise(spans))


@given(st.text(max_size=30))
def test_any_text_is_a_list_or_a_value_error(text: str) -> None:
    try:
        cpus = parse_cpulist(text)
    except ValueError:
        return
    assert all(0 <= cpu <= HIGHEST_ID for cpu in cpus)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        ("\n", set()),
        ("0\n", {0}),
        ("0-3,8", {0, 1, 2, 3, 8}),
        (b"0-1,\n", {0, 1}),
        ("0-10:2/4", {0, 1, 4, 5, 8, 9}),
        ("4\0\n", {4}),  # some captured trees end their files so
        ("0,4,8", {0, 4, 8}),  # POWER leaves gaps
    ],
)
def test_the_kernels_forms_are_understood(text: str | bytes, cpus: set[int]) -> None:
    assert parse_cpulist(text) == cpus


@pytest.mark.parametrize(
    "text", ["-1", "3-1", "a", "0-", "1_0", "+1", "0-7:2", "0-7:3/2", "0-99999999", "٣", "0 1", "(null)"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cpulist(text)
