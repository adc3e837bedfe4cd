"""A knowledge base out of a real git history, in the root of its checkout and below it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.loading import load
from unveil.knowledge.revisions import knowledge_at

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"


def git(folder: Path, *words: str) -> None:
    identity = {
        f"GIT_{role}_{what}": "someone@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **identity}
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)


def committed(checkout: Path) -> None:
    git(checkout, "init", "--initial-branch=main")
    git(checkout, "add", ".")
    git(checkout, "commit", "-m", "first")


def test_a_revision_is_the_state_of_then(kb: Path) -> None:
    committed(kb)
    before = (kb / FINGERPRINT).read_text()
    (kb / FINGERPRINT).write_text(before.replace("gte: 0.2", "gte: 0.3"))
    with knowledge_at("main", kb) as folder:
        assert (folder / FINGERPRINT).read_text() == before
        assert load(folder).knowledge is not None
        kept = folder
    assert not kept.exists()
    assert "gte: 0.3" in (kb / FINGERPRINT).read_text()


def test_a_knowledge_base_below_the_checkout_s_root_is_found(kb: Path) -> None:
    committed(kb.parent)
    with knowledge_at("HEAD", kb) as folder:
        assert (folder / FINGERPRINT).is_file()


def test_a_folder_is_itself(kb: Path, tmp_path: Path) -> None:
    with knowledge_at(str(kb), tmp_path) as folder:
        assert folder == kb


@pytest.mark.parametrize("where", ["no_such", "--output=/tmp/x", "", "main:fingerprints"])
def test_what_is_neither_is_bad_input(kb: Path, where: str) -> None:
    committed(kb)
    with pytest.raises(BadInputError, match="neither a folder"), knowledge_at(where, kb):
        pass


def test_a_folder_outside_of_git_has_no_revisions(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(kb.parent))
    with pytest.raises(BadInputError, match="nor a revision"), knowledge_at("main", kb):
        pass


def test_a_revision_before_there_was_a_knowledge_base_is_said_to_be_one(kb: Path) -> None:
    (kb.parent / "README").write_text("empty\n")
    git(kb.parent, "init", "--initial-branch=main")
    git(kb.parent, "add", "README")
    git(kb.parent, "commit", "-m", "first")
    with pytest.raises(BadInputError), knowledge_at("main", kb):
        pass


def test_a_link_out_of_the_tree_is_not_unpacked(kb: Path) -> None:
    (kb / "fingerprints/evil.yml").symlink_to("/etc/passwd")
    committed(kb)
    with pytest.raises(BadInputError, match="cannot be unpacked"), knowledge_at("main", kb):
        pass
