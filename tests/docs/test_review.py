"""The workflow and the hooks that the documents give: their commands, taken out of the files, run in a clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
CONTENT = ("playbooks", "schemas", "inventory")
NAME = "reduced_huge_page_coverage"
FILE = f"fingerprints/memory/{NAME}.yml"
GH = '#!/bin/sh\necho "$@" > asked.txt\nfor last; do :; done\ncp "$last" comment.md\n'
EXPECTATIONS = f"""\
apiVersion: unveil/v1
kind: BacktestExpectations
expectations: [{{recording: "*", fingerprint: {NAME}, at_least: 1}}]
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a clone of a site's repository, on a branch in which a fingerprint was edited."""
    site = tmp_path / "site"
    for name in CONTENT:
        shutil.copytree(ROOT / name, site / name)
    for name in ("playbooks/modules", "playbooks/enable_huge_pages"):
        assert (site / name).is_dir()
    for folder in (site / "playbooks").iterdir():
        if folder.name not in ("modules", "enable_huge_pages"):
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    (site / "fingerprints/memory").mkdir(parents=True)
    for ending in ("yml", "test.yml"):
        shutil.copy(ROOT / f"fingerprints/memory/{NAME}.{ending}", site / "fingerprints/memory")
    fix = site / "playbooks/enable_huge_pages/remediation.yml"
    fix.write_text(re.sub(r"(?m)^remediates: .*$", f"remediates: [{NAME}]", fix.read_text()))
    (site / "recordings").mkdir()
    for ending in ("parquet", "labels.yml"):
        shutil.copy(ROOT / f"unveil/demo/recording.{ending}", site / "recordings")
    (site / "recordings/expectations.yml").write_text(EXPECTATIONS)
    run("git init -q -b main . && git add -A && git commit -qm begin", site)
    run(f"git clone -q {site} clone && cd clone && git switch -q -c change", tmp_path)
    clone = tmp_path / "clone"
    text = (clone / FILE).read_text()
    assert "for: 3s" in text
    (clone / FILE).write_text(text.replace("title: ", "title: Again, "))
    return clone


def run(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {
        "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tools), "LANG": "C.UTF-8",
        "NO_COLOR": "1", **who, **more,
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command], cwd=folder, env=environment, check=True, capture_output=True,
        text=True, timeout=110,
    )  # fmt: skip


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


@pytest.mark.slow
def test_the_workflow_reviews_a_change(clone: Path) -> None:
    workflow = read("knowledge-review.yml")
    steps = workflow["jobs"]["review"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert [command.split()[1:3] for command in commands if command.startswith("unveil")] == [
        ["kb", "lint"], ["kb", "test"], ["kb", "backtest"], ["kb", "diff"],
    ]  # fmt: skip
    (clone / FILE).write_text((clone / FILE).read_text().replace("lt: 0.1\n", "lt: 0.11\n"))
    text = (clone / FILE.replace(".yml", ".test.yml")).read_text()
    (clone / FILE.replace(".yml", ".test.yml")).write_text(text.replace("0.0999", "0.1099"))
    run("git commit -qam change", clone)
    for command in commands:
        if command.startswith(("pip ", "unveil kb test")):  # installed here; the cases at the threshold are not edited
            continue
        run(command, clone, GITHUB_BASE_REF="main", NUMBER="7")
    said = (clone / "comment.md").read_text()
    assert said.startswith("### Knowledge base\n")
    assert f"| loosened | fingerprint `{NAME}` | clause uncovered" in said
    assert "On 1 recording everything fires as before." in said
    assert "<details><summary>Text only</summary>" in said
    assert (clone / "asked.txt").read_text().split()[:3] == ["pr", "comment", "7"]


@pytest.mark.slow
def test_the_hooks_pass_and_tell_what_is_changed(clone: Path) -> None:
    hooks = [hook for repository in read("pre-commit-config.yaml")["repos"] for hook in repository["hooks"]]
    assert [hook["id"] for hook in hooks] == ["kb-lint", "kb-test", "kb-diff"]
    said = {hook["id"]: run(hook["entry"], clone).stdout for hook in hooks}
    assert said["kb-lint"] == "no findings\n"
    assert f"text       fingerprint {NAME}: title edited" in said["kb-diff"]
    (clone / FILE).write_text((clone / FILE).read_text().replace("condition: ", "condition: nothing and "))
    for hook in hooks:
        with pytest.raises(subprocess.CalledProcessError):
            run(hook["entry"], clone)
