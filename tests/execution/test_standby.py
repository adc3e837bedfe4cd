from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution import processes
from unveil.execution.standby import Standby
from unveil.execution.supervisor import scrubbed_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.execution.supervisor import RunSupervisor


def test_one_stands_by_and_goes_when_it_is_let_go(tmp_path: Path) -> None:
    standby = Standby(tmp_path, lambda mark: scrubbed_environment(mark, tmp_path))
    assert standby.mark == ""
    assert standby.hand_over(tmp_path) is None
    standby.make_ready()
    mark = standby.mark
    standby.make_ready()
    assert standby.mark == mark, "one is enough"
    assert len(processes.marked(mark)) == 1
    standby.dismiss()
    assert not processes.marked(mark)
    assert standby.mark == ""


def test_one_that_is_about_to_leave_is_given_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standby = Standby(tmp_path, lambda mark: scrubbed_environment(mark, tmp_path))
    monkeypatch.setattr("unveil.execution.standby.WAIT_S", 0.0)
    standby.make_ready()
    assert standby.mark == ""
    mark = standby.work.name
    standby.make_ready()
    assert standby.work.name == mark, "none beside it"
    standby.dismiss()
    assert not processes.marked(mark)


@pytest.mark.ansible
@pytest.mark.slow
def test_a_run_takes_the_one_that_stands_by_and_nothing_of_it_is_left(
    supervisor: RunSupervisor, playbook: Callable[..., Path], kit: Any
) -> None:
    supervisor.directory.mkdir(mode=0o700)
    path = playbook("- ansible.builtin.debug: {msg: hello}\n")
    supervisor.stand_by()
    mark = supervisor.standing_by
    child = supervisor.start(kit.run(kit.plan(path)))
    assert child.request.mark == mark
    result, events = kit.finish(child)
    assert (result.status, result.survivors) == ("successful", 0)
    assert any(event.message == "hello" for event in events)
    assert not processes.marked(mark)
    assert (child.directory / "child.log").exists()


@pytest.mark.ansible
@pytest.mark.slow
def test_one_that_died_meanwhile_is_replaced_by_a_fresh_one(
    supervisor: RunSupervisor, playbook: Callable[..., Path], kit: Any
) -> None:
    supervisor.directory.mkdir(mode=0o700)
    supervisor.stand_by()
    (pid,) = processes.marked(supervisor.standing_by)
    processes.send({pid}, 9)  # type: ignore[arg-type]
    time.sleep(0.2)
    child = supervisor.start(kit.run(kit.plan(playbook("- ansible.builtin.debug: {msg: hello}\n"))))
    assert kit.finish(child)[0].status == "successful"
