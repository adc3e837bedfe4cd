"""The benchmark under stress: what it makes of what it saw, and the whole of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unveil.benchmarks.stress import Reading, main, report

BEGIN = Reading(
    at_s=100.0, window=10, taken=130, missed=0, late=0, late_p99_ms=0.1, spent_s=1.0, rss_mb=45.0
)  # fmt: skip
END = replace(BEGIN, at_s=160.0, window=70, taken=720, missed=10, late=40, late_p99_ms=12.0, spent_s=1.6)


def test_a_watcher_that_keeps_up_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert report((BEGIN, END), "none") == 0
    said = capsys.readouterr().out
    assert "no window missed, every tick counted, memory steady" in said
    assert "1.00" in said


@pytest.mark.parametrize(
    ("end", "what"),
    [
        (replace(END, window=60), "10 windows are missing"),
        (replace(END, missed=0, taken=700), "neither taken nor counted"),
        (replace(END, rss_mb=55.0), "memory grew by 10.0 MB"),
    ],
)
def test_what_is_wrong_is_named(end: Reading, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report((BEGIN, end), "none") == 1
    assert what in capsys.readouterr().out


@pytest.mark.longest
@pytest.mark.slow
def test_the_real_command_is_measured_under_load(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--minutes", "0.1", "--no-gpu"])
    said = capsys.readouterr().out
    assert code in (0, 1)
    assert "lateness p99" in said
