"""One source's samples: which blocks belong to it, and what a cut holds."""

from __future__ import annotations

import numpy as np

from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.stream import Stream

NIC = (Channel("network.rx_bytes", (("nic", "eth0"),)), Channel("network.rx_bytes", (("nic", "veth1"),)))


def block(layout: Layout, *times: int, tier: Tier = Tier.FAST) -> SampleBlock:
    values = np.arange(len(times) * len(layout.channels), dtype=float).reshape(len(times), -1)
    return SampleBlock(tier=tier, layout=layout, times_ns=np.array(times, dtype=np.int64), values=values)


def test_a_source_that_changed_shape_is_still_the_same_source() -> None:
    stream = Stream(block(Layout(NIC), 1))
    assert stream.takes(block(Layout(NIC[:1]), 2))
    assert stream.takes(block(Layout((Channel("network.rx_bytes", (("nic", "ib0"),)),)), 2))
    assert not stream.takes(block(Layout((Channel("gpu.util", (("gpu", "GPU-1"),)),)), 2))
    assert not stream.takes(block(Layout(NIC), 2, tier=Tier.MEDIUM))


def test_a_repeated_sample_is_taken_once() -> None:
    stream = Stream(block(Layout(NIC), 1))
    layout = Layout(NIC)
    for each in (block(layout, 1, 2), block(layout, 2, 3), block(layout, 3)):
        stream.push(each)
    cut = stream.cut(0, 10)
    assert cut is not None
    assert cut.times_ns.tolist() == [1, 2, 3]


def test_a_channel_that_came_later_was_absent_before() -> None:
    stream = Stream(block(Layout(NIC[:1]), 1))
    stream.push(block(Layout(NIC[:1]), 1, 2))
    stream.push(block(Layout(NIC[::-1]), 3))
    cut = stream.cut(0, 10)
    assert cut is not None
    assert cut.layout.channels == NIC[::-1]
    np.testing.assert_array_equal(cut.values, [[np.nan, 0.0], [np.nan, 1.0], [0.0, 1.0]])


def test_what_is_forgotten_is_released() -> None:
    stream = Stream(block(Layout(NIC), 1))
    stream.push(block(Layout(NIC), *range(1, 1001)))
    stream.forget(990, keep=2)
    cut = stream.cut(0, 2000)
    assert cut is not None
    assert cut.times_ns.tolist() == list(range(988, 1001))
    assert cut.values.base is None or cut.values.base.size < 100
    stream.forget(10_000, keep=0)
    assert stream.newest_ns is None
    assert stream.cut(0, 2000) is None
