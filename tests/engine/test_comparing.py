"""All detectors over one recording: the same past, nothing learned while it is scored, and what a window costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from unveil.detection.catalogue import DETECTORS
from unveil.engine.backtesting import Job
from unveil.engine.comparing import ComparingJob, compare_all, timed
from unveil.errors import UnreadableError

DEMO = str(Path(__file__).parents[2] / "unveil/demo/recording.parquet")


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    job = ComparingJob(watched=Job(recording=str(tmp_path / "none.parquet")))
    with pytest.raises(UnreadableError, match="none"):
        compare_all([job], processes=1, done=lambda _: None)


def test_a_detector_whose_time_is_taken_is_the_same_detector() -> None:
    kinds, costs = timed(DETECTORS)
    assert [kind.name for kind in kinds] == list(costs) == [kind.name for kind in DETECTORS]
    assert all(kind.fit is own.fit for kind, own in zip(kinds, DETECTORS, strict=True))


@pytest.mark.slow
def test_every_detector_sees_every_window_of_a_recording() -> None:
    told: list[int] = []
    (run,) = compare_all([ComparingJob(watched=Job(recording=DEMO))], processes=1, done=told.append)
    assert told == [1]
    names = {kind.name for kind in DETECTORS}
    judged = [window for window in run.windows if window.judged]
    assert len(run.windows) - len(judged) == 60  # its own first minute is the past
    assert all(set(window.strengths) == names for window in judged[1:])
    assert set(run.cost_us) == names
    assert run.right == {"reduced_huge_page_coverage": "memory"}
    faulty = [window for window in judged if window.start_s > 120 and window.end_s < 150]
    assert {window.leading() for window in faulty} == {"memory"}
    assert all("reduced_huge_page_coverage" in window.matched for window in faulty[2:])
