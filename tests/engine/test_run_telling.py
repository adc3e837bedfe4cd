"""Events of a run are written now or later, never in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.engine.run_telling import MOST_OWED, RunTelling
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from pathlib import Path


def test_what_cannot_be_written_is_owed_in_order_and_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    queries = Queries(journal.path)
    telling = RunTelling(journal)
    telling.tell("r1", 1.0, {"event": "first"})
    journal._db.execute("PRAGMA query_only = ON")
    telling.tell("r1", 2.0, {"event": "second"})
    telling.catch_up()
    telling.tell("r2", 2.0, *({"event": str(number)} for number in range(MOST_OWED + 5)))
    assert [event["event"] for _, _, event in queries.run_events("r1")] == ["first"]
    journal._db.execute("PRAGMA query_only = OFF")
    telling.tell("r1", 3.0, {"event": "third"})
    telling.catch_up()
    assert [(at_s, event["event"]) for _, at_s, event in queries.run_events("r1")] == [
        (1.0, "first"),
        (2.0, "second"),
        (3.0, "third"),
    ]
    assert [event["event"] for _, _, event in queries.run_events("r2", limit=2)] == ["5", "6"]
    queries.close()
    journal.close()
