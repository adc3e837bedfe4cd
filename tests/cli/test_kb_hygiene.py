"""`unveil kb hygiene` says how far a journal reaches, and does not call one silent that had no time to speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.cli import connect
from unveil.cli.kb_hygiene import watched_s_of
from unveil.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Journal:
    """One watch that ended, one that was killed, one that was killed before its first window, and one that goes on."""

    def call(self, method: str, **given: Any) -> Any:
        match method:
            case "hits":
                return {}
            case "audit":
                started = ((1, 1000.0, 1100.0), (2, 2000.0, None), (3, 3000.0, None), (4, 4000.0, None))
                return {"watches": [{"watch": w, "started_s": s, "ended_s": e} for w, s, e in started]}
        newest = [(4, 4040.0), (2, 2020.0), (1, 1100.0)]
        before = given["before"] or [9, 0]
        found = next((each for each in newest if [each[0], 0] < before), None)
        if given["limit"] > 1 and given["before"] is not None:
            return []
        return [] if found is None else [
            {"watch": found[0], "index": 7, "wall_s": found[1], "sightings": []} for _ in range(given["limit"])
        ]  # fmt: skip


def test_what_was_between_watches_is_not_counted() -> None:
    assert watched_s_of(Journal()) == 100.0 + 20.0 + 0.0 + 40.0


def test_minutes_of_a_journal_call_nothing_silent(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect, "watcher_or_journal", lambda _arguments: Journal())
    command = ["kb", "hygiene", "--kb", str(few)]
    assert main(command) in {0, 1}
    said = " ".join(capsys.readouterr().out.split())
    assert "never fires" not in said
    assert "This host's journal tells of 2 min 40 s: too early to tell of 4 fingerprints that never fired" in said
    assert main([*command, "--silent-after", "0"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "never fires" in said
    assert "too early" not in said
    assert main([*command, "--silent-after", "soon"]) == 3
