"""Dry runs are followed beside everything else; one that goes wrong is given up and said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.dry_runs import DryRuns
from unveil.engine.run_telling import RunTelling
from unveil.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.ansible
@pytest.mark.slow
def test_one_whose_answer_cannot_be_read_is_given_up(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    dry_runs = DryRuns(here.supervisor, RunTelling(here.journal))
    dry_runs.start(run)
    (directory,) = (here.folder / "runs").glob("dry-*")
    deadline = time.monotonic() + 40
    while not (directory / "result.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    (directory / "result.json").write_text("{")
    child = dry_runs._children[run.id]
    (trouble,) = dry_runs.second(1.0)
    assert run.id in trouble
    assert dry_runs.second(2.0) == ()
    child._process.wait(60)


def test_a_playbook_that_others_may_write_is_not_even_looked_through(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    (here.folder.parent / "kb/apply.yml").chmod(0o666)
    with pytest.raises(RefusedError, match="written by others"):
        here.driver.dry_run(run)
