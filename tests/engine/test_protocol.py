"""One line a question, one line an answer; nothing else is understood."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil import errors
from unveil.engine import protocol
from unveil.errors import BadInputError, ConflictError, UnveilError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(number=st.integers(), method=st.text(), params=st.dictionaries(st.text(), JSON))
def test_a_question_comes_back_as_it_was_asked_in_one_line(number: int, method: str, params: dict[str, Any]) -> None:
    line = protocol.question(number, method, params)
    assert line.count(b"\n") == 1
    assert protocol.read_question(line) == (number, method, params)


@settings(max_examples=40)
@given(result=JSON)
def test_an_answer_comes_back_as_it_was_given_in_one_line(result: Any) -> None:
    line = protocol.answer(1, result)
    assert line.count(b"\n") == 1
    assert protocol.read_answer(line) == result


@given(line=st.binary(max_size=60))
def test_anything_else_is_no_question(line: bytes) -> None:
    with contextlib.suppress(BadInputError):
        number, method, params = protocol.read_question(line)
        assert json.loads(line)["method"] == method
        assert isinstance(number, int)
        assert isinstance(params, dict)


@pytest.mark.parametrize(
    "kind", [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, UnveilError)]
)
def test_every_error_arrives_as_the_error_it_was(kind: type[UnveilError]) -> None:
    line = protocol.refusal(3, kind("what\nhappened", hint="do this"))
    assert line.count(b"\n") == 1
    with pytest.raises(kind) as caught:
        protocol.read_answer(line)
    assert type(caught.value) is kind
    assert (caught.value.what, caught.value.hint) == ("what\nhappened", "do this")


def test_an_error_that_only_a_newer_watcher_knows_is_still_an_error() -> None:
    line = protocol.refusal(3, ConflictError("x")).replace(b"ConflictError", b"NewerError")
    with pytest.raises(UnveilError, match="x"):
        protocol.read_answer(line)


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b'{"id": 1}\n', b"\xff\n"])
def test_what_is_no_answer_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(UnveilError, match="not an answer"):
        protocol.read_answer(line)
