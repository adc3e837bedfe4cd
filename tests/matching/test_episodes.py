"""The life of an episode, second by second."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.matching.episodes import MAX_STEP_S, EpisodeTracker
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.match import Answer, Episode, EpisodeState, Match

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

NAME = "some_fingerprint"
START_S = 1_764_000_000.25  # a wall clock as it is, whose seconds do not add up exactly


def matched(wall_s: float, entity: Entity = HOST, name: str = NAME) -> Match:
    return Match(window=0, wall_s=wall_s, fingerprint=name, entity=entity, answer=Answer.MATCH, clauses=(), bindings={})


class Watch:
    """A tracker that is told one window a second: ``+`` a match, ``-`` none, ``?`` unknown."""

    def __init__(self, tracker: EpisodeTracker) -> None:
        self.tracker = tracker
        self.now_s = START_S
        self.states: list[str] = []
        self.changed: list[Episode] = []

    def see(self, windows: str, *, step_s: float = 1.0) -> Watch:
        for window in windows:
            matches = [matched(self.now_s)] if window == "+" else []
            unknown = {(NAME, HOST)} if window == "?" else set()
            changed = self.tracker.push(matches, unknown, self.now_s)
            self.changed += changed
            self.states.append(",".join(episode.state for episode in changed))
            self.now_s += step_s
        return self

    @property
    def when(self) -> dict[str, int]:
        """Return in which window each state was reached, the last time."""
        return {state: window for window, state in enumerate(self.states) if state}


@pytest.fixture
def watch(build: SimpleNamespace, ids: Callable[[], str]) -> Callable[..., Watch]:
    def begin(hold_s: float = 3.0, keep_firing_s: float = 2.0) -> Watch:
        fingerprint = build.fingerprint(
            "hot", build.feature("hot", "gt", 1.0), hold_s=hold_s, keep_firing_s=keep_firing_s
        )
        return Watch(EpisodeTracker([fingerprint], new_id=ids))

    return begin


def test_an_episode_is_pending_until_it_held_long_enough_and_clears_after_its_rest(
    watch: Callable[..., Watch],
) -> None:
    seen = watch(hold_s=3.0, keep_firing_s=2.0).see("--++++++---")
    assert seen.when == {"pending": 2, "firing": 5, "cleared": 9}
    opened, fired, cleared = seen.changed
    assert (opened.id, opened.started_s, opened.fired_s, opened.windows) == ("e000000000001", START_S + 2, None, 1)
    assert (fired.id, fired.fired_s, fired.windows, fired.last.wall_s) == (opened.id, START_S + 5, 4, START_S + 5)
    assert (cleared.id, cleared.cleared_s, cleared.last_s) == (opened.id, START_S + 9, START_S + 7)
    assert (cleared.windows, cleared.fired_s) == (6, START_S + 5)
    assert seen.tracker.open == ()


def test_a_fingerprint_without_a_hold_fires_at_once_and_without_a_rest_clears_at_once(
    watch: Callable[..., Watch],
) -> None:
    seen = watch(hold_s=0.0, keep_firing_s=0.0).see("+-")
    assert seen.states == ["firing", "cleared"]


def test_a_break_before_it_fired_starts_all_over(watch: Callable[..., Watch]) -> None:
    seen = watch(hold_s=3.0).see("+++-+++")
    assert seen.states == ["pending", "", "", "cleared", "pending", "", ""]
    assert seen.changed[1].fired_s is None
    assert [episode.id for episode in seen.changed] == ["e000000000001", "e000000000001", "e000000000002"]


def test_a_break_shorter_than_the_rest_does_not_clear(watch: Callable[..., Watch]) -> None:
    seen = watch(hold_s=0.0, keep_firing_s=3.0).see("+--+--+")
    assert seen.states == ["firing", "", "", "", "", "", ""]
    assert seen.tracker.open[0].windows == 3


def test_unknown_windows_neither_confirm_nor_clear(watch: Callable[..., Watch]) -> None:
    held = watch(hold_s=3.0).see("++??????+")
    assert held.states[1:] == [""] * 8
    assert held.tracker.open[0].state is EpisodeState.PENDING
    held.see("++")
    assert held.states[-1] == "firing"  # one second before, two after; none of those between
    firing = watch(hold_s=0.0, keep_firing_s=2.0).see("+" + "?" * 60)
    assert firing.tracker.open[0].state is EpisodeState.FIRING
    assert firing.see("-").states[-1] == ""
    assert firing.see("?-").states[-2:] == ["", "cleared"]


def test_unknown_alone_opens_nothing(watch: Callable[..., Watch]) -> None:
    assert watch(hold_s=0.0).see("???").tracker.open == ()


def test_an_entity_that_is_gone_clears_like_one_that_no_longer_matches(watch: Callable[..., Watch]) -> None:
    seen = watch(hold_s=0.0, keep_firing_s=1.0).see("+-")
    assert seen.states == ["firing", "cleared"]


def test_open_episodes_show_their_newest_match_without_being_reported(watch: Callable[..., Watch]) -> None:
    seen = watch(hold_s=1.0).see("+++++")
    assert [state for state in seen.states if state] == ["pending", "firing"]
    (episode,) = seen.tracker.open
    assert (episode.windows, episode.last_s, episode.last.wall_s) == (5, START_S + 4, START_S + 4)
    assert seen.tracker.find(NAME, HOST) is episode
    assert seen.tracker.find(NAME, Entity(EntityKind.GPU, "x")) is None


def test_each_entity_has_an_episode_of_its_own(build: SimpleNamespace, ids: Callable[[], str]) -> None:
    one, two = Entity(EntityKind.CGROUP, "/a"), Entity(EntityKind.CGROUP, "/b")
    tracker = EpisodeTracker([build.fingerprint("hot", hold_s=1.0)], new_id=ids)
    tracker.push([matched(0.0, one)], (), 0.0)
    changed = tracker.push([matched(1.0, one), matched(1.0, two)], (), 1.0)
    assert [(str(episode.entity), episode.state) for episode in changed] == [
        ("cgroup:/a", EpisodeState.FIRING),
        ("cgroup:/b", EpisodeState.PENDING),
    ]


@pytest.mark.parametrize("jump_s", [3600.0, MAX_STEP_S + 1.0, -5.0])
def test_time_that_nobody_saw_counts_for_nothing(watch: Callable[..., Watch], jump_s: float) -> None:
    pending = watch(hold_s=3.0).see("++")
    pending.now_s += jump_s
    assert pending.see("+++").states[-3:] == ["", "", ""]
    assert pending.see("+").states[-1] == "firing"
    firing = watch(hold_s=0.0, keep_firing_s=2.0).see("+")
    firing.now_s += jump_s
    assert firing.see("---").states[-3:] == ["", "", "cleared"]


def test_windows_that_end_a_little_early_or_late_make_no_difference(watch: Callable[..., Watch]) -> None:
    assert watch(hold_s=3.0).see("++++", step_s=0.9999).when["firing"] == 3
    assert watch(hold_s=3.0).see("++++", step_s=1.0001).when["firing"] == 3


def test_an_unchanged_fingerprint_keeps_its_episodes_over_a_reload(
    build: SimpleNamespace, ids: Callable[[], str]
) -> None:
    kept, edited, removed = (build.fingerprint("hot", name=name, hold_s=2.0) for name in ("kept", "edited", "removed"))
    tracker = EpisodeTracker([kept, edited, removed], new_id=ids)
    for second in (0.0, 1.0):
        tracker.push([matched(second, name=name) for name in ("kept", "edited", "removed")], (), second)
    closed = tracker.replace([kept, replace(edited, revision="2")], 1.5)
    assert [(episode.fingerprint, episode.state, episode.cleared_s) for episode in closed] == [
        ("edited", EpisodeState.CLEARED, 1.5),
        ("removed", EpisodeState.CLEARED, 1.5),
    ]
    changed = tracker.push([matched(2.0, name=name) for name in ("kept", "edited", "removed")], (), 2.0)
    assert [(episode.fingerprint, episode.state, episode.revision) for episode in changed] == [
        ("kept", EpisodeState.FIRING, "1"),
        ("edited", EpisodeState.PENDING, "2"),
    ]


def test_after_a_restart_the_firing_go_on_and_the_pending_hold_anew(watch: Callable[..., Watch]) -> None:
    firing = watch(hold_s=0.0, keep_firing_s=2.0).see("+").tracker.open
    again = watch(hold_s=0.0, keep_firing_s=2.0)
    assert again.tracker.restore(firing, START_S) == ()
    assert again.see("--").tracker.open == firing
    assert again.see("-").changed[0].id == firing[0].id
    pending = watch(hold_s=3.0).see("+++").tracker.open
    again = watch(hold_s=3.0)
    again.tracker.restore(pending, START_S)
    assert again.see("++++").when == {"firing": 3}
    assert again.changed[0].id == pending[0].id


def test_after_a_restart_what_cannot_go_on_is_cleared(watch: Callable[..., Watch]) -> None:
    (firing,) = watch(hold_s=0.0).see("+").tracker.open
    other = replace(firing, id="e2", fingerprint="gone")
    edited = replace(firing, id="e3", revision="0", entity=Entity(EntityKind.GPU, "x"))
    older = replace(firing, id="e4", started_s=0.0)
    done = replace(firing, id="e5", state=EpisodeState.CLEARED)
    again = watch(hold_s=0.0)
    cleared = again.tracker.restore([firing, other, edited, older, done], 5.0)
    assert {episode.id for episode in cleared} == {"e2", "e3", "e4"}
    assert {episode.cleared_s for episode in cleared} == {5.0}
    assert again.tracker.open == (firing,)


def test_matches_of_unknown_fingerprints_and_doubles_are_left_out(
    build: SimpleNamespace, ids: Callable[[], str]
) -> None:
    tracker = EpisodeTracker([build.fingerprint("hot")], new_id=ids)
    changed = tracker.push([matched(0.0), matched(0.0), matched(0.0, name="other")], (), 0.0)
    assert [episode.windows for episode in changed] == [1]


@given(windows=st.text("+-?", max_size=60), hold_s=st.integers(0, 5), keep_firing_s=st.integers(0, 5))
def test_states_only_ever_go_forward(windows: str, hold_s: int, keep_firing_s: int, build: SimpleNamespace) -> None:
    numbers = iter(range(100))
    fingerprint = build.fingerprint("hot", hold_s=float(hold_s), keep_firing_s=float(keep_firing_s))
    seen = Watch(EpisodeTracker([fingerprint], new_id=lambda: f"e{next(numbers):012x}")).see(windows)
    order = list(EpisodeState)
    for episode_id in {episode.id for episode in seen.changed}:
        states = [order.index(episode.state) for episode in seen.changed if episode.id == episode_id]
        assert states == sorted(set(states))
    for episode in seen.changed:
        if episode.fired_s is not None:
            assert episode.fired_s - episode.started_s >= hold_s - 0.1
        if episode.state is EpisodeState.CLEARED:
            assert episode.cleared_s is not None
            assert episode.cleared_s > episode.last_s
    assert len(seen.tracker.open) <= 1
