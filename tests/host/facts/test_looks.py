"""What was seen on a host is held against what is to be seen later, failures included."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.looks import Looks, content
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from conftest import Tree


def test_a_file_that_reads_as_before_stands_and_one_that_does_not_falls(tree: Tree) -> None:
    tree.write("sys/a", "1\n")
    looks = Looks(tree.root)
    assert looks.stand(), "nothing was looked at"
    assert looks.see(content, "sys/a") == b"1\n"
    assert looks.stand()
    tree.write("sys/a", "1\n")
    assert looks.stand(), "written again, the same"
    tree.write("sys/a", "2\n")
    assert not looks.stand()
    tree.write("sys/a", "1\n")
    assert looks.stand(), "as it was seen"


def test_what_was_not_there_and_what_is_gone_count(tree: Tree) -> None:
    tree.write("sys/there", "1\n")
    missing, there = Looks(tree.root), Looks(tree.root)
    with pytest.raises(FileNotFoundError):
        missing.see(content, "sys/late")
    there.see(content, "sys/there")
    assert missing.stand()
    tree.write("sys/late", "")
    assert not missing.stand()
    (tree.folder / "sys/there").unlink()
    assert not there.stand()


def test_another_failure_is_another_sight(tree: Tree) -> None:
    failures = iter((errno.EINVAL, errno.EINVAL, errno.EIO))

    def how(_root: HostRoot, _what: str) -> bytes:
        raise OSError(next(failures), "…")

    looks = Looks(tree.root)
    with pytest.raises(OSError, match="…"):
        looks.see(how, "sys/a")
    assert looks.stand()
    assert not looks.stand()


def test_names_links_and_whatever_can_be_compared_are_looked_at(tree: Tree) -> None:
    tree.write("sys/folder/a")
    tree.link("sys/link", "sys/folder")
    looks, others = Looks(tree.root), Looks(tree.root)
    assert looks.see(HostRoot.list, "sys/folder") == ("a",)
    others.see(HostRoot.readlink, "sys/link")
    looks.take(others)
    assert looks.stand()
    (tree.folder / "sys/link").unlink()
    tree.link("sys/link", "sys")
    assert not looks.stand()
    tree.write("sys/folder/b")
    assert others.stand() is False


@given(st.binary(max_size=2000))
def test_a_file_is_read_in_full_whatever_its_length(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    folder = tmp_path_factory.mktemp("looks")
    (folder / "file").write_bytes(text)
    assert content(HostRoot(folder), "file") == text
