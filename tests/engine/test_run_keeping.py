from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.reserve import Reserve
from unveil.engine.run_keeping import RunKeeping
from unveil.errors import UnwritableError
from unveil.records.run import RunState
from unveil.remediation.lifecycle import Cause, advance

if TYPE_CHECKING:
    from collections.abc import Callable


def test_what_must_be_done_is_owed_and_written_with_every_step_when_there_is_room(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    keeping = RunKeeping(here.journal, Reserve(here.folder / "reserve"))
    here.journal._db.execute("PRAGMA query_only = ON")
    with pytest.raises(UnwritableError):
        keeping.keep(run)
    run = advance(run, RunState.APPROVED, Cause.OPERATOR, "uid:0", 2.0)
    keeping.keep_anyway(run)
    run = advance(run, RunState.CANCELED, Cause.OPERATOR, "uid:0", 3.0)
    keeping.keep_anyway(run)
    assert keeping.owes
    assert keeping.newest(here.stored(run)).state is RunState.CANCELED
    (trouble,) = keeping.catch_up()
    assert "not in the journal yet" in trouble
    here.journal._db.execute("PRAGMA query_only = OFF")
    assert keeping.catch_up() == ()
    assert not keeping.owes
    assert here.states(run) == ["planned", "approved", "canceled"]
    assert here.queries.broken_link() is None


def test_the_reserve_is_spent_before_anything_is_owed(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    place = here.folder / "reserve"
    keeping = RunKeeping(here.journal, Reserve(place))
    keeping.catch_up()
    assert place.exists()
    put_run = here.journal.put_run

    def only_with_room(kept: Any) -> None:
        if place.exists():
            raise UnwritableError("full")
        put_run(kept)

    here.journal.put_run = only_with_room
    keeping.keep_anyway(advance(run, RunState.CANCELED, Cause.OPERATOR, "uid:0", 3.0))
    assert here.states(run)[-1] == "canceled"
    assert not keeping.owes
    assert place.exists(), "it is made whole again where there is room"
