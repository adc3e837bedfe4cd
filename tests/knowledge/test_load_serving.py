"""The child's end of the pipe: what breaks is told, and what has grown makes room."""

from __future__ import annotations

import io
import json
import os
import threading
from typing import TYPE_CHECKING

from unveil.knowledge.load_serving import serve

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_breaks_in_the_loader_is_told_and_the_next_request_is_served(kb: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as requests:
        with os.fdopen(write, "wb") as asking:
            asking.write(b"nonsense\n")
            asking.write(json.dumps({"root": str(kb), "generation": 1, "known": []}).encode() + b"\n")
        answers = io.BytesIO()
        serve(requests, answers)
    lines = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert lines[0]["failed"].startswith("JSONDecodeError")
    assert lines[-1]["loaded"]["usable"]


def test_a_child_that_has_grown_makes_room_for_a_fresh_one(monkeypatch: pytest.MonkeyPatch, kb: Path) -> None:
    held = iter((10_000_000, 19_000_000, 21_000_000))
    monkeypatch.setattr("unveil.knowledge.load_serving._private_bytes", lambda: next(held))
    request = json.dumps({"root": str(kb), "generation": 1, "known": []}).encode() + b"\n"
    read, write = os.pipe()
    told, answered = os.pipe()
    with os.fdopen(read, "rb") as requests, os.fdopen(answered, "wb") as answers:
        serving = threading.Thread(target=serve, args=(requests, answers), kwargs={"rest_s": 0.05}, daemon=True)
        serving.start()
        with os.fdopen(told, "rb") as lines, os.fdopen(write, "wb", buffering=0) as asking:
            for expected in (10_000_000, 19_000_000):
                asking.write(request)
                while "resting" not in (line := json.loads(lines.readline())):
                    pass
                assert line == {"resting": expected}
            asking.write(request)
            serving.join(timeout=60)
            assert not serving.is_alive()
