"""Flags over variables over files, and one clear error for what is none of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unveil.engine.settings import load_settings
from unveil.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path


def test_flags_win_over_variables_over_the_users_file_over_the_systems(tmp_path: Path) -> None:
    user, system = tmp_path / "user.toml", tmp_path / "system.toml"
    system.write_text('rule = "zscore"\nfalse_alarms_per_day = 9\nordinary_hours = 9\njournal_mb = 9\n')
    user.write_text("false_alarms_per_day = 8\nordinary_hours = 8\njournal_mb = 8\n")
    env = {"UNVEIL_ORDINARY_HOURS": "7", "UNVEIL_JOURNAL_MB": "7", "UNVEIL_GPU": "no"}
    settings = load_settings(
        {"journal_mb": 6.0, "rule": None, "limit": 3}, environment=env, files=(user, system, tmp_path / "absent")
    )
    assert settings.rule == "zscore"
    assert settings.false_alarms_per_day == 8
    assert settings.ordinary_hours == 7
    assert settings.journal_mb == 6
    assert settings.gpu is False
    assert settings.profile == "site"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fasle_alarms_per_day = 1", "unknown setting"),
        ("journal_mb = 'many'", "journal_mb cannot be"),
        ("journal_mb = -1", "must be a positive number"),
        ("journal_mb = nan", "must be a positive number"),
        ("journal_mb = inf", "must be a positive number"),
        ("profile = 'yolo'", "profile cannot be"),
        ("gpu = 'perhaps'", "gpu cannot be"),
        ("gpu = ", "Invalid value"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "unveil.toml"
    file.write_text(text)
    with pytest.raises(BadInputError, match=says) as caught:
        load_settings({}, environment={}, files=(file,))
    assert "unveil.toml" in caught.value.what


def test_a_misspelt_setting_gets_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "unveil.toml"
    file.write_text("ordinary_hour = 3")
    with pytest.raises(BadInputError) as caught:
        load_settings({}, environment={}, files=(file,))
    assert caught.value.hint == "did you mean 'ordinary_hours'?"


def test_a_misspelt_variable_is_an_error_and_variables_of_others_are_none(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="the environment: unknown setting 'profil'") as caught:
        load_settings({}, environment={"UNVEIL_PROFIL": "manual"}, files=())
    assert caught.value.hint == "did you mean 'profile'?"
    environment = {"UNVEIL_NVML_LIBRARY": "/x", "UNVEIL_STATE_DIR": str(tmp_path), "HOME": "/root"}
    assert load_settings({}, environment=environment, files=()).state_dir == tmp_path


def test_a_file_that_someone_else_may_write_says_nothing_to_a_watcher(tmp_path: Path) -> None:
    file = tmp_path / "unveil.toml"
    file.write_text("profile = 'auto'\n")
    assert load_settings({}, environment={}, files=(file,)).profile == "auto"
    file.chmod(0o666)
    with pytest.raises(BadInputError, match="may be written by others"):
        load_settings({}, environment={}, files=(file,))
    file.chmod(0o644)
    tmp_path.chmod(0o777)  # who can write there can put another file in its place
    with pytest.raises(BadInputError, match=f"written by others: {tmp_path}"):
        load_settings({}, environment={}, files=(file,))
    tmp_path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(file, 1234, 1234)  # what `sudo -E` finds in a user's home
        with pytest.raises(BadInputError, match="may be written by others"):
            load_settings({}, environment={}, files=(file,))
