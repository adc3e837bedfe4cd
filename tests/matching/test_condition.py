"""The language of conditions: what it says, what it refuses and where, and Kleene's logic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import BadInputError
from unveil.matching.condition import (
    KEYWORDS,
    MAX_DEPTH,
    NO,
    UNKNOWN,
    YES,
    ConditionError,
    at_least,
    parse_condition,
)

NAMES = ("busy", "clock_sm", "clock_mem", "clock_video", "hot")


def answer(text: str, **answers: int) -> int:
    arrays = {name: np.asarray(answers.get(name, NO), dtype=np.int8) for name in NAMES}
    return int(parse_condition(text).evaluate(arrays))


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("busy", {"busy": YES}, YES),
        ("not busy", {"busy": YES}, NO),
        ("not busy", {"busy": UNKNOWN}, UNKNOWN),
        ("busy and hot", {"busy": YES, "hot": UNKNOWN}, UNKNOWN),
        ("busy and hot", {"busy": NO, "hot": UNKNOWN}, NO),
        ("busy or hot", {"busy": YES, "hot": UNKNOWN}, YES),
        ("busy or hot", {"busy": NO, "hot": UNKNOWN}, UNKNOWN),
        ("busy or hot and clock_sm", {"busy": YES}, YES),
        ("(busy or hot) and clock_sm", {"busy": YES}, NO),
        ("not busy or hot", {"hot": YES, "busy": YES}, YES),
        ("not (busy or hot)", {"hot": YES}, NO),
        ("not not busy", {"busy": YES}, YES),
        ("2 of clock_*", {"clock_sm": YES, "clock_mem": YES}, YES),
        ("2 of clock_*", {"clock_sm": YES, "clock_mem": UNKNOWN}, UNKNOWN),
        ("2 of clock_*", {"clock_sm": UNKNOWN}, NO),
        ("2 of clock_*", {"clock_sm": YES, "clock_mem": UNKNOWN, "clock_video": YES}, YES),
        ("all of clock_*", {"clock_sm": YES, "clock_mem": YES, "clock_video": YES}, YES),
        ("all of clock_*", {"clock_sm": YES, "clock_mem": YES}, NO),
        ("any of clock_*", {"clock_video": YES}, YES),
        ("not any of clock_*", {}, YES),
        ("1 of *_sm", {"clock_sm": YES}, YES),
        ("5 of *", dict.fromkeys(NAMES, YES), YES),
    ],
)
def test_a_condition_answers_as_kleene_has_it(text: str, answers: dict[str, int], expected: int) -> None:
    assert answer(text, **answers) == expected


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "expected the name of a clause, found the end"),
        ("busy and", 8, "found the end"),
        ("busy hot", 5, "expected 'and', 'or' or the end, found 'hot'"),
        ("busy & hot", 5, "unexpected '&'"),
        ("(busy or hot", 12, "the parenthesis at offset 0 is not closed"),
        ("busy)", 4, "found ')'"),
        ("and busy", 0, "found 'and'"),
        ("busy AND hot", 5, "'AND' is written in lower case"),
        ("2 clock_*", 2, "expected 'of' after '2'"),
        ("2of clock_*", 0, "unexpected '2'"),
        ("any of (busy)", 7, "expected a pattern"),
        ("any of", 6, "expected a pattern"),
        ("clock_*", 0, "a pattern needs a quantity"),
        ("0 of clock_*", 0, "'0 of' always holds"),
        ("busy and -hot", 9, "unexpected '-'"),
        ("busy\nand hot?", 12, "unexpected '?'"),
        ("not " * (MAX_DEPTH + 2) + "busy", 4 * (MAX_DEPTH + 1), "nested deeper"),
        ("(" * 5000 + "busy" + ")" * 5000, MAX_DEPTH + 1, "nested deeper"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused_at_the_place(text: str, offset: int, message: str) -> None:
    with pytest.raises(ConditionError) as refused:
        parse_condition(text)
    assert message in refused.value.message
    assert refused.value.offset == offset


@pytest.mark.parametrize(
    ("text", "offset", "message", "hint"),
    [
        ("busy and hto", 9, "no clause is named 'hto'", "did you mean 'hot'?"),
        ("busy and zzzz", 9, "no clause is named 'zzzz'", "clauses: busy"),
        ("busy or 2 of fan_*", 8, "no clause is covered by 'fan_*'", None),
        ("4 of clock_*", 0, "covers 3", None),
        ("99999999999999999999 of clock_*", 0, "covers 3", None),
    ],
)
def test_a_condition_that_does_not_fit_its_clauses_is_refused(
    text: str, offset: int, message: str, hint: str | None
) -> None:
    parsed = parse_condition(text)
    with pytest.raises(ConditionError) as refused:
        parsed.bind(NAMES)
    assert message in refused.value.message
    assert refused.value.offset == offset
    assert (refused.value.hint or "").startswith(hint or "")


def test_the_error_is_one_of_ours_and_draws_a_caret() -> None:
    text = "busy and\n\t(hot or cold"
    with pytest.raises(BadInputError) as refused:
        parse_condition(text)
    assert isinstance(refused.value, ConditionError)
    assert refused.value.caret(text) == "\t(hot or cold\n\t            ^"


def test_names_are_those_written_and_after_binding_all_that_count() -> None:
    parsed = parse_condition("busy and (2 of clock_* or not busy)")
    assert parsed.names == ("busy",)
    assert parsed.patterns == ("clock_*",)
    bound = parsed.bind(NAMES)
    assert bound.names == ("busy", "clock_sm", "clock_mem", "clock_video")
    assert bound.patterns == ()


def test_answers_of_many_windows_are_given_at_once() -> None:
    busy = np.array([[1, 0, -1], [1, 0, -1]], dtype=np.int8)
    hot = np.array([[1, 1, 1], [0, 0, 0]], dtype=np.int8)
    answers = parse_condition("busy and hot").evaluate({"busy": busy, "hot": hot})
    assert answers.dtype == np.int8
    assert answers.tolist() == [[1, 0, -1], [0, 0, -1]]


def test_at_least_is_the_least_that_any_completion_of_the_unknowns_and_the_most_gives() -> None:
    """Kleene's meaning: unknown unless every way of filling in the unknowns gives the same answer."""
    for size in range(1, 5):
        for answers in itertools.product((NO, UNKNOWN, YES), repeat=size):
            filled = itertools.product(*[(NO, YES) if answer == UNKNOWN else (answer,) for answer in answers])
            counts = [sum(answer == YES for answer in full) for full in filled]
            for count in range(1, size + 1):
                possible = {YES if there >= count else NO for there in counts}
                expected = possible.pop() if len(possible) == 1 else UNKNOWN
                assert at_least(count, np.array(answers, dtype=np.int8)) == expected


texts = st.recursive(
    st.sampled_from(NAMES) | st.sampled_from(["2 of clock_*", "all of clock_*", "any of *", "3 of *"]),
    lambda inner: st.one_of(
        inner.map("not {}".format),
        inner.map("({})".format),
        st.tuples(inner, inner).map(" and ".join),
        st.tuples(inner, inner).map(" or ".join),
    ),
    max_leaves=12,
)


@given(text=texts, answers=st.lists(st.sampled_from([NO, UNKNOWN, YES]), min_size=5, max_size=5))
def test_more_knowledge_never_overturns_an_answer(text: str, answers: list[int]) -> None:
    """Monotone in knowledge: filling in an unknown may settle an unknown answer, never change a settled one."""
    given_answers = dict(zip(NAMES, answers, strict=True))
    before = answer(text, **given_answers)
    for name in NAMES:
        if given_answers[name] == UNKNOWN:
            for settled in (NO, YES):
                after = answer(text, **{**given_answers, name: settled})
                assert before in (UNKNOWN, after)


@given(text=texts, answers=st.lists(st.sampled_from([NO, YES]), min_size=5, max_size=5))
def test_without_unknowns_a_condition_means_what_python_means(text: str, answers: list[int]) -> None:
    values = {name: value == YES for name, value in zip(NAMES, answers, strict=True)}
    clocks = [values[name] for name in NAMES if name.startswith("clock_")]
    plain = text.replace("2 of clock_*", str(sum(clocks) >= 2)).replace("all of clock_*", str(all(clocks)))
    plain = plain.replace("any of *", str(any(values.values()))).replace("3 of *", str(sum(values.values()) >= 3))
    expected = eval(plain, {}, values)
    assert (answer(text, **dict(zip(NAMES, answers, strict=True))) == YES) is bool(expected)


@given(st.text(alphabet="ab*_ ()0123456789\nandorotfl&", max_size=60))
def test_any_text_is_parsed_or_refused_within_its_bounds(text: str) -> None:
    refused, parsed = None, None
    try:
        parsed = parse_condition(text)
    except ConditionError as error:
        refused = error
    if refused is not None:
        assert 0 <= refused.offset <= len(text)
        assert refused.caret(text).endswith("^")
    if parsed is not None:
        assert KEYWORDS.isdisjoint(parsed.names)
