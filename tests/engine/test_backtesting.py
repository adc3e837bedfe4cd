"""Recordings watched for a backtest: what fired, what would have been done after limits, side by side the same."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from unveil.engine.backtesting import SITE, Desk, Job, watch_all, watch_one
from unveil.engine.replaying import RecordedWatch
from unveil.errors import BadInputError, UnreadableError

if TYPE_CHECKING:
    from pathlib import Path

LABELS = "apiVersion: unveil/v1\nkind: RecordingLabels\nintervals: [{from: 0, label: some_dirt}]\n"
REMEDIATION = "playbooks/some_fix/remediation.yml"


@pytest.fixture
def labelled(recording: Path, tmp_path: Path) -> Path:
    """Give a copy of the recording with labels beside it."""
    copy = tmp_path / "host.parquet"
    shutil.copy(recording, copy)
    (tmp_path / "host.labels.yml").write_text(LABELS)
    return copy


def edit(kb: Path, old: str, new: str) -> None:
    text = (kb / REMEDIATION).read_text()
    assert old in text
    (kb / REMEDIATION).write_text(text.replace(old, new, 1))


def test_windows_fires_and_actions_are_kept_by_time(labelled: Path, kb: Path) -> None:
    trace = watch_one(Job(recording=str(labelled), kb=str(kb)))
    assert trace.recording == "host.parquet"
    assert [round(each.end_s - each.start_s, 1) for each in trace.windows] == [3.0] * len(trace.windows)
    assert [round(b.end_s - a.end_s, 1) for a, b in zip(trace.windows, trace.windows[1:], strict=False)] == [1.0] * (
        len(trace.windows) - 1
    )
    assert 3.0 <= trace.windows[0].end_s <= 5.0
    assert all(window.matched == {"some_dirt"} for window in trace.windows)
    (fire,) = trace.fires
    assert fire.started_s == trace.windows[0].end_s
    assert fire.fired_s in [window.end_s for window in trace.windows]
    (action,) = trace.actions
    assert (action.fingerprint, action.remediation, action.outcome) == ("some_dirt", "some_fix", "asks")
    assert [change.rpartition(" → ")[2] for change in action.changes] == ["30"]


@pytest.mark.parametrize(
    ("mode", "profile", "outcome", "reason"),
    [
        ("approve", "auto", "asks", ""),
        ("approve", "manual", "person", "only a person may plan it"),
        ("approve", SITE, "observed", "the profile of this host is to observe only"),
        ("observe", "auto", "observed", "the profile of this host is to observe only"),
    ],
)
def test_what_would_be_done_is_what_the_policy_says(
    labelled: Path, kb: Path, mode: str, profile: str, outcome: str, reason: str
) -> None:
    edit(kb, "mode: approve", f"mode: {mode}")
    (action,) = watch_one(Job(recording=str(labelled), kb=str(kb), profile=profile)).actions
    assert action.outcome == outcome
    assert reason in action.reason


def test_a_fix_that_is_stable_and_automatic_would_run_by_itself(labelled: Path, kb: Path) -> None:
    edit(kb, "mode: approve", "mode: auto")
    edit(kb, "status: test", "status: stable")
    edit(kb, "within: 24h}", "within: 24h, max_hosts: 3}")
    (action,) = watch_one(Job(recording=str(labelled), kb=str(kb))).actions
    assert action.outcome == "runs"


def test_a_second_fire_within_the_cooldown_is_held_back(labelled: Path, kb: Path) -> None:
    with closing(RecordedWatch(str(labelled), kb=str(kb))) as watch:
        (episode,) = [each for outcome in watch.outcomes() for each in outcome.changed if each.fired_s is not None]
        desk = Desk(watch, "auto")
        desk.consider(episode, 4.0)
        desk.consider(episode, 5.0)
    assert [action.outcome for action in desk.actions] == ["asks", "refused"]
    assert "the cooldown is 1800 s" in desk.actions[1].reason


def test_what_cannot_be_planned_on_that_host_is_refused_with_the_reason(labelled: Path, kb: Path) -> None:
    edit(kb, "sysctl:vm.dirty_ratio", "sysctl:vm.no_such_setting")
    (action,) = watch_one(Job(recording=str(labelled), kb=str(kb))).actions
    assert (action.outcome, action.changes) == ("refused", ())
    assert "vm.no_such_setting cannot be read" in action.reason


def test_without_labels_or_with_wrong_ones_nothing_is_watched(recording: Path, labelled: Path, kb: Path) -> None:
    with pytest.raises(UnreadableError, match="has no labels beside it"):
        watch_one(Job(recording=str(recording), kb=str(kb)))
    labelled.with_name("host.labels.yml").write_text(LABELS.replace("some_dirt", "no_such"))
    with pytest.raises(
        BadInputError, match=r"host\.labels\.yml:3:\d+: the knowledge base has no fingerprint 'no_such'"
    ):
        watch_one(Job(recording=str(labelled), kb=str(kb)))
    with pytest.raises(UnreadableError):
        watch_one(Job(recording=str(labelled.with_name("absent.parquet")), kb=str(kb)))


@pytest.mark.slow
def test_side_by_side_comes_what_comes_one_after_the_other_in_the_order_of_the_jobs(labelled: Path, kb: Path) -> None:
    for name in ("second", "third"):
        shutil.copy(labelled, labelled.with_name(f"{name}.parquet"))
        labelled.with_name(f"{name}.labels.yml").write_text(LABELS)
    jobs = [
        Job(recording=str(labelled.with_name(f"{name}.parquet")), kb=str(kb)) for name in ("third", "host", "second")
    ]
    told: list[int] = []
    one = watch_all(jobs, processes=1, done=told.append)
    other = watch_all(jobs, processes=2, done=told.append)
    assert one == other
    assert [trace.recording for trace in other] == ["third.parquet", "host.parquet", "second.parquet"]
    assert told == [1, 2, 3, 1, 2, 3]
    labelled.with_name("second.labels.yml").unlink()
    with pytest.raises(UnreadableError, match=r"second\.parquet has no labels") as caught:
        watch_all(jobs, processes=2, done=told.append)
    assert caught.value.hint == "write second.labels.yml"
