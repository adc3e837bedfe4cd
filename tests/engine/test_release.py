from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from unveil.engine.release import release

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_what_the_metadata_says() -> None:
    assert release() == version("unveil")


def test_the_first_folder_of_the_path_counts_and_what_is_no_folder_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unveil-9.9.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "archive.zip"))
    assert release() == "9.9"


def test_without_a_folder_the_metadata_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = version("unveil")
    monkeypatch.setattr("os.listdir", lambda _: [])
    assert release() == known
