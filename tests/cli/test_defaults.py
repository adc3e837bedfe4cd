"""A site's settings file is heard by every command, not by the watcher alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from unveil.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a knowledge base of one fingerprint that the settings file names."""
    kb = tmp_path / "kb"
    (kb / "fingerprints/cpu").mkdir(parents=True)
    (kb / "playbooks").mkdir()
    for path in (ROOT / "fingerprints/cpu").glob("cgroup_cpu_quota_throttling*"):
        text = path.read_text()
        shutil.copy(path, kb / "fingerprints/cpu")
        (kb / "fingerprints/cpu" / path.name).write_text(text)
    (tmp_path / "config/unveil").mkdir(parents=True)
    (tmp_path / "config/unveil/unveil.toml").write_text(f'kb = "{kb}"\nstate_dir = "{tmp_path}/state"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("UNVEIL_KB", raising=False)
    monkeypatch.delenv("UNVEIL_STATE_DIR", raising=False)
    return kb


def test_lint_and_status_take_what_the_file_says(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["kb", "lint"])
    assert f"{site}/fingerprints/cpu/" in capsys.readouterr().out, "its fix is not there"
    main(["status"])
    assert f"{site.parent}/state" in capsys.readouterr().err


def test_a_flag_and_a_variable_come_first(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNVEIL_KB", str(tmp_path / "nowhere"))
    assert main(["kb", "lint"]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err
    main(["kb", "lint", "--kb", str(site)])
    assert str(site) in capsys.readouterr().out


def test_a_wrong_file_is_told(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config/unveil/unveil.toml").write_text("kd = 1\n")
    assert main(["kb", "lint"]) == 2
    assert "unknown setting 'kd'" in capsys.readouterr().err
    assert main(["kb", "lint", "--list-checks"]) == 2, "whatever is asked"
