"""The benchmark of days: which stretches are watched, in which order, and what is said of the demo's healthy minute."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from unveil.benchmarks import days
from unveil.errors import BadInputError
from unveil.knowledge.backtest import DAY_S, Fire
from unveil.knowledge.labels import Interval

DEMO = Path(__file__).parents[2] / "unveil/demo/recording.parquet"


def labels(*intervals: str, workload: str = "") -> str:
    told = "".join(f"  - {{{each}}}\n" for each in intervals)
    named = f"workload: {workload}\n" if workload else ""
    return f"apiVersion: unveil/v1\nkind: RecordingLabels\n{named}intervals:\n{told}"


def recording(folder: Path, name: str, told: str) -> Path:
    (folder / f"{name}.labels.yml").write_text(told)
    path = folder / f"{name}.parquet"
    path.touch()
    return path


def test_a_stretch_is_healthy_from_its_beginning_to_its_end_or_the_beginning_of_another(tmp_path: Path) -> None:
    whole = recording(tmp_path, "whole", labels("from: 0, label: healthy", workload="a"))
    faulty = recording(
        tmp_path, "faulty", labels("from: 0, to: 9, label: healthy", "from: 9, fault: some_fault", workload="a")
    )
    inert = recording(tmp_path, "inert", labels("from: 0, to: 9, label: healthy", "from: 12, label: healthy"))
    late = recording(tmp_path, "late", labels("from: 5, label: healthy"))
    paths = (whole, faulty, inert, late, whole)
    assert {
        each: [s.recording for s in own] for each, own in days.stretches(paths, known=(), lead_ins=False).items()
    } == {"a": [whole]}
    with pytest.raises(BadInputError, match="no recording is healthy from its beginning on"):
        days.stretches((faulty, late), known=(), lead_ins=False)
    both = days.stretches(paths, known=(), lead_ins=True)
    assert {each: [(s.recording, s.healthy.to_s) for s in own] for each, own in both.items()} == {
        "": [(inert, 9)],
        "a": [(whole, float("inf")), (faulty, 9)],
    }


def test_all_stretches_come_before_any_comes_again_and_the_order_is_that_of_the_seed() -> None:
    healthy = Interval(from_s=0, to_s=9, labels=frozenset())
    chosen = [days.Stretch(recording=Path(name), workload="", healthy=healthy) for name in "abcd"]
    orders = [[str(each.recording) for each in islice(days.in_turn(chosen, seed=seed), 40)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert {"".join(sorted(orders[0][at : at + 4])) for at in range(0, 40, 4)} == {"abcd"}
    assert len({"".join(orders[0][at : at + 4]) for at in range(0, 40, 4)}) > 1


@pytest.mark.slow
def test_the_demos_healthy_minutes_are_watched_again_and_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(days, "WARM_UP_S", 60.0)
    assert days.main([str(DEMO), "--lead-ins", "--days", "0.002"]) == 0
    said = capsys.readouterr().out
    assert "The stretches repeat" in said
    assert said.splitlines()[-1] == "at most one false episode a day"


def test_what_is_said_of_a_stretch_counts_after_the_warming_up_only_and_more_than_one_a_day_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own,) = days.stretches([DEMO], known=("reduced_huge_page_coverage",), lead_ins=True).values()
    short = [replace(own[0], healthy=replace(own[0].healthy, to_s=20.0))]
    monkeypatch.setattr(days, "WARM_UP_S", 15.0)
    told = days.watch_for(short, days=10 / DAY_S, seed=0)
    (trace,) = told.traces  # the second of two
    assert all(window.end_s <= 21 for window in trace.windows)
    assert told.distinct_s.keys() == {DEMO}
    fire = Fire(fingerprint="some", entity="host", started_s=5, fired_s=9)
    told.traces = [replace(trace, fires=(fire,))]
    told.alarms = [(str(DEMO), 7.0, ("cpu.busy.rate +3.0",)), (str(DEMO), 9.0, ("cpu.busy.rate +4.0",))]
    assert days.report({"": told}, ["some"]) == 1
    said = capsys.readouterr().out
    assert "some 1" in said
    assert "7 to 9 s" in said
    assert said.splitlines()[-1] == "MORE than one false episode a day"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["missing.parquet"], "there is no recording missing.parquet"),
        ([str(DEMO), "--days", "0"], "0 is no number of days"),
    ],
)
def test_what_is_wrong_is_one_line(asked: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert days.main(asked) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1
