"""What a running watcher can be asked and told: every method, and everything that is wrong with a question."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.commands import MAX_SILENCE_S
from unveil.errors import BadInputError, ConflictError, RefusedError, UnveilError
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FACTLESS_METHODS = (
    "ping",
    "status",
    "silences",
    "knowledge",
    "features",
    "facts",
    "windows",
    "episodes",
    "runs",
    "audit",
)


@pytest.fixture
def judged(watch: Callable[..., Any], seconds: list[Any]) -> Any:
    """Give a watcher that has judged ten seconds, so that its one fingerprint fires; `ask` asks it."""
    watcher = watch()
    begin = time.time() - 10
    for number, blocks in enumerate(seconds[:10]):
        for outcome in watcher.pipeline.push(blocks, wall_s=begin + number, facts=watcher.facts):
            watcher.journalling.second(outcome.summary, outcome.changed)
    watcher.ask = lambda method, actor="uid:0", **params: watcher._commands.handle(method, params, actor)
    return watcher


def firing(watcher: Any) -> dict[str, Any]:
    (episode,) = watcher.ask("episodes", open_only=True)
    assert episode["state"] == "firing"
    return dict(episode)


def test_every_question_has_an_answer_before_the_first_window_and_it_is_plain_json(watch: Callable[..., Any]) -> None:
    watcher = watch()
    for method in FACTLESS_METHODS:
        answer = watcher._commands.handle(method, {}, "uid:0")
        assert json.loads(json.dumps(answer)) == answer, method


def test_the_present_is_told_of_entities_features_and_why(judged: Any) -> None:
    (told,) = judged.ask("explain", fingerprint="some_dirt")
    assert told["answer"] == "match"
    assert told["clauses"][0]["subject"] == "feature memory.dirty.mean"
    assert judged.ask("explain", fingerprint="some_dirt", entity="host") == [told]
    rows = judged.ask("features", entity="host")
    assert {row["entity"] for row in rows} == {"host"}
    assert len(judged.ask("features")) > len(rows)
    assert [each["name"] for each in judged.ask("knowledge")["fingerprints"]] == ["some_dirt"]
    assert judged.ask("windows", limit=2)[0]["index"] == judged.pipeline.latest.window.index


WRONG = [
    ("no_such", {}, "no such method"),
    ("windows", {"limit": "many"}, "limit is to be int"),
    ("windows", {"limit": True}, "limit is to be int"),
    ("windows", {"before": [1]}, "a watch and an index"),
    ("windows", {"before": [1, "x"]}, "before is to be"),
    ("window", {"watch": 1 << 80, "index": 0}, "watch is to be int"),
    ("windows", {"colour": 1}, "unexpected keyword"),
    ("episode", {}, "missing a required"),
    ("episode", {"id": "e*"}, "no episode"),
    ("run", {"id": ""}, "no run"),
    ("explain", {"fingerprint": "no_such"}, "no episode and no fingerprint"),
    ("explain", {"fingerprint": "some_dirt", "entity": "planet:x"}, "names no entity"),
    ("features", {"entity": "\x1b[2J"}, "names no entity"),
    ("plan", {"episode": "e0", "actor": "root"}, "what the kernel says"),
    ("plan", {"episode": "nobody"}, "no episode"),
    ("silence", {"fingerprint": "*", "seconds": "long", "reason": "x"}, "seconds is to be float"),
    ("silence", {"fingerprint": "*", "seconds": 60, "reason": " "}, "needs a reason"),
    ("silence", {"fingerprint": "*", "seconds": MAX_SILENCE_S + 1, "reason": "x"}, "30 days"),
    ("silence", {"fingerprint": "*", "seconds": float("nan"), "reason": "x"}, "30 days"),
    ("silence", {"fingerprint": "*", "seconds": 60, "reason": "half \ud800"}, "reason is to be str"),
    ("silence", {"fingerprint": "some_dirth", "seconds": 60, "reason": "x"}, "no fingerprint in use is named like"),
    ("silence", {"fingerprint": "gpu_*", "seconds": 60, "reason": "x"}, "no fingerprint in use is named like"),
    ("end_silence", {"id": "s0"}, "no silence"),
    ("approve", {"id": "r0", "hash": ""}, "no run"),
]


def test_what_is_wrong_with_a_question_is_said(watch: Callable[..., Any]) -> None:
    watcher = watch()
    for method, params, why in WRONG:
        with pytest.raises(BadInputError, match=why):
            watcher._commands.handle(method, params, "uid:0")


def test_a_silence_for_a_misspelt_fingerprint_is_refused_with_the_one_that_was_meant(judged: Any) -> None:
    with pytest.raises(BadInputError) as refused:
        judged.ask("silence", fingerprint="some_dirth", seconds=60, reason="x")
    assert refused.value.hint == "did you mean some_dirt?"
    assert judged.ask("silences") == []


def test_a_fault_of_ours_is_not_called_bad_input(judged: Any) -> None:
    def broken(*, name: str) -> None:
        raise TypeError(name)

    judged._commands._questions["broken"] = broken
    with pytest.raises(TypeError):
        judged.ask("broken", name="x")


def test_a_fix_is_planned_approved_by_who_the_kernel_says_and_refused_under_a_silence(
    judged: Any, scratch: Path
) -> None:
    episode = firing(judged)
    run = judged.ask("plan", episode=episode["id"][:6])
    assert run["plan"]["changes"][0] | {"reason": ""} == {
        "address": "sysctl:vm.dirty_ratio", "before": "20", "after": "30", "coupled": False, "reason": "",
    }  # fmt: skip
    assert judged.ask("plan", episode=episode["id"], remediation="some_fix")["id"] == run["id"]
    with pytest.raises(BadInputError, match="does not remediate"):
        judged.ask("plan", episode=episode["id"], remediation="other_fix")
    with pytest.raises(ConflictError):
        judged.ask("approve", id=run["id"], hash="other")
    approved = judged.ask("approve", actor="uid:0 pid:7", id=run["id"], hash=run["plan"]["hash"])
    assert approved["steps"][-1]["actor"] == "uid:0 pid:7"
    silence = judged.ask("silence", fingerprint="some_*", seconds=60, reason="we know")
    assert [each["id"] for each in judged.ask("silences")] == [silence["id"]]
    with pytest.raises(RefusedError, match=r"silenced by uid:0.*we know"):
        judged.ask("apply", id=run["id"], hash=run["plan"]["hash"])
    judged.ask("end_silence", actor="uid:9", id=silence["id"])
    assert judged.ask("silences") == []
    judged.ask("cancel", id=run["id"])
    assert judged.ask("run", id=run["id"])["run"]["steps"][-1]["state"] == "canceled"
    with pytest.raises(RefusedError):
        judged.ask("rollback", id=run["id"])
    assert (scratch / "proc/sys/vm/dirty_ratio").read_text() == "20\n"


def test_an_episode_that_cleared_or_that_a_filter_covers_is_not_planned_for(judged: Any, kb: Path) -> None:
    episode = firing(judged)
    (kb / "inventory/filters").mkdir()
    (kb / "inventory/filters/on_purpose.yml").write_text(
        "apiVersion: unveil/v1\nkind: Filter\nname: on_purpose\nid: 47ffa719-1111-4222-8333-444455557777\n"
        "title: It is on purpose here\nowner: the tests\nreason: it is how we like it\n"
        "fingerprints: [some_dirt]\neffect: no_remediation\nexpires: '2100-01-01'\n"
    )
    judged.ask("reload")
    deadline = time.monotonic() + 60
    while not judged.knowledge.current.filters and time.monotonic() < deadline:
        judged._housekeeping.second(time.monotonic_ns())
        time.sleep(0.05)
    assert judged.knowledge.current.filters, judged.ask("status")["knowledge"]
    with pytest.raises(RefusedError, match="filter on_purpose"):
        judged.ask("plan", episode=episode["id"])
    (found,) = judged.pipeline.episodes.open
    assert found.id == episode["id"], "it goes on through the reload"
    judged.journal.put_episodes(judged.pipeline.episodes.replace((), time.time()))
    assert judged.history.find_episode(episode["id"]).state is EpisodeState.CLEARED
    with pytest.raises(RefusedError, match="has cleared"):
        judged.ask("plan", episode=episode["id"])


def test_every_refusal_travels(judged: Any) -> None:
    with pytest.raises(UnveilError, match="some_dirt was not asked of gpu:GPU-0") as caught:
        judged.ask("explain", fingerprint="some_dirt", entity="gpu:GPU-0")
    assert caught.value.hint == "it is asked of each host: without --entity all are shown"
