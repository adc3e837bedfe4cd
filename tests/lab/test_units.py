"""What a fault cost is told from the workload's own units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.lab.units import Unit, chance, done, loss, read_units, settled_s

if TYPE_CHECKING:
    from pathlib import Path


def units(begin: float, end: float, each: float, seconds: float, phase: str = "train") -> list[Unit]:
    count = round((end - begin) / each)
    return [Unit(at_s=begin + number * each, phase=phase, seconds=seconds) for number in range(count)]


def test_what_is_said_is_read_and_a_line_cut_off_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done("train", 0.125)
    path = tmp_path / "run.units"
    path.write_text(capsys.readouterr().out + '{"at": 12.0, "ph')
    (unit,) = read_units(path)
    assert (unit.phase, unit.seconds) == ("train", 0.125)


def test_half_as_many_units_that_take_twice_as_long_are_half_of_the_throughput_lost() -> None:
    told = loss([*units(0, 10, 0.1, 0.1), *units(10, 20, 0.2, 0.2)], [(0, 10)], [(10, 20)])
    assert told is not None
    assert told.throughput == pytest.approx(0.5)
    assert told.latency == pytest.approx(1.0)


def test_each_phase_is_compared_with_itself() -> None:
    before = [*units(0, 5, 0.1, 0.1, "busy"), *units(5, 10, 0.5, 0.02, "quiet")]
    told = loss([*before, *units(10, 20, 0.5, 0.02, "quiet")], [(0, 10)], [(10, 20)])
    assert told is not None
    assert told.throughput == pytest.approx(0.0, abs=1e-9)
    assert told.latency == pytest.approx(0.0)


def test_without_units_nothing_is_known() -> None:
    assert loss(units(0, 10, 0.1, 0.1), [(0, 10)], [(10, 20)]) is None
    assert loss([], [(0, 10)], [(10, 20)]) is None


def test_stretches_apart_are_one_past_and_the_time_between_them_is_none() -> None:
    past = [*units(0, 10, 0.1, 0.1), *units(90, 100, 0.1, 0.1)]
    told = loss([*past, *units(100, 110, 0.2, 0.1)], [(0, 10), (90, 100)], [(100, 110)])
    assert told is not None
    assert told.throughput == pytest.approx(0.5)


def test_chance_is_what_a_healthy_stretch_loses_at_most_and_unknown_of_few() -> None:
    restless = [*units(0, 30, 0.1, 0.1), *units(30, 40, 0.2, 0.1)]
    told = chance(restless, [(0, 40)], 10)
    assert told is not None
    assert told.throughput == pytest.approx(1 - 0.5 / (350 / 400), abs=0.01)
    assert chance(restless, [(0, 15)], 10) is None


def test_work_has_settled_when_it_stays_as_it_was() -> None:
    well = [(0.0, 20.0)]
    slow_until_33 = [*units(0, 20, 0.1, 0.1), *units(20, 33, 0.2, 0.1), *units(33, 60, 0.1, 0.1)]
    assert settled_s(slow_until_33, well, (30.0, 60.0), look_s=5, near=0.1) == pytest.approx(33, abs=1)
    assert settled_s(slow_until_33, well, (40.0, 60.0), look_s=5, near=0.1) == pytest.approx(40)
    never = [*units(0, 20, 0.1, 0.1), *units(20, 60, 0.2, 0.1)]
    assert settled_s(never, well, (30.0, 60.0), look_s=5, near=0.1) == 60
