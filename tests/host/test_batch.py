from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import SourceAbsentError
from unveil.host.batch import Batch
from unveil.host.catalogue import SOURCES
from unveil.host.cgroups import CgroupTrees
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.parsers.shape import Parser, learn
from unveil.host.root import HostRoot
from unveil.host.source import Feed, Surroundings
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from unveil.host.parsers.text import Text

Plainly = Callable[[bytes, Parser], dict[Channel, float]]


def parse(text: Text):
    return parse_keyed(text, {b"a": Part("memory.a"), b"b": Part("memory.b", 4096.0), b"c": Part("memory.b", 4096.0)})


def decode(*texts: bytes) -> list[float] | None:
    batch = Batch([learn(texts[0], parse)])
    values = batch.decode([[text] for text in texts])
    return None if values is None else values[-1].tolist()


def live_feeds() -> list[tuple[Feed, bytes]]:
    root = HostRoot("/")
    surroundings = Surroundings(root=root, cgroups=CgroupTrees(root))
    surroundings.cgroups.walk(0)
    found = []
    for source in SOURCES:
        try:
            feeds = source.feeds(surroundings)
        except SourceAbsentError:
            continue
        for feed in feeds:
            try:
                text = root.read(feed.path)
            except OSError:
                continue
            found.append((feed, feed.cut(text) if feed.cut else text))
    return found


def test_the_batch_path_equals_the_plain_parser_on_this_machine_for_every_channel(plainly: Plainly) -> None:
    feeds = live_feeds()
    batch = Batch([learn(text, feed.parser) for feed, text in feeds])
    values = batch.decode([[text for _, text in feeds]] * 3)
    assert values is not None
    assert values.shape == (3, len(batch.channels))
    expected: dict[Channel, float] = {}
    for feed, text in feeds:
        expected |= plainly(text, feed.parser)
    assert len(expected) > 50
    assert set(batch.channels) == set(expected)
    for row in values:
        np.testing.assert_array_equal(row, [expected[channel] for channel in batch.channels])


def test_the_live_host_fits_its_own_shape_a_moment_later() -> None:
    before, after = live_feeds(), dict(live_feeds_by_path())
    unlike = [
        feed.path for feed, text in before if feed.path in after and not learn(text, feed.parser).fits(after[feed.path])
    ]
    assert not [path for path in unlike if path.startswith("proc/") and path != "proc/net/dev"]


def live_feeds_by_path() -> list[tuple[str, bytes]]:
    return [(feed.path, text) for feed, text in live_feeds()]


def test_lines_are_scaled_and_lines_of_one_metric_summed() -> None:
    assert decode(b"a 1\nb 2\nc 3\n") == [1.0, 5 * 4096.0]


def test_digits_may_change_and_blanks_may_move() -> None:
    assert decode(b"a 1\nb 2\nc 3\n", b"a    100\nb 20\nc\t30\n") == [100.0, 50 * 4096.0]


def test_a_number_that_is_none_any_more_does_not_fit() -> None:
    for text in (
        b"a -1\nb 2\nc 3\n",
        b"a 1.5\nb 2\nc 3\n",
        b"a N/A\nb 2\nc 3\n",
        b"a 0x1\nb 2\nc 3\n",
        b"a 1\nb 2\n",
        b"",
    ):
        assert decode(b"a 1\nb 2\nc 3\n", text) is None, text


def test_numbers_beyond_int64_and_words_for_unlimited_are_absent_alone_and_in_sums() -> None:
    for huge in (1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**40, 9223372036854771712):
        values = decode(f"a {huge}\nb 1\nc {huge}\n".encode())
        assert values is not None
        assert all(math.isnan(value) for value in values)


def test_a_batch_of_nothing_decodes_to_rows_of_nothing() -> None:
    values = Batch([]).decode([[], []])
    assert values is not None
    assert values.shape == (2, 0)
    empty = Batch([learn(b"no digits here", parse)]).decode([[b"no digits here"]])
    assert empty is not None
    assert empty.shape == (1, 0)


@given(st.lists(st.tuples(*[st.integers(0, 10**20)] * 3), min_size=1, max_size=12))
def test_any_numbers_come_out_as_the_plain_parser_gives_them(rows: list[tuple[int, int, int]]) -> None:
    texts = [f"a {a}\nb {b}\nc {c}\n".encode() for a, b, c in rows]
    values = Batch([learn(texts[0], parse)]).decode([[text] for text in texts])
    assert values is not None
    for row, (a, b, c) in zip(values, rows, strict=True):
        assert row[0] == a if a < 1 << 62 else math.isnan(row[0])
        if max(b, c) < 1 << 62:
            np.testing.assert_allclose(row[1], (b + c) * 4096.0, rtol=1e-15)
        else:
            assert math.isnan(row[1])
