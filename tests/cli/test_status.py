"""`unveil status --watch`: for who listens instead of looking, each thing is said once."""

from __future__ import annotations

from typing import Any

import pytest

from unveil.cli.status import Teller
from unveil.errors import WatcherAbsentError

HOSTILE = "/pods/\x1b[2J\u202egnp"


def window(index: int, *, matched: bool = False) -> dict[str, Any]:
    return {
        "watch": 1, "index": index, "wall_s": 1000.0 + index, "verdict": {"state": "normal", "severity": 0.1},
        "sightings": [{"fingerprint": "f", "entity": f"cgroup:{HOSTILE}", "answer": "match"}] if matched else [],
        "attribution": {"features": []},
    }  # fmt: skip


class Scripted:
    def __init__(self) -> None:
        self.windows = [window(0)]
        self.episodes: list[dict[str, Any]] = []
        self.stale: float | None = None
        self.withheld = ""

    def episode(self, state: str) -> None:
        entity = {"kind": "cgroup", "key": HOSTILE}
        self.episodes = [{"id": "e1", "state": state, "fingerprint": "f", "entity": entity, "last_s": 1003.0}]

    def call(self, method: str, **_: Any) -> Any:
        if method == "status":
            problems = ["x.yml:3:1: no"] if self.stale else []
            return {"knowledge": {"stale_since_s": self.stale, "problems": problems, "withheld": self.withheld}}
        return list(reversed(self.windows)) if method == "windows" else self.episodes


def test_each_window_and_each_change_is_said_once_in_plain_text() -> None:
    watcher, teller = Scripted(), Teller()
    assert len(teller.look(watcher)) == 1
    assert teller.look(watcher) == []
    watcher.windows.append(window(1, matched=True))
    watcher.episode("firing")
    said = teller.look(watcher)
    assert [line.split()[2] for line in said] == ["window", "episode"], said
    assert "e1 firing: f on cgroup:/pods/" in said[1]
    assert "\x1b" not in "".join(said)
    assert teller.look(watcher) == []
    watcher.episode("cleared")
    watcher.stale = 5.0
    assert [line.split(":")[0] for line in teller.look(watcher)][-1] == "STALE"
    watcher.stale = None
    assert teller.look(watcher) == ["knowledge base in use is that on disk again"]
    watcher.withheld = "roles do not hold: \x1b[2J may be written by others"
    assert teller.look(watcher) == ["problem: roles do not hold: \\x1b[2J may be written by others"]
    watcher.withheld = ""
    assert teller.look(watcher) == ["roles and modes hold again"]


def test_a_watcher_that_goes_is_waited_for_and_one_that_never_was_is_an_error() -> None:
    teller = Teller()
    with pytest.raises(WatcherAbsentError):
        teller.absent("nobody listens")
    teller.look(Scripted())
    assert teller.absent("it hung up") == ["watcher gone: it hung up; waiting for it"]
    assert teller.absent("it hung up") == []
    assert teller.look(Scripted()) == ["watcher answers again"]
