"""What is told before any host is asked; three real hosts are in tests/journeys/test_fleet.py."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.fleet import Fleet
from unveil.engine.fleet_plan import PLAN, find_fleet, list_fleets, plan_fleet
from unveil.engine.knowledge import KnowledgeInUse
from unveil.errors import BadInputError, ConflictError, RefusedError, UnreadableError
from unveil.records.codec import encode
from unveil.records.fleet import FleetHost, FleetPlan
from unveil.records.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from unveil.execution.remote import HostAnswer


@pytest.fixture
def knowledge(kb: Path) -> Iterator[KnowledgeInUse]:
    found = KnowledgeInUse(str(kb), now_s=1.0)
    yield found
    found.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, HostAnswer]:
    """Let hosts answer without a connection."""
    from unveil.execution.remote import HostAnswer, Remote

    answers = {
        "h10": HostAnswer(contents={"sysctl:vm.dirty_ratio": "20"}),
        "h2": HostAnswer(contents={"sysctl:vm.dirty_ratio": "20"}),
        "h3": HostAnswer(failure="cannot be reached: no route"),
    }
    monkeypatch.setattr(Remote, "ask", lambda self, pattern, wanted, write=False: answers)
    return answers


def planned(home: Path, knowledge: KnowledgeInUse, **given: Any) -> FleetPlan:
    words = {"remediation": "some_fix", "inventory": "h,", "pattern": "all", "actor": "uid:0", **given}
    return plan_fleet(home, knowledge, **words)


def test_hosts_go_by_name_and_one_that_does_not_answer_says_why(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer]
) -> None:
    made = planned(tmp_path / "fleet", knowledge)
    assert [host.name for host in made.hosts] == ["h2", "h3", "h10"]
    assert made.hosts[1].reason == "cannot be reached: no route"
    assert find_fleet(tmp_path / "fleet", made.id[:5]) == made
    assert list_fleets(tmp_path / "fleet") == (made,)


def test_what_is_wrong_is_told_before_a_host_is_touched(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer]
) -> None:
    for wrong, error, says in (
        ({"remediation": "no_such"}, BadInputError, "no remediation"),
        ({"serial": ("0",)}, BadInputError, "no size"),
        ({"given": {"x": "1"}}, BadInputError, "no variable"),
        ({"given": {"ratio": "99"}}, BadInputError, "not within"),
    ):
        with pytest.raises(error, match=says):
            planned(tmp_path / "fleet", knowledge, **wrong)
    with pytest.raises(BadInputError, match="no fleet plan"):
        find_fleet(tmp_path / "fleet", "")


def test_a_profile_that_observes_refuses_and_so_does_another_that_is_at_it(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer]
) -> None:
    home = tmp_path / "fleet"
    made = planned(home, knowledge)
    first = Fleet(home, made, knowledge, actor="uid:0")
    with pytest.raises(RefusedError, match="observe only"):
        first.apply()
    with pytest.raises(RefusedError, match="carried out already"):
        Fleet(home, made, knowledge, actor="uid:0")
    first.close()
    other = Fleet(home, replace(made, revision="other"), knowledge, actor="uid:0", profile="manual")
    with pytest.raises(RefusedError, match="not what it was"):
        other.apply()
    other.close()


def test_a_damaged_plan_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "f0123456789ab"
    folder.mkdir()
    (folder / PLAN).write_text(json.dumps(encode(FleetHost(name="x"))))
    with pytest.raises(UnreadableError, match="cannot be used"):
        list_fleets(tmp_path)


def test_a_name_that_means_other_hosts_as_well_stops_before_anything_is_begun(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(tmp_path / "fleet", knowledge)  # whatever is asked, all three answer, as for a host called !h9
    fleet = Fleet(tmp_path / "fleet", made, knowledge, actor="uid:0", profile="manual")
    monkeypatch.setattr(fleet._remote, "play", lambda *_, **__: pytest.fail("it was played"))
    with pytest.raises(ConflictError, match="names 'h10' as well"):
        fleet.apply()
    assert {run.state for run in fleet.runs.values()} == {RunState.PLANNED}
    fleet.close()


def test_what_a_host_tells_of_settings_that_nobody_asked_about_is_not_kept(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    del asked["h10"], asked["h3"]
    made = planned(tmp_path / "fleet", knowledge)
    asked["h2"].contents["sysctl:kernel.core_pattern"] = "|/bin/evil"
    fleet = Fleet(tmp_path / "fleet", made, knowledge, actor="uid:0", profile="manual")
    assert fleet._begin(["h2"]) == ["h2"]
    assert list(fleet.runs["h2"].saved) == ["sysctl:vm.dirty_ratio"]
    fleet.close()


def test_plans_that_others_may_write_are_not_used(
    tmp_path: Path, knowledge: KnowledgeInUse, asked: dict[str, HostAnswer]
) -> None:
    home = tmp_path / "fleet"
    made = planned(home, knowledge)
    home.chmod(0o777)
    with pytest.raises(RefusedError, match="written by others"):
        find_fleet(home, made.id)
    with pytest.raises(RefusedError, match="written by others"):
        planned(home, knowledge)
