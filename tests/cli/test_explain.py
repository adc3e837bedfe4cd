"""`unveil explain` of correlations: what they are made of, and what an episode is part of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unveil.benchmarks.kill_matrix import example_episode
from unveil.cli import connect
from unveil.cli.explain import draw_explained, explained
from unveil.cli.main import main
from unveil.errors import BadInputError, RefusedError
from unveil.matching.correlate import Correlator
from unveil.records.codec import encode
from unveil.records.correlation import Correlation
from unveil.records.entity import Entity, EntityKind
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    import pytest

HOSTILE = "/pods/\x1b[2J"
WHOLE = example_episode()
PART = replace(WHOLE, id="e0part", state=EpisodeState.FIRING, fired_s=50.0, entity=Entity(EntityKind.CGROUP, HOSTILE))
TOGETHER = Correlation(
    name="again_and_again", id="1", title="", status="test", level="low", description="", type="event_count",
    at_least=1, fingerprints=(PART.fingerprint,), group_by=EntityKind.HOST, timespan_s=60.0, hold_s=0.0,
    keep_firing_s=0.0,
)  # fmt: skip


class Scripted:
    """Answers as a watcher with one episode of a correlation, or as a journal, which knows none."""

    def __init__(self, *, runs: bool = True) -> None:
        self.runs = runs

    def call(self, method: str, **params: Any) -> Any:
        correlator = Correlator([TOGETHER])
        (match,) = correlator.push([PART], PART.last_s)
        if method == "episode" and params["id"] == "e1whole":
            return {"episode": encode(replace(WHOLE, id="e1whole", fingerprint=TOGETHER.name, last=match))}
        if method == "members" and self.runs:
            return {"of": encode(correlator.members(TOGETHER.name, match.entity)), "part_of": []}
        if method == "members":
            raise RefusedError("needs a running watcher", hint="start one")
        if method == "explain" and params["fingerprint"] == TOGETHER.name:
            return []
        raise BadInputError("no such", hint="look")


def test_an_episode_of_a_correlation_is_told_with_its_conditions_and_members(
    capsys: pytest.CaptureFixture[str],
) -> None:
    matches = explained(Scripted(), "e1whole")
    assert [each["entity"]["key"] for each in matches[0]["of"]] == [HOSTILE]
    draw_explained("e1whole", matches)
    said = capsys.readouterr().out
    assert "again_and_again on host: match" in said
    assert f"fires of {PART.fingerprint} gte 1 within 60 s" in " ".join(said.split())
    assert "Made of:" in said
    assert "e0part" in said
    assert "Part of:" not in said
    assert "\x1b" not in said


def test_a_journal_alone_tells_the_conditions_only() -> None:
    (match,) = explained(Scripted(runs=False), "e1whole")
    assert match["answer"] == "match"
    assert "of" not in match


def test_a_correlation_that_nothing_counts_for_is_said_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    draw_explained("again_and_again", explained(Scripted(), "again_and_again"))
    assert "none of the fingerprints that it joins fires" in capsys.readouterr().out


def test_the_command_hangs_up_whatever_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hung_up = []

    class Closing(Scripted):
        def close(self) -> None:
            hung_up.append(True)

    monkeypatch.setattr(connect, "watcher_or_journal", lambda _arguments: Closing())
    assert main(["explain", "e1whole", "--json"]) == 0
    assert main(["explain", "no_such_name"]) == 2
    assert hung_up == [True, True]
