"""A plan fits into its minutes, gives each workload its pasts first, and goes on where it was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.lab import plan
from unveil.lab.__main__ import main
from unveil.lab.faults import FAULTS, HEALTHY
from unveil.lab.labels import Result, write
from unveil.lab.running import WORKLOADS
from unveil.lab.units import Loss, Unit, line

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_planned_is_there() -> None:
    assert set(plan.DEFAULT) <= plan.HELD_OUT.keys() <= WORKLOADS.keys()
    for faults in plan.HELD_OUT.values():
        assert set(faults) <= FAULTS.keys()
        assert len(set(faults)) == len(faults)
        assert "busy_but_healthy" in faults[:3], "false alarms are part of even a short plan"


@pytest.mark.parametrize("minutes", [40, 60, 90])
def test_a_plan_fits_into_its_minutes(minutes: int) -> None:
    steps = plan.held_out(minutes, plan.DEFAULT)
    takes = sum(step.seconds for step in steps) + len(plan.DEFAULT) * plan.START_S
    assert minutes * 60 - 110 * len(plan.DEFAULT) <= takes <= minutes * 60 or minutes == 90
    for name in plan.DEFAULT:
        mine = [step for step in steps if step.workload == name]
        assert [(step.fault, step.part) for step in mine[:2]] == [(kind, "past") for kind in HEALTHY]
        assert sum(step.lengths.total for step in mine[:2]) >= 300
        assert all(step.lengths.healthy >= 20 for step in mine[2:])
        assert len(mine) >= 6


def test_what_is_there_is_not_made_again_and_its_past_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = plan.held_out(40, ["embedding"])
    assert plan.known_past(tmp_path, "embedding", steps).units == ()
    first = steps[0]
    first.file(tmp_path, "").parent.mkdir()
    unit = Unit(at_s=1030.5, phase="document", seconds=0.25)
    first.file(tmp_path, ".units").write_text(line(unit))
    quiet = Result(
        workload="embedding", fault="none", begin_s=4, active_s=4, end_s=150, settled_s=150, seconds=152,
        lost=Loss(throughput=0.012, latency=0.0),
    )  # fmt: skip
    uses = {name: {"a": 1.0, "b": 2.0} for name in ("cores", "received", "read", "written", "anonymous", "cached")}
    write(first.file(tmp_path, ".result.json"), quiet, began=1000.0, uses=uses)
    assert not first.done(tmp_path), "its labels come last"
    first.file(tmp_path, ".labels.yml").touch()
    past = plan.known_past(tmp_path, "embedding", steps)
    assert past.units == (unit,)
    assert past.stretches == ((1000.0, 1152.0),)
    assert past.uses is not None
    assert past.uses.cores == {"a": 1.0, "b": 2.0}
    assert main(["--plan", "heldout", "--workload", "embedding", "--dry-run", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("True") == 1
    plan.table([first.file(tmp_path, ".parquet"), tmp_path / "absent.parquet"])
    told = capsys.readouterr().out
    assert "healthy" in told
    assert "1.2%" not in told, "what is healthy loses nothing"
