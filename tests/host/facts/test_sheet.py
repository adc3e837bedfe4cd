from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.sheet import chosen, number, number_or_none, why
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

NO_NUMBERS = ("", "1_000", "١٢", "0x10", "+1", "1e3", "1.5", "nan", "inf", "²", "N/A", "9" * 21)


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


@pytest.mark.parametrize("text", [*NO_NUMBERS, " 1", "1\n"])
def test_only_digits_and_a_sign_are_a_number(text: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        number(text)
    assert number_or_none(text) is None
    assert (number("-1"), number_or_none("9223372036854771712"), number_or_none(None)) == (
        -1,
        9223372036854771712,
        None,
    )


@pytest.mark.parametrize("text", ["1_000", "١٢", "nan", "9" * 400], ids=["underscore", "other script", "nan", "huge"])
def test_files_that_hold_no_number_make_no_fact_a_number(two_nodes: Tree, text: str) -> None:
    def numbers_where_every_file_holds(content: str) -> dict[tuple[str, Entity], float]:
        for file in sorted(two_nodes.folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                file.write_text(content)
        facts = two_nodes.facts().facts
        return {(fact.name, fact.entity): fact.value for fact in facts if isinstance(fact.value, float)}

    assert numbers_where_every_file_holds(f"{text}\n") == numbers_where_every_file_holds("N/A\n")


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
