"""Facts that are read together stand while their files do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.part import Part
from unveil.host.facts.sheet import number

if TYPE_CHECKING:
    from conftest import Tree

    from unveil.host.facts.sheet import FactSheet


def test_facts_are_made_anew_only_where_a_file_reads_differently(tree: Tree) -> None:
    readings = []

    def tell(sheet: FactSheet) -> None:
        readings.append(sheet)
        sheet.read("memory.swappiness", "sys/a", number, setting="file:/sys/a")
        if sheet.text("sys/b") == "more":
            sheet.read("memory.dirty_ratio", "sys/c", number)

    tree.write("sys/a", "60\n")
    part = Part(tree.root, tell)
    assert (part.refresh(), len(readings)) == (False, 1)
    tree.write("sys/a", "10\n")
    assert (part.refresh(), part.sheet.value("memory.swappiness")) == (True, 10)
    assert part.sheet.settings == {"file:/sys/a": "10\n"}
    tree.write("sys/c", "5\n")
    assert not part.refresh(), "nobody looked there"
    tree.write("sys/b", "more\n")
    assert (part.refresh(), part.sheet.value("memory.dirty_ratio")) == (True, 5)
    tree.write("sys/c", "7\n")
    assert (part.refresh(), part.sheet.value("memory.dirty_ratio")) == (True, 7)
    tree.write("sys/b", "less\n")
    assert (part.refresh(), part.sheet.value("memory.dirty_ratio")) == (True, None)
    assert len(readings) == 5


def test_other_text_that_says_the_same_is_no_change(tree: Tree) -> None:
    tree.write("sys/a", "60\n")
    part = Part(tree.root, lambda sheet: sheet.read("memory.swappiness", "sys/a", number))
    tree.write("sys/a", " 60\n")
    assert not part.refresh()
    assert part.sheet.looks.stand()
