"""A site's filters: what they hide, what they only hold back, and when they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.matching.episodes import EpisodeTracker
from unveil.matching.filters import held_back, suppressed
from unveil.records.entity import Entity, EntityKind
from unveil.records.match import Answer, Episode, Match
from unveil.records.site import Filter

if TYPE_CHECKING:
    from types import SimpleNamespace


@pytest.fixture
def episode(build: SimpleNamespace) -> Episode:
    pod = Entity(EntityKind.CGROUP, "/pods/pod1")
    match = Match(window=0, wall_s=0.0, fingerprint="slow", entity=pod, answer=Answer.MATCH, clauses=(), bindings={})
    tracker = EpisodeTracker([build.fingerprint("hot", name="slow")], new_id=lambda: "e000000000001")
    return tracker.push([match], (), 0.0)[0]


def on_purpose(**more: object) -> Filter:
    fields: dict[str, object] = {
        "name": "batch",
        "id": "1",
        "title": "",
        "owner": "",
        "reason": "",
        "fingerprints": ("slow",),
        "expires": "1970-01-01",
        "expires_s": 86_400.0,
    }
    return Filter(**{**fields, **more})  # type: ignore[arg-type]  # fields of the filter


def test_a_filter_holds_back_remediation_and_only_one_that_says_so_hides(episode: Episode) -> None:
    gentle, strict = on_purpose(), on_purpose(effect="suppress")
    assert held_back(episode, [gentle], 0.0) is gentle
    assert suppressed(episode, [gentle], 0.0) is None
    assert suppressed(episode, [gentle, strict], 0.0) is strict
    assert held_back(episode, [strict], 0.0) is strict


@pytest.mark.parametrize(
    ("more", "covers"),
    [
        ({"entities": ("cgroup:/pods/*",)}, True),
        ({"entities": ("gpu:*", "cgroup:/pods/pod1")}, True),
        ({"entities": ("cgroup:/system*",)}, False),
        ({"hosts": ("hall-b-*",)}, True),
        ({"hosts": ("hall-a-*",)}, False),
        ({"fingerprints": ("fast",)}, False),
    ],
)
def test_a_filter_is_about_what_it_names(episode: Episode, more: dict[str, object], covers: bool) -> None:
    found = suppressed(episode, [on_purpose(effect="suppress", **more)], 0.0, host="hall-b-1")
    assert (found is not None) is covers


def test_a_filter_ends_with_its_day(episode: Episode) -> None:
    strict = on_purpose(effect="suppress")
    assert suppressed(episode, [strict], 86_399.0) is strict
    assert suppressed(episode, [strict], 86_400.0) is None
