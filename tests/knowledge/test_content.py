"""The content is found in a checkout and in a wheel by the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError
from unveil.knowledge.content import FOLDERS, knowledge_root, shipped_root

if TYPE_CHECKING:
    from pathlib import Path


def test_the_checkout_has_all_four_folders() -> None:
    assert all((shipped_root() / name).is_dir() for name in FOLDERS)


@pytest.mark.parametrize("place", ["checkout", "wheel"])
def test_both_layouts_are_understood(tmp_path: Path, place: str) -> None:
    package = tmp_path / "site" / "unveil"
    package.mkdir(parents=True)
    root = package / "_content" if place == "wheel" else package.parent
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    assert shipped_root(package) == root


def test_an_installation_without_content_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no fingerprints/ folder"):
        shipped_root(tmp_path)


def test_a_person_s_own_folder_comes_first(tmp_path: Path) -> None:
    assert knowledge_root(tmp_path) == tmp_path
    assert knowledge_root(None) == shipped_root()
    with pytest.raises(UnreadableError, match="is not a folder"):
        knowledge_root(tmp_path / "nowhere")
