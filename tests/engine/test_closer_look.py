"""A closer look at a window, a run, a file: bounded, plain JSON, and about the very window that is asked for."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import BadInputError
from unveil.matching.correlate import Correlator
from unveil.records.codec import encode
from unveil.records.correlation import Correlation
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.match import Episode


@pytest.fixture
def judged(watch: Callable[..., Any], seconds: list[Any]) -> Any:
    watcher = watch()
    begin = time.time() - 10
    for number, blocks in enumerate(seconds[:10]):
        for outcome in watcher.pipeline.push(blocks, wall_s=begin + number, facts=watcher.facts):
            watcher.journalling.second(outcome.summary, outcome.changed)
    watcher.ask = lambda method, actor="uid:0", **params: watcher._commands.handle(method, params, actor)
    return watcher


def test_near_fingerprints_come_with_every_clause_also_for_an_older_window(judged: Any) -> None:
    newest = judged.pipeline.latest.window.index
    told = judged.ask("near")
    assert json.loads(json.dumps(told)) == told
    assert told["window"] == newest
    assert told["kept"]
    (one,) = told["near"]
    assert one["match"]["fingerprint"] == "some_dirt"
    assert (one["met"], one["of"]) == (1, 1)
    older = judged.ask("near", window=newest - 3)["near"][0]["match"]
    assert older["window"] == newest - 3
    assert older["clauses"][0]["value"] != one["match"]["clauses"][0]["value"]
    assert judged.ask("near", window=10_000) == {"window": 10_000, "kept": False, "near": []}


def test_a_series_is_told_up_to_a_window_with_what_is_expected(judged: Any) -> None:
    newest = judged.pipeline.latest.window.index
    (told,) = judged.ask("series", features=["memory.dirty.mean"], until=newest - 1, limit=3)
    assert told["from"] == newest - 3
    assert len(told["values"]) == 3
    (absent,) = judged.ask("series", features=["no.such.feature[gpu:x]"], limit=2)
    assert absent["values"] == [None, None]
    with pytest.raises(BadInputError, match="names no entity"):
        judged.ask("series", features=["a[b]"])
    with pytest.raises(BadInputError, match="at most"):
        judged.ask("series", features=["a"] * 100)


def test_members_are_told_both_ways_and_an_episode_alone_has_none(judged: Any) -> None:
    pipeline = judged.pipeline
    (alone,) = pipeline.episodes.open
    assert judged.ask("members", episode=alone.id) == {"of": [], "part_of": []}
    again = Correlation(
        name=alone.fingerprint, id="1", title="", status="test", level="low", description="", type="event_count",
        fingerprints=(alone.fingerprint,), group_by=alone.entity.kind, timespan_s=60.0, hold_s=0.0, keep_firing_s=0.0,
    )  # fmt: skip
    pipeline.correlator = Correlator([again])
    firing = replace(alone, state=EpisodeState.FIRING)
    pipeline.correlator.push([firing], alone.last_s)
    told = judged.ask("members", episode=alone.id)
    assert told["of"] == [encode(firing)]
    assert [each["id"] for each in told["part_of"]] == [alone.id]
    pipeline.correlator = Correlator([again])  # nothing counts any more: the journal knows what it was made of
    assert [each["id"] for each in judged.ask("members", episode=alone.id)["of"]] == [alone.id]


def test_a_correlation_is_explained_by_name_with_what_counts_for_it(judged: Any) -> None:
    pipeline = judged.pipeline
    (alone,) = pipeline.episodes.open
    pipeline.correlator = Correlator([twice(alone)])
    pipeline.correlator.push([alone], alone.last_s)
    (told,) = judged.ask("explain", fingerprint="dirt_twice")
    assert json.loads(json.dumps(told)) == told
    assert (told["answer"], told["window"]) == ("no_match", pipeline.latest.window.index)
    assert told["clauses"][0]["value"] == "1: some_dirt on host"
    assert [each["id"] for each in told["of"]] == [alone.id]
    assert judged.ask("explain", fingerprint="dirt_twice", entity="host") == [told]
    with pytest.raises(BadInputError, match="was not asked of gpu:x"):
        judged.ask("explain", fingerprint="dirt_twice", entity="gpu:x")


def twice(episode: Episode) -> Correlation:
    return Correlation(
        name="dirt_twice", id="1", title="", status="test", level="low", description="", type="event_count", at_least=2,
        fingerprints=(episode.fingerprint,), group_by=episode.entity.kind, timespan_s=60.0, hold_s=0.0,
        keep_firing_s=0.0,
    )  # fmt: skip


def test_status_says_how_the_breaker_stands(judged: Any) -> None:
    assert judged.ask("status")["breaker"] == {"open": False, "failures": 0, "most": 3}


def test_a_persons_word_on_an_episode_is_kept_with_who_said_it(judged: Any) -> None:
    (episode,) = judged.ask("episodes", open_only=True)
    made = judged.ask("mark", actor="uid:7", episode=episode["id"][:6], kind="acknowledged")
    assert made["actor"] == "uid:7"
    judged.ask("mark", episode=episode["id"], kind="false_positive", text=" a backup ")
    assert [each["text"] for each in judged.ask("episode", id=episode["id"])["marks"]] == ["", "a backup"]
    assert judged.ask("hits")["some_dirt"]["false_positives"] == 1
    for wrong in ({"kind": "liked"}, {"kind": "note"}, {"kind": "note", "text": "x" * 3000}):
        with pytest.raises(BadInputError):
            judged.ask("mark", episode=episode["id"], **wrong)


def test_a_run_that_changed_nothing_has_nothing_to_compare_and_nothing_to_verify(judged: Any) -> None:
    (episode,) = judged.ask("episodes", open_only=True)
    run = judged.ask("plan", episode=episode["id"])
    assert judged.ask("settings", id=run["id"]) == []
    assert judged.ask("verification", id=run["id"]) is None
