"""The core as one function of what is pushed: no clock, no file, and no matter how samples are parcelled out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.benchmarks.features import SIZES, made_up_facts, made_up_layouts, made_up_second
from unveil.detection.ensemble import EnsembleSettings
from unveil.detection.reference import ReferenceSettings
from unveil.engine.pipeline import KEPT_SHARES, ORDINARY_SHARES, RECENT, Pipeline
from unveil.records.codec import encode
from unveil.records.correlation import Correlation
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fingerprint import FeatureClause, Fingerprint
from unveil.records.match import EpisodeState
from unveil.records.site import Filter
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.engine.pipeline import Outcome
    from unveil.records.fact import FactTable
    from unveil.records.sample import SampleBlock

LAYOUTS = made_up_layouts(*SIZES["small"])
FACTS = made_up_facts(1, 4)
SECONDS = [made_up_second(LAYOUTS, second) for second in range(90)]
SHORT = EnsembleSettings(reference=ReferenceSettings(warm_up=20))
WALL_S = 1_000_000.0


def fingerprint(name: str = "dirty", *, operator: str = "gte", threshold: float = 0.0, **more: Any) -> Fingerprint:
    clause = FeatureClause(name="c", feature="memory.dirty.mean", entity=None, operator=operator, threshold=threshold)
    made = Fingerprint(
        name=name, id=name, title="", status="test", level="low", description="", group_by=EntityKind.HOST,
        clauses=(clause,), condition="c", hold_s=2.0, keep_firing_s=2.0, subsystem=Subsystem.MEMORY, revision="1",
    )  # fmt: skip
    return replace(made, **more)


def pipeline(*fingerprints: Fingerprint, **more: Any) -> Pipeline:
    numbers = itertools.count(1)
    return Pipeline(
        watch=1, fingerprints=fingerprints or (fingerprint(),), generation=1,
        new_id=lambda: f"e{next(numbers):012x}", **{"settings": SHORT, **more},
    )  # fmt: skip


def push(into: Pipeline, parcels: Iterable[list[SampleBlock]], facts: FactTable = FACTS) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for blocks in parcels:
        newest_ns = max(int(block.times_ns[-1]) for block in blocks)
        outcomes += into.push(blocks, wall_s=WALL_S + newest_ns / 1e9, facts=facts)
    return outcomes


def cut(seconds: list[list[SampleBlock]], pieces: np.random.Generator) -> list[list[SampleBlock]]:
    """Return the same samples, parcelled out at other moments, each piece a block of its own."""
    parcels = []
    for blocks in seconds:
        begin, end = min(int(b.times_ns[0]) for b in blocks), max(int(b.times_ns[-1]) for b in blocks) + 1
        edges = [begin, *sorted(pieces.integers(begin, end, size=3).tolist()), end]
        for low, high in itertools.pairwise(edges):
            parcel = [
                replace(block, times_ns=block.times_ns[inside], values=block.values[inside])
                for block in blocks
                if (inside := (block.times_ns >= low) & (block.times_ns < high)).any()
            ]
            if parcel:
                parcels.append(parcel)
    return parcels


@pytest.mark.parametrize("seed", range(3))
def test_the_same_samples_cut_differently_lead_to_the_same(seed: int) -> None:
    whole = push(pipeline(), SECONDS[:40])
    pieces = push(pipeline(), cut(SECONDS[:40], np.random.default_rng(seed)))
    assert len(whole) == len(pieces) > 30
    for one, other in zip(whole, pieces, strict=True):
        assert one.vector.values.tobytes() == other.vector.values.tobytes()
        one_told, other_told = encode(one.summary), encode(other.summary)
        assert one_told.pop("wall_s") == pytest.approx(other_told.pop("wall_s"), abs=1e-3)
        assert one_told == other_told
        assert [each.state for each in one.changed] == [each.state for each in other.changed]


def test_it_is_unknown_while_it_warms_up_and_says_how_far_it_is() -> None:
    outcomes = push(pipeline(settings=EnsembleSettings()), SECONDS)
    states = [outcome.summary.verdict.state for outcome in outcomes]
    first = next(index for index, state in enumerate(states) if state is not State.UNKNOWN)
    assert first == EnsembleSettings().reference.warm_up
    assert "warming up" in outcomes[0].summary.verdict.reason
    assert outcomes[0].summary.attribution.features == ()
    for summary in (outcome.summary for outcome in outcomes):
        assert len(summary.attribution.features) <= KEPT_SHARES.get(summary.verdict.state, ORDINARY_SHARES)
    assert [outcome.summary.index for outcome in outcomes] == list(range(len(outcomes)))


def test_an_episode_opens_fires_and_is_cleared_by_what_the_windows_say() -> None:
    one = pipeline(fingerprint(threshold=0.0))
    assert one.latest is None
    assert one.matching("dirty", HOST) is None
    outcomes = push(one, SECONDS[:8])
    assert one.latest is outcomes[-1]
    assert one.matching("dirty", HOST) is True
    assert [each.state for outcome in outcomes for each in outcome.changed] == ["pending", "firing"]
    assert {sighting.answer for outcome in outcomes for sighting in outcome.summary.sightings} == {"match"}
    assert one.matching("no_such_fingerprint", HOST) is None


def test_what_fires_since_before_there_was_a_norm_is_part_of_it_and_what_began_later_is_never_learned() -> None:
    stands, comes = pipeline(fingerprint(threshold=0.0)), pipeline(fingerprint(threshold=1e18))
    for one in (stands, comes):
        push(one, SECONDS[:40])
    comes.replace_knowledge([fingerprint(threshold=0.0, revision="2")], generation=2, wall_s=WALL_S + 40)
    known = [one.ensemble.reference.windows for one in (stands, comes) if one.ensemble.reference is not None]
    assert known[0] == known[1] > SHORT.reference.warm_up
    for one in (stands, comes):
        push(one, SECONDS[40:])
        assert [episode.state for episode in one.episodes.open] == [EpisodeState.FIRING]
        assert one.ensemble.reference is not None
    assert stands.ensemble.reference is not None
    assert stands.ensemble.reference.windows > known[0] + 30
    assert comes.ensemble.reference is not None
    assert comes.ensemble.reference.windows < known[1] + 10


def test_another_generation_keeps_the_episodes_of_what_did_not_change() -> None:
    one = pipeline(fingerprint("same"), fingerprint("edited"), fingerprint("removed"))
    push(one, SECONDS[:8])
    before = {each.fingerprint: each for each in one.episodes.open}
    assert {each.state for each in before.values()} == {EpisodeState.FIRING}
    ended = one.replace_knowledge(
        (fingerprint("same"), fingerprint("edited", revision="2")), generation=2, wall_s=WALL_S + 9
    )
    assert {each.fingerprint for each in ended} == {"edited", "removed"}
    assert {each.state for each in ended} == {EpisodeState.CLEARED}
    assert [each.id for each in one.episodes.open] == [before["same"].id]
    outcomes = push(one, SECONDS[8:10])
    assert {outcome.summary.knowledge for outcome in outcomes} == {2}
    found = one.episodes.find("same", HOST)
    assert found is not None
    assert (found.id, found.state) == (before["same"].id, EpisodeState.FIRING)
    assert found.windows > before["same"].windows


def test_a_generation_that_compares_another_feature_gives_it_a_reference() -> None:
    name = "cpu.cgroup_usage.rate"
    pod = Entity(EntityKind.CGROUP, "/pod0")
    clause = FeatureClause(name="c", feature=name, entity=None, operator="up", threshold=3.0)
    one = pipeline(fingerprint())
    push(one, SECONDS[:30])
    assert one.latest is not None
    quiet = one.latest.judgement.reference
    assert name not in {feature.name for feature in quiet.scope.ids}
    relative = fingerprint(group_by=EntityKind.CGROUP, clauses=(clause,))
    one.replace_knowledge((relative,), generation=2, wall_s=WALL_S + 31)
    (outcome,) = push(one, SECONDS[30:31])
    assert outcome.judgement.reference is quiet, "what was learned stays"
    assert name in {feature.name for feature in quiet.scope.ids}
    assert one.matching("dirty", pod) is None, "there is nothing to compare with yet"


def test_what_a_fix_is_compared_with_is_the_mean_of_the_newest_windows() -> None:
    one = pipeline()
    assert one.recent("memory.dirty.mean", HOST) is None
    outcomes = push(one, SECONDS[:12])
    values = [outcome.vector.get("memory.dirty.mean", HOST) for outcome in outcomes[-RECENT:]]
    assert one.recent("memory.dirty.mean", HOST) == pytest.approx(np.mean(values))
    assert one.recent("memory.no_such.mean", HOST) is None


def test_a_window_without_a_sample_of_it_leaves_a_fingerprint_unknown_and_its_episode_alone() -> None:
    one = pipeline()
    push(one, SECONDS[:8])
    blind = [
        [block for block in blocks if not any(c.metric == "memory.dirty" for c in block.layout.channels)]
        for blocks in SECONDS[8:50]
    ]
    outcomes = push(one, blind)
    assert one.matching("dirty", HOST) is None
    assert [each.state for each in one.episodes.open] == [EpisodeState.FIRING], "unknown neither fires nor clears"
    assert all(each.answer == "match" for outcome in outcomes for each in outcome.summary.sightings)


def test_a_filter_that_suppresses_keeps_a_match_from_being_seen_and_ends_an_episode() -> None:
    on_purpose = Filter(
        name="on_purpose", id="1", title="", owner="", reason="", fingerprints=("dirty",), expires="2100-01-01",
        expires_s=9e12, hosts=("here",), effect="suppress",
    )  # fmt: skip
    one = pipeline(filters=(on_purpose,), host="here")
    outcomes = push(one, SECONDS[:8])
    assert one.episodes.open == ()
    assert all(outcome.summary.sightings == () for outcome in outcomes)
    elsewhere = pipeline(filters=(on_purpose,), host="there")
    push(elsewhere, SECONDS[:8])
    assert len(elsewhere.episodes.open) == 1
    elsewhere.replace_knowledge(
        (fingerprint(),), generation=2, wall_s=WALL_S + 9, filters=(replace(on_purpose, hosts=("*",)),)
    )
    cleared = [each for outcome in push(elsewhere, SECONDS[8:14]) for each in outcome.changed]
    assert [each.state for each in cleared] == [EpisodeState.CLEARED]


def test_a_correlation_fires_a_window_after_what_it_is_made_of() -> None:
    both = Correlation(
        name="both", id="c", title="", status="test", level="low", description="", type="temporal",
        fingerprints=("dirty", "other"), group_by=EntityKind.HOST, timespan_s=60.0, hold_s=0.0, keep_firing_s=2.0,
        effect="no_remediation", revision="1",
    )  # fmt: skip
    one = pipeline(fingerprint(), fingerprint("other"), correlations=(both,))
    outcomes = push(one, SECONDS[:20])
    fired = {
        episode.fingerprint: outcome.window.index
        for outcome in outcomes
        for episode in outcome.changed
        if episode.state is EpisodeState.FIRING
    }
    assert fired["both"] == fired["dirty"] + 1
    assert [each.name for each in one.exceptions] == ["both"]
    last_s = WALL_S + 1000
    ended = one.replace_knowledge((fingerprint(), fingerprint("other")), generation=2, wall_s=last_s)
    assert [episode.fingerprint for episode in ended] == ["both"], "it went with its correlation"
    assert one.exceptions == ()
