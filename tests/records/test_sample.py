"""A layout knows where each channel stands, and is itself only."""

from __future__ import annotations

from unveil.records.metric import Channel
from unveil.records.sample import Layout


def test_a_layout_finds_columns_and_is_compared_by_identity() -> None:
    channels = (Channel("a.b"), Channel("a.c"))
    layout = Layout(channels)
    assert layout.column == {channels[0]: 0, channels[1]: 1}
    assert layout != Layout(channels), "a new layout means that columns may have moved"
