"""What the watch does beside judging: a new knowledge base is in use at once, the rest once in a while."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from unveil.engine import ticker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

HOUR_NS = 3600 * 10**9


def test_a_new_knowledge_base_waits_for_no_second(
    watch: Callable[..., Any], kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticker, "TICKS", 10_000)  # a "second" of a thousand: nothing is judged after the first tick
    watcher = watch()
    file = kb / "fingerprints/memory/some_dirt.yml"

    def edit() -> None:
        end = time.monotonic() + 60
        while watcher.lateness.taken < 2 and time.monotonic() < end:
            time.sleep(0.02)
        file.write_text(file.read_text().replace("level: low", "level: high"))
        while watcher.knowledge.current.generation < 2 and time.monotonic() < end:
            time.sleep(0.02)
        watcher.stop()

    editor = threading.Thread(target=edit)
    editor.start()
    watcher.run()
    editor.join()
    assert watcher.knowledge.current.generation == 2, "long before the second was over"
    assert watcher.knowledge.current.fingerprints[0].level == "high"
    assert watcher.queries.knowledge().generation == 2, "and it is in the journal"


def test_old_windows_go_once_a_minute_and_the_cost_is_noted_every_ten_seconds(watch: Callable[..., Any]) -> None:
    watcher = watch()
    done: list[str] = []
    watcher.journal.prune = lambda **_: done.append("prune")
    watcher.cost.mark = lambda: done.append("cost")
    for second in range(61):
        watcher._housekeeping.second(HOUR_NS + second * 10**9)
    assert (done.count("prune"), done.count("cost")) == (2, 7)
