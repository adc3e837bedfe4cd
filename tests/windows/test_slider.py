"""The slider: the grid, completeness, gaps, clocks that go back, memory, and the freedom to parcel samples out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.slider import Slider

if TYPE_CHECKING:
    from unveil.records.window import Window

MS = 1_000_000
S = 1_000_000_000
FAST = Layout((Channel("cpu.user"),))
MEDIUM = Layout((Channel("memory.free"), Channel("memory.dirty")))
SLOW = Layout((Channel("memory.cgroup_anon", (("cgroup", "/a"),)),))


def block(tier: Tier, layout: Layout, times: list[int]) -> SampleBlock:
    """Every value is the time in seconds plus the number of its column's channel name: any mix-up shows."""
    shift = np.array([sum(str(channel).encode()) % 97 for channel in layout.channels], dtype=float)
    stamps = np.array(times, dtype=np.int64)
    return SampleBlock(tier=tier, layout=layout, times_ns=stamps, values=stamps[:, None] / S + shift)


def fast(start_ms: int, stop_ms: int, step_ms: int = 100) -> SampleBlock:
    return block(Tier.FAST, FAST, [ms * MS for ms in range(start_ms, stop_ms, step_ms)])


def tier(window: Window, which: Tier) -> SampleBlock:
    (found,) = (each for each in window.blocks if each.tier is which)
    return found


def same(left: Window, right: Window) -> bool:
    shape = [(b.tier, b.layout.channels) for b in left.blocks] == [(b.tier, b.layout.channels) for b in right.blocks]
    return (
        shape
        and (left.index, left.start_ns, left.end_ns, left.ticks_missed)
        == (right.index, right.start_ns, right.end_ns, right.ticks_missed)
        and all(
            a.times_ns.tobytes() == b.times_ns.tobytes() and a.values.tobytes() == b.values.tobytes()
            for a, b in zip(left.blocks, right.blocks, strict=True)
        )
    )


def test_a_window_is_made_once_the_fast_tier_has_covered_its_end() -> None:
    slider = Slider()
    assert slider.push([fast(0, 3000)], wall_s=0.0) == ()
    (window,) = slider.push([fast(3000, 3100)], wall_s=100.0)
    assert (window.index, window.start_ns, window.end_ns, window.wall_s) == (0, 0, 3 * S, 100.0)
    assert len(tier(window, Tier.FAST).times_ns) == 31, "both ends belong to it"
    assert window.ticks_missed == 0
    assert slider.push([fast(3100, 4000)], wall_s=100.9) == ()
    (window,) = slider.push([fast(4000, 4600)], wall_s=101.5)
    assert (window.index, window.start_ns, window.end_ns, window.wall_s) == (1, S, 4 * S, 101.0)


def test_samples_after_the_end_stay_out() -> None:
    first, second = Slider().push([fast(0, 4500), block(Tier.MEDIUM, MEDIUM, [0, S, 3 * S, 3 * S + 1])], wall_s=0.0)
    assert list(tier(first, Tier.MEDIUM).times_ns) == [0, S, 3 * S]
    assert list(tier(second, Tier.MEDIUM).times_ns) == [S, 3 * S, 3 * S + 1]


def test_a_slow_tier_keeps_its_two_newest_samples_but_none_older_than_half_a_minute() -> None:
    slider = Slider()
    slow = block(Tier.SLOW, SLOW, [0, 5 * S, 10 * S])
    windows = slider.push([fast(0, 45_000), slow], wall_s=0.0)
    by_end = {window.end_ns // S: window for window in windows}
    assert list(tier(by_end[4], Tier.SLOW).times_ns) == [0]
    assert list(tier(by_end[9], Tier.SLOW).times_ns) == [0, 5 * S]
    assert list(tier(by_end[35], Tier.SLOW).times_ns) == [5 * S, 10 * S]
    assert list(tier(by_end[36], Tier.SLOW).times_ns) == [10 * S]
    assert [each.tier for each in by_end[41].blocks] == [Tier.FAST]


def test_a_medium_source_that_stopped_does_not_look_alive_for_long() -> None:
    windows = Slider().push([fast(0, 12_000), block(Tier.MEDIUM, MEDIUM, [0, S, 2 * S])], wall_s=0.0)
    last = max(window.end_ns for window in windows if len(window.blocks) == 2)
    assert last == 8 * S


def test_a_new_layout_carries_the_past_of_its_channels_over() -> None:
    new = Layout((Channel("memory.dirty"), Channel("memory.slab")))
    old_part, new_part = block(Tier.MEDIUM, MEDIUM, [0, S]), block(Tier.MEDIUM, new, [2 * S, 3 * S])
    (window,) = Slider().push([fast(0, 3100), old_part, new_part], wall_s=0.0)
    medium = tier(window, Tier.MEDIUM)
    assert medium.layout is new
    assert medium.values[:2, 0].tolist() == old_part.values[:, 1].tolist()
    assert np.isnan(medium.values[:2, 1]).all()
    assert medium.values[2:].tolist() == new_part.values.tolist()


def test_a_layout_from_after_the_window_does_not_reach_back_into_it() -> None:
    new = Layout((Channel("memory.dirty"),))
    blocks = [fast(0, 4100), block(Tier.MEDIUM, MEDIUM, [0, 3 * S]), block(Tier.MEDIUM, new, [3 * S + 1])]
    first, second = Slider().push(blocks, wall_s=0.0)
    assert tier(first, Tier.MEDIUM).layout is MEDIUM
    assert tier(second, Tier.MEDIUM).layout is new


def test_an_equal_layout_is_the_same_layout() -> None:
    again = Layout(MEDIUM.channels)
    blocks = [fast(0, 3100), block(Tier.MEDIUM, MEDIUM, [0, S]), block(Tier.MEDIUM, again, [2 * S, 3 * S])]
    (window,) = Slider().push(blocks, wall_s=0.0)
    assert tier(window, Tier.MEDIUM).layout is MEDIUM


def test_two_sources_of_one_tier_do_not_push_each_other_out() -> None:
    gpu = Layout((Channel("gpu.util", (("gpu", "GPU-1"),)),))
    slider = Slider()
    for second in range(4):
        late = second * S + 900 * MS
        windows = slider.push(
            [
                fast(second * 1000, second * 1000 + 1000),
                block(Tier.MEDIUM, gpu, [second * S + 950 * MS]),
                block(Tier.MEDIUM, MEDIUM, [late]),
            ],
            wall_s=0.0,
        )
    (window,) = windows
    assert [(each.tier, each.layout) for each in window.blocks] == [
        (Tier.FAST, FAST),
        (Tier.MEDIUM, gpu),
        (Tier.MEDIUM, MEDIUM),
    ]
    assert not np.isnan(np.concatenate([each.values.ravel() for each in window.blocks])).any()


def test_a_source_that_moved_in_with_another_leaves_no_stale_twin() -> None:
    node = Layout((Channel("memory.node_free", (("node", "0"),)),))
    both = Layout((*SLOW.channels, *node.channels))
    before = [block(Tier.SLOW, SLOW, [0, 2 * S]), block(Tier.SLOW, node, [0])]
    windows = Slider().push([fast(0, 9_000), *before, block(Tier.SLOW, both, [5 * S])], wall_s=0.0)
    assert [len(window.blocks) for window in windows] == [3, 3, 2, 2, 2, 2]
    assert windows[-1].blocks[1].layout is both


def test_windows_say_how_many_ticks_they_lack() -> None:
    times = [ms * MS for ms in range(0, 5100, 100) if not 1000 < ms < 1500]
    windows = Slider().push([block(Tier.FAST, FAST, times)], wall_s=0.0)
    assert [window.ticks_missed for window in windows] == [4, 4, 0]


def test_a_late_tick_is_not_a_missed_one() -> None:
    jitter = np.random.default_rng(7).uniform(0, 20 * MS, 51).astype(int)
    jitter[17] = 70 * MS
    times = [index * 100 * MS + int(each) for index, each in enumerate(jitter)]
    windows = Slider().push([block(Tier.FAST, FAST, times)], wall_s=0.0)
    assert [window.ticks_missed for window in windows] == [0] * len(windows) != []


def test_a_gap_is_not_made_up_and_numbers_go_on() -> None:
    windows = Slider().push([fast(0, 5050), fast(20_000, 24_050)], wall_s=0.0)
    assert [window.end_ns // S for window in windows] == [3, 4, 5, 6, 7, 8, 20, 21, 22, 23, 24]
    assert [window.index for window in windows] == list(range(11))
    assert [len(tier(window, Tier.FAST).times_ns) for window in windows[3:8]] == [21, 11, 1, 1, 11]
    assert [window.ticks_missed for window in windows[3:8]] == [10, 20, 30, 29, 19]


def test_a_day_of_silence_costs_nothing_and_makes_nothing_up() -> None:
    day = 24 * 3600 * 1000
    windows = Slider().push([fast(0, 3050), fast(day, day + 1050)], wall_s=0.0)
    assert [window.end_ns // S for window in windows] == [3, 24 * 3600, 24 * 3600 + 1]


def test_a_clock_that_goes_back_begins_a_new_grid() -> None:
    slider = Slider()
    before = slider.push([fast(500_000, 504_000), block(Tier.MEDIUM, MEDIUM, [501 * S, 502 * S])], wall_s=0.0)
    after = slider.push([fast(50, 4_000), block(Tier.MEDIUM, MEDIUM, [1 * S, 2 * S])], wall_s=0.0)
    assert [window.index for window in (*before, *after)] == [0, 1]
    assert (after[0].start_ns, after[0].end_ns) == (50 * MS, 3050 * MS)
    assert list(tier(after[0], Tier.MEDIUM).times_ns) == [S, 2 * S]


def test_a_medium_clock_that_goes_back_leaves_the_grid_alone() -> None:
    slider = Slider()
    slider.push([fast(0, 2000), block(Tier.MEDIUM, MEDIUM, [S, 2 * S])], wall_s=0.0)
    (window,) = slider.push([fast(2000, 3050), block(Tier.MEDIUM, MEDIUM, [S + 1])], wall_s=0.0)
    assert list(tier(window, Tier.MEDIUM).times_ns) == [S + 1]


def test_memory_is_bounded_even_when_no_window_comes_out() -> None:
    slider = Slider()
    for second in range(300):
        slider.push([block(Tier.MEDIUM, MEDIUM, [second * S])], wall_s=0.0)
    assert sum(map(len, slider._streams)) <= 61
    slider.push([fast(300_000, 400_000)], wall_s=0.0)
    assert sum(map(len, slider._streams)) <= 40
    assert all(each._values.size < 500 for stream in slider._streams for each in stream._stretches)


def test_empty_blocks_are_nothing() -> None:
    nothing = SampleBlock(
        tier=Tier.FAST, layout=Layout(()), times_ns=np.array([5], dtype=np.int64), values=np.empty((1, 0))
    )
    assert Slider().push([nothing, block(Tier.FAST, FAST, [])], wall_s=0.0) == ()


@pytest.mark.parametrize("length", [0, -1, 31 * S])
def test_lengths_beyond_reason_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="length"):
        Slider(length)


# Any parcelling out gives the same windows.

SHAPES = {
    Tier.FAST: [FAST, Layout((Channel("cpu.user"), Channel("cpu.idle")))],
    Tier.MEDIUM: [MEDIUM, Layout((Channel("memory.dirty"), Channel("memory.slab"))), Layout(MEDIUM.channels)],
    Tier.SLOW: [SLOW, Layout((*SLOW.channels, Channel("memory.cgroup_anon", (("cgroup", "/b"),))))],
}
STEPS = {Tier.FAST: 100, Tier.MEDIUM: 1000, Tier.SLOW: 5000}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Tier, Layout, int]]:
    """Samples of all tiers over some seconds, with jitter, gaps and changes of layout, by time."""
    samples = []
    for which, step in STEPS.items():
        now = draw(st.integers(0, step)) * MS
        shape = 0
        gaps = draw(st.dictionaries(st.integers(1, 60), st.sampled_from([1, 3, 7, 40]), max_size=2))
        turns = draw(st.sets(st.integers(1, 60), max_size=3))
        count = 0
        while now < 9000 * MS + sum(gaps.values()) * S and count < 200:
            samples.append((which, SHAPES[which][shape], now))
            count += 1
            now += step * MS + draw(st.sampled_from([0, 0, 0, 3 * MS, 40 * MS])) + gaps.get(count, 0) * S
            if count in turns:
                shape = (shape + 1) % len(SHAPES[which])
    return sorted(samples, key=lambda sample: sample[2])


def blocks_of(samples: list[tuple[Tier, Layout, int]]) -> list[SampleBlock]:
    blocks = []
    for which in Tier:
        mine = [(layout, time) for each, layout, time in samples if each is which]
        while mine:
            layout = mine[0][0]
            run = next((i for i, (other, _) in enumerate(mine) if other is not layout), len(mine))
            blocks.append(block(which, layout, [time for _, time in mine[:run]]))
            mine = mine[run:]
    return blocks


@settings(max_examples=60, deadline=None)
@given(histories(), st.sets(st.integers(1, 400), max_size=40))
def test_any_parcelling_out_gives_the_same_windows(samples: list[tuple[Tier, Layout, int]], cuts: set[int]) -> None:
    whole = Slider().push(blocks_of(samples), wall_s=0.0)
    slider = Slider()
    parts: list[Window] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(samples)), len(samples)]
    for low, high in itertools.pairwise(edges):
        parts += slider.push(blocks_of(samples[low:high]), wall_s=0.0)
    assert len(whole) == len(parts)
    assert all(same(left, right) for left, right in zip(whole, parts, strict=True))


@settings(max_examples=30, deadline=None)
@given(histories())
def test_windows_hold_what_they_claim(samples: list[tuple[Tier, Layout, int]]) -> None:
    for index, window in enumerate(Slider().push(blocks_of(samples), wall_s=0.0)):
        assert window.index == index
        assert window.end_ns - window.start_ns == 3 * S
        assert 0 <= window.ticks_missed <= 30
        for each in window.blocks:
            assert (np.diff(each.times_ns) > 0).all()
            assert each.times_ns[-1] <= window.end_ns
            assert (each.times_ns[-1] >= window.start_ns) or each.tier is not Tier.FAST
            assert each.values.shape == (len(each.times_ns), len(each.layout.channels))
