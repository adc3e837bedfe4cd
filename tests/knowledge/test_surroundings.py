"""What stands around a knowledge base is found, and whatever is odd about it is nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.knowledge import lint_cache
from unveil.knowledge.archive import MANIFEST
from unveil.knowledge.pack import read_pack
from unveil.knowledge.surroundings import _MANIFEST, Surroundings, look_around

if TYPE_CHECKING:
    from pathlib import Path


def test_without_a_repository_and_a_pack_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "CODEOWNERS").write_text("* @us\n")
    assert look_around(tmp_path) == Surroundings(manifest=None, owners=None, below="")


def test_owners_are_those_of_the_nearest_repository_and_the_first_file_counts(tmp_path: Path) -> None:
    kb = tmp_path / "deep/kb"
    (kb / "docs").mkdir(parents=True)
    (tmp_path / ".git").write_text("gitdir: elsewhere")  # a worktree has a file
    (tmp_path / "CODEOWNERS").write_text("a")
    assert look_around(kb) == Surroundings(manifest=None, owners=b"a", below="deep/kb")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/CODEOWNERS").write_text("b")
    assert look_around(kb).owners == b"b"
    (kb / ".git").mkdir()
    (kb / "docs/CODEOWNERS").write_text("c")
    assert look_around(kb) == Surroundings(manifest=None, owners=b"c", below="")


def test_what_is_no_file_is_nothing(tmp_path: Path) -> None:
    assert _MANIFEST == MANIFEST
    os.mkfifo(tmp_path / MANIFEST)
    assert look_around(tmp_path).manifest is None


def test_a_result_is_found_again_only_in_the_same_surroundings(kb: Path) -> None:
    pack = read_pack(kb)
    key = lint_cache.result_key(pack, 0.0, look_around(pack.real))
    (kb / MANIFEST).write_text("{}")
    assert lint_cache.result_key(pack, 0.0, look_around(pack.real)) != key
