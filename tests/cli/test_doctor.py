"""`unveil doctor` on this machine and on a tree: one page of 80 columns, the same as JSON, exit 1 for what is sick."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli.main import main

if TYPE_CHECKING:
    import pytest

TITLES = ("absent:", "does not work", "too expensive", "what this process may do:", "fingerprints can see; blind here:")


def tree(folder: Path) -> Path:
    (folder / "proc").mkdir()
    (folder / "proc/stat").write_text("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 5\n")
    return folder


def test_a_page_of_eighty_columns_says_all_of_it(few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kb", str(few), "--host-root", str(tree(tmp_path))]) == 0
    told = capsys.readouterr().out
    for title in TITLES:
        assert title in told
    too_long = [line for line in told.splitlines() if len(line) > 80 and not line.startswith("host root")]
    assert too_long == []
    assert "perf: only the host itself can be asked" in told
    assert "without gpu: " in told


def test_a_source_that_is_there_and_cannot_be_parsed_is_a_finding(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree(tmp_path) / "proc/meminfo").write_text("nothing that anybody knows\n")
    assert main(["doctor", "--kb", str(few), "--host-root", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "does not work:\n  meminfo: failed" in told


def test_roles_that_do_not_hold_are_a_finding_with_the_cure(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = Path(shutil.copytree(few, tmp_path / "kb"))
    (kb / "inventory").mkdir(exist_ok=True)
    (kb / "inventory/profiles.yml").write_text("apiVersion: unveil/v1\nkind: Profiles\ndefault: manual\n")
    ask = ["doctor", "--kb", str(kb), "--host-root", str(tree(tmp_path))]
    assert main(ask) == 0
    (kb / "inventory/profiles.yml").chmod(0o666)
    assert main(ask) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "roles and modes of inventory/profiles.yml do not hold" in told
    assert f"chmod go-w {kb}/inventory/profiles.yml" in told


def test_json_has_the_same_for_a_machine(few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kb", str(few), "--host-root", str(tree(tmp_path)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"examination", "too_dear", "blind", "watcher", "knowledge_problems", "withheld"}
    (stat,) = [source for source in told["examination"]["sources"] if source["name"] == "stat"]
    assert stat["state"] == "ok"
    assert stat["read_us"] > 0
    assert all(each["missing"] and each["sources"] for each in told["blind"])
