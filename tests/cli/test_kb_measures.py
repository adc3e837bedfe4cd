"""`unveil kb tune`, `scorecard` and `hygiene` on the demo's recording, as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unveil.cli.main import main
from unveil.demo import make_recording

ROOT = Path(__file__).parents[2]
DEMO = Path(make_recording.__file__).with_name("recording.parquet")
NAME = "reduced_huge_page_coverage"
FILE = f"fingerprints/memory/{NAME}.yml"


@pytest.mark.slow
def test_thresholds_are_drawn_and_one_is_written_only_when_asked(
    one_kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (one_kb / FILE).read_text()
    command = ["kb", "tune", NAME, "active", "--kb", str(one_kb), "--values", "0.02,0.05,0.1,0.12,5"]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["found"] for each in told["tried"]] == [1, 1, 1, 1, 0]
    assert (told["own"], told["suggested"]) == (0.05, 0.05)
    (one_kb / FILE).write_text(before.replace("gte: 0.05", "gte: 0.12"))
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "suggested: 0.05 (now 0.12): 0.02 to 0.12 do equally well" in said
    assert "gte: 0.12" in (one_kb / FILE).read_text()
    assert main([*command, "--write"]) == 0
    assert (one_kb / FILE).read_text() == before


@pytest.mark.slow
def test_a_scorecard_has_a_line_each_with_what_is_lacking(one_kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "scorecard", "--kb", str(one_kb), "--state-dir", str(one_kb / "none")]) == 0
    said = capsys.readouterr().out
    assert "1 of 1" in said
    (one_kb / FILE).write_text((one_kb / FILE).read_text().replace("status: test", "status: stable"))
    assert (
        main(["kb", "scorecard", "--kb", str(one_kb), "--state-dir", str(one_kb / "none"), "--no-mutants", "--json"])
        == 0
    )
    (card,) = json.loads(capsys.readouterr().out)
    assert (card["found"], card["false_fires"], card["lacks"]) == (1, 0, [])


@pytest.mark.slow
def test_hygiene_holds_recordings_and_this_host_against_it(one_kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["kb", "hygiene", "--kb", str(one_kb), "--state-dir", str(one_kb / "none"), "--recordings", str(DEMO)]
    assert main([*command, "--no-host"]) == 0
    assert "no findings about 1 fingerprint" in capsys.readouterr().out
    (one_kb / FILE).write_text((one_kb / FILE).read_text().replace("gte: 0.05", "gte: 500"))
    assert main([*command, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert ("never fires", NAME) in {(each["kind"], each["fingerprint"]) for each in told}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tune", "absent", "x"), 2),
        (("tune", NAME, "absent"), 2),
        (("tune", NAME, "active", "--values", "a,b"), 3),
        (("tune", NAME, "active", "--values", "nan"), 3),
        (("tune", NAME, "active", "--recordings", "absent.parquet"), 2),
        (("tune", NAME, "active", "--recordings", "."), 2),
        (("scorecard", "absent"), 2),
        (("hygiene", "--max-age", "x"), 3),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_line(
    words: tuple[str, ...], code: int, one_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["kb", *words, "--kb", str(one_kb)]) == code
    assert "Traceback" not in capsys.readouterr().err
