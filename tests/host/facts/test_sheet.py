from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.sheet import chosen, number, why
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree


@pytest.mark.parametrize(
    ("number_", "words"),
    [
        (errno.ENOENT, "this kernel has no /sys/x"),
        (errno.EACCES, "reading /sys/x takes more rights"),
        (errno.ENODEV, "the device behind /sys/x is gone"),
        (errno.EINVAL, "the driver does not support /sys/x"),
        (errno.EIO, "/sys/x: Input/output error"),
    ],
)
def test_a_failure_is_told_in_plain_words(number_: int, words: str) -> None:
    assert why(OSError(number_, "…"), "sys/x") == words


@pytest.mark.parametrize(
    ("text", "choice"),
    [("always [madvise] never", "madvise"), ("[none] mq-deadline", "none"), ("none", "none"), ("tsc", "tsc")],
)
def test_the_choice_is_in_brackets_where_there_are_several(text: str, choice: str) -> None:
    assert chosen(text) == choice


def test_a_value_that_is_none_is_absent_and_not_zero(tree: Tree) -> None:
    tree.write("sys/a", "N/A (no PMA)\n")
    tree.write("sys/b", "\n")
    sheet = tree.sheet()
    assert sheet.read("storage.nr_requests", "sys/a", number, setting="file:/sys/a") is None
    assert sheet.read("storage.read_ahead", "sys/b", number) is None
    table = sheet.table()
    assert table.find("storage.nr_requests").reason == "/sys/a reads 'N/A (no PMA)'"  # type: ignore[union-attr]
    assert table.settings == {"file:/sys/a": "N/A (no PMA)\n"}


def test_raw_content_keeps_its_newline_and_bytes_that_are_no_text(tree: Tree) -> None:
    tree.write("sys/a", b"1\xff\n")
    sheet = tree.sheet()
    sheet.read("cpu.smt", "sys/a", str, setting="file:/sys/a")
    assert sheet.settings["file:/sys/a"].encode("utf-8", "surrogateescape") == b"1\xff\n"


def test_the_last_word_on_a_fact_counts(tree: Tree) -> None:
    sheet = tree.sheet()
    disk = Entity(EntityKind.DISK, "sda")
    sheet.miss("storage.node", "unknown", disk)
    sheet.tell("storage.node", 1.0, disk)
    assert sheet.value("storage.node", disk) == 1
    assert len(sheet.facts()) == 1
