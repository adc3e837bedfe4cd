"""`unveil eval` on the recording that is shipped."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from unveil.cli.eval import _jobs
from unveil.cli.main import main
from unveil.detection.rule import DEFAULT_RULE

DEMO = Path(__file__).parents[2] / "unveil/demo/recording.parquet"


@pytest.mark.slow
def test_combinations_are_compared_in_json_markdown_and_html(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    asked = ["eval", str(DEMO), "--rule", "mahalanobis", "--jobs", "1"]
    assert main([*asked, "--html", str(page), "--markdown", str(text), "--json"]) == 0
    assert "| mahalanobis |" in text.read_text()
    assert "| reduced_huge_page_coverage | memory |" in text.read_text()
    for told in ("## False alarms: ", "## False episodes: "):
        assert told in text.read_text()
    figures = page.read_text().split("<svg")[1:]
    assert len(figures) == 6  # F1, scores, subsystems, cost, and the recording twice
    for figure in figures:
        ET.fromstring("<svg" + figure.split("</svg>")[0] + "</svg>")
    result = json.loads(capsys.readouterr().out)
    assert [each["combination"] for each in result["comparison"]] == [DEFAULT_RULE, "mahalanobis"]
    assert result["attribution"][0]["right"] == "memory"
    (told,) = result["scores"]
    assert told["rule"] == "mahalanobis"
    assert told["seen"] == told["faults"] == 1
    assert told["hit_rate"] == 1.0
    assert told["false_alarms"]["watched_s"] < told["false_episodes"]["watched_s"], "one needs warming up"
    assert told["false_episodes"]["by_fingerprint"] == {}
    assert 0.3 < told["by_label"]["reduced_huge_page_coverage"]["found"] / 38 < 1


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["missing.parquet"], 2, "missing.parquet"),
        ([str(DEMO), "--rule", "zscor"], 2, "names no detector"),
        ([str(DEMO), str(DEMO)], 2, "two recordings have one name"),
        ([str(DEMO), "--false-alarms-per-day", "0"], 3, "is no number of false alarms a day"),
        ([str(DEMO), "--at", "0.7"], 3, "is no share of healthy windows"),
        ([str(DEMO), "--history", str(DEMO)], 2, "is its own history"),
        ([], 3, "RECORDING"),
    ],
)
def test_what_is_wrong_is_one_line(asked: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", *asked]) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) <= 2


def test_a_history_that_names_a_workload_is_the_past_of_that_workload_only(tmp_path: Path) -> None:
    for name, workload in {"past_a": "a", "past_b": "b", "past": "", "run_a": "a", "run": ""}.items():
        (tmp_path / f"{name}.parquet").touch()
        told = f"workload: {workload}\n" if workload else ""
        (tmp_path / f"{name}.labels.yml").write_text(
            f"apiVersion: unveil/v1\nkind: RecordingLabels\n{told}intervals:\n  - {{from: 0, label: healthy}}\n"
        )
    path = {name: str(tmp_path / f"{name}.parquet") for name in ("past_a", "past_b", "past", "run_a", "run")}
    arguments = Namespace(
        recordings=[path["run_a"], path["run"]], history=[path["past_a"], path["past_b"], path["past"]], kb=None, seed=0
    )
    assert [job.history for job in _jobs(arguments)] == [
        (path["past_a"], path["past"]),
        (path["past_a"], path["past_b"], path["past"]),
    ]


@pytest.mark.slow
def test_views_stand_side_by_side_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "report.md"
    asked = ["eval", str(DEMO), "--rule", "shift", "--view", "all", "--view", "host", "--jobs", "1", "--json"]
    assert main([*asked, "--markdown", str(text)]) == 0
    assert "| shift, host view |" in text.read_text()
    result = json.loads(capsys.readouterr().out)
    assert [each["view"] for each in result["scores"]] == ["", "host view"]
    assert result["views"].keys() == {"host"}
    assert result["views"]["host"]["comparison"][0]["combination"] == DEFAULT_RULE
    assert result["scores"][0] != result["scores"][1] | {"view": ""}, "the demo's workload has a cgroup"
