"""What is decoded sparingly is what decoding everything gives, whatever changes and whatever stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.batch import Batch
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.parsers.shape import learn
from unveil.host.sparing import Sparing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.shape import Shape
    from unveil.host.parsers.text import Reading, Text

FILES = 4


def _parse(name: str, text: Text) -> Iterator[Reading]:
    return parse_keyed(text, {b"a": Part(f"memory.a{name}"), b"b": Part(f"memory.b{name}", 4096.0)})


def _text(number: int) -> bytes:
    return b"a %d\nb %d kB\n" % (number, 7 * number)


@pytest.fixture(scope="module")
def shapes() -> list[Shape]:
    return [learn(_text(place), lambda text, name=str(place): _parse(name, text)) for place in range(FILES)]


rows = st.lists(st.tuples(*[st.integers(0, 2)] * FILES), min_size=1, max_size=4)


@given(calls=st.lists(rows, min_size=1, max_size=6), every=st.integers(0, 3))
def test_sparing_gives_what_decoding_everything_gives(
    shapes: list[Shape], calls: list[list[tuple[int, ...]]], every: int
) -> None:
    sparing, whole = Sparing(shapes), Batch(shapes)
    assert sparing.whole.channels == whole.channels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unveil.host.sparing.ROUND", every)
        for call in calls:
            texts = [[_text(number) for number in row] for row in call]
            np.testing.assert_array_equal(sparing.decode(texts), whole.decode(texts))


def test_a_text_that_looks_different_is_noticed_also_where_nothing_moved(shapes: list[Shape]) -> None:
    sparing = Sparing(shapes)
    same = [_text(place) for place in range(FILES)]
    for _ in range(3):
        assert sparing.decode([same, same]) is not None
    assert sparing.decode([same, [*same[:-1], b"a 1\n"]]) is None
    assert sparing.decode([same]) is not None


def test_nothing_is_handed_out_twice(shapes: list[Shape]) -> None:
    sparing = Sparing(shapes)
    same = [_text(place) for place in range(FILES)]
    for _ in range(3):
        values = sparing.decode([same])
        assert values is not None
        assert values[0, 0] == 0
        values[:] = np.nan  # as the decoder does with what could not be read
