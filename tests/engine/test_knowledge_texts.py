"""Texts of the knowledge base: read beside the watch loop, and nothing but the knowledge base."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.knowledge_texts import KnowledgeTexts
from unveil.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path


def read(texts: KnowledgeTexts, root: Path, path: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        told = texts.ask(str(root), path)
        if not told["reading"]:
            return told
        time.sleep(0.01)
    raise AssertionError(told)


def test_a_file_is_read_beside_and_told_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "fingerprints").mkdir()
    (tmp_path / "fingerprints/a.yml").write_text("name: ä\n")
    texts = KnowledgeTexts()
    assert texts.ask(str(tmp_path), "fingerprints/a.yml")["reading"]
    assert read(texts, tmp_path, "fingerprints/a.yml")["text"] == "name: ä\n"
    assert read(texts, tmp_path, "fingerprints/b.yml")["problem"]


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "../x.yml", "fingerprints/../../x.yml", "fingerprints/key.pem", "inventory/hosts.yml",
        "inventory/group_vars/all.yml", "inventory/filters/../hosts.yml",
    ],
)  # fmt: skip
def test_what_is_no_file_of_the_knowledge_base_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInputError, match="no file of a knowledge base"):
        KnowledgeTexts().ask(str(tmp_path), path)


def test_a_link_out_of_it_and_a_pipe_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "kb"
    (root / "fingerprints").mkdir(parents=True)
    (root / "fingerprints/out.yml").symlink_to(tmp_path / "secret")
    (root / "inventory").mkdir()
    (root / "inventory/hosts.yml").write_text("all: {vars: {ansible_password: x}}")
    (root / "fingerprints/in.yml").symlink_to(root / "inventory/hosts.yml")
    os.mkfifo(root / "fingerprints/pipe.yml")
    for name in ("out", "in", "pipe"):
        told = read(KnowledgeTexts(), root, f"fingerprints/{name}.yml")
        assert told["text"] is None
        assert told["problem"]
