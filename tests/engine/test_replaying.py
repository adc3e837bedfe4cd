"""A recording watched as if it were live: twice the same, bit for bit what was seen, and no host to change."""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.observation import Observation
from unveil.engine.pipeline import Pipeline
from unveil.engine.replaying import RecordedWatch
from unveil.errors import RefusedError, UnreadableError
from unveil.host.recording import RecordingWriter
from unveil.host.replay import Replay
from unveil.knowledge.loading import load
from unveil.records.codec import encode

if TYPE_CHECKING:
    from unveil.engine.pipeline import Outcome


def replayed(path: Path, kb: Path) -> tuple[list[Outcome], list[Any]]:
    watch = RecordedWatch(str(path), kb=str(kb))
    with closing(watch):
        outcomes = list(watch.outcomes())
        return outcomes, watch.call("episodes")


def test_two_replays_agree_to_the_last_bit(recording: Path, kb: Path) -> None:
    (one, episodes), (other, others) = replayed(recording, kb), replayed(recording, kb)
    assert len(one) >= 3
    assert [encode(outcome.summary) for outcome in one] == [encode(outcome.summary) for outcome in other]
    assert [o.vector.values.tobytes() for o in one] == [o.vector.values.tobytes() for o in other]
    assert episodes == others
    assert episodes[0]["fingerprint"] == "some_dirt"


@pytest.mark.slow
def test_a_replay_of_what_a_live_watch_saw_gives_the_same_windows_bit_for_bit(tmp_path: Path, kb: Path) -> None:
    knowledge = load(kb).knowledge
    assert knowledge is not None
    numbers = itertools.count(1)
    live = Pipeline(
        watch=1, fingerprints=knowledge.fingerprints, generation=knowledge.generation,
        new_id=lambda: f"e{next(numbers):012x}",
    )  # fmt: skip
    seen: list[Outcome] = []
    path = tmp_path / "seen.parquet"
    with closing(Observation(Path("/"), gpu=False)) as observation, closing(RecordingWriter(path, {})) as writer:
        begin = time.monotonic_ns()
        for tick in range(1, 61):
            time.sleep(max(0, begin + tick * 100_000_000 - time.monotonic_ns()) / 1e9)
            observation.tick(time.monotonic_ns())
            if tick % 10 == 0:
                blocks, wall_s = observation.collect(time.monotonic_ns()), time.time()
                writer.write_facts(observation.facts)
                writer.write(blocks, wall_s=wall_s)
                seen += live.push(blocks, wall_s=wall_s, facts=observation.facts)
    again, _ = replayed(path, kb)
    assert len(seen) == len(again) >= 3
    for one, other in zip(seen, again, strict=True):
        assert one.vector.layout.ids == other.vector.layout.ids
        assert one.vector.values.tobytes() == other.vector.values.tobytes()
        for ours, theirs in zip(one.window.blocks, other.window.blocks, strict=True):
            assert ours.times_ns.tobytes() == theirs.times_ns.tobytes()
            assert ours.values.tobytes() == theirs.values.tobytes()
        assert encode(one.summary) == encode(other.summary)


def test_it_answers_like_a_watcher_and_refuses_what_would_change_a_host(recording: Path, kb: Path) -> None:
    watch = RecordedWatch(str(recording), kb=str(kb))
    assert watch.call("status")["window"] is None
    assert watch.status()["now_s"] == watch.started_s
    list(watch.outcomes())
    status = watch.call("status")
    assert json.loads(json.dumps(status)) == status
    assert (status["host"], status["profile"], status["watch"]) == ("some host", "recording", 1)
    assert status["features"] > 50
    (episode,) = watch.call("episodes", open_only=True)
    run = watch.call("plan", episode=episode["id"])
    assert watch.call("plan", episode=episode["id"])["id"] == run["id"]
    assert len(watch.call("runs")) == 1
    for method, params in (
        ("approve", {"hash": run["plan"]["hash"]}),
        ("apply", {"hash": run["plan"]["hash"]}),
        ("cancel", {}),
        ("rollback", {}),
        ("dry_run", {}),
    ):
        with pytest.raises(RefusedError, match="this is a recording"):
            watch.call(method, id=run["id"], **params)
    with pytest.raises(RefusedError, match="a recording keeps the knowledge base"):
        watch.call("reload")
    assert json.loads(json.dumps(watch.call("knowledge"))) == watch.call("knowledge")
    watch.close()


def test_nothing_is_left_of_a_replay_not_even_of_one_that_could_not_begin(
    recording: Path, kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    watch = RecordedWatch(str(recording), kb=str(kb))
    assert len(list(place.iterdir())) == 1
    watch.close()
    (kb / "fingerprints/memory/some_dirt.yml").write_text("kind: [")
    with pytest.raises(UnreadableError, match=r"some_dirt\.yml"):
        RecordedWatch(str(recording), kb=str(kb))
    with pytest.raises(UnreadableError):
        RecordedWatch(str(tmp_path / "absent.parquet"))
    assert list(place.iterdir()) == []


def test_a_recording_that_was_cut_off_is_said_to_be_damaged(recording: Path, kb: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(recording.read_bytes()[:-40])
    with pytest.raises(UnreadableError):
        replayed(cut, kb)
    assert len(list(Replay(recording))) == 6


@pytest.mark.slow
def test_a_plan_is_of_the_time_when_the_fault_was_there_also_when_the_recording_went_on_after_its_end() -> None:
    from unveil.cli.demo import recording as shipped

    watch = RecordedWatch(shipped())
    with closing(watch):
        list(watch.outcomes())
        assert "[always]" in watch.facts.settings["file:/sys/kernel/mm/transparent_hugepage/enabled"], "it was restored"
        (episode,) = watch.call("episodes", open_only=True)
        (change,) = watch.call("plan", episode=episode["id"])["plan"]["changes"]
        assert "[never]" in change["before"]
        assert change["after"] == "always"


def test_a_watch_continues_with_what_an_earlier_one_learned(recording: Path, kb: Path) -> None:
    with closing(RecordedWatch(str(recording), kb=str(kb))) as first:
        seen = len(list(first.outcomes()))
        learnt = first.pipeline.ensemble.reference
        assert learnt is not None
        with closing(RecordedWatch(str(recording), kb=str(kb))) as second:
            second.continue_with(first.pipeline.ensemble)
            next(second.outcomes())
            reference = second.pipeline.ensemble.reference
            assert reference is not None
            assert reference.windows >= min(seen, learnt.windows)
