from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.host.facts.boot import read_boot_parameters
from unveil.host.facts.sheet import FactSheet

if TYPE_CHECKING:
    from conftest import Tree

LINE = (
    "BOOT_IMAGE=/vmlinuz root=UUID=4-5 rd.luks.key=hunter2 isolcpus=managed_irq,domain,2-7 mitigations=off nosmt "
    "intel-iommu=on transparent_hugepage=never hugepagesz=1G hugepages=8 mem=$(reboot) -- idle=poll\n"
)


def told(tree: Tree, line: str | bytes) -> object:
    tree.write("proc/cmdline", line)
    sheet = FactSheet(tree.root)
    read_boot_parameters(sheet)
    return sheet.value("cpu.boot_parameters")


def test_parameters_that_change_speed_are_told_and_nothing_else_is(tree: Tree) -> None:
    assert told(tree, LINE) == (
        "isolcpus=managed_irq,domain,2-7", "mitigations=off", "nosmt", "intel-iommu=on", "transparent_hugepage=never",
        "hugepagesz=1G", "hugepages=8",
    )  # fmt: skip
    assert tree.facts().value("cpu.boot_parameters") == told(tree, LINE), "the reader reads it"


def test_a_kernel_that_was_told_nothing_has_no_parameters_and_one_that_does_not_tell_has_no_fact(tree: Tree) -> None:
    assert told(tree, "\n") == ()
    (tree.folder / "proc/cmdline").unlink()
    assert tree.facts().value("cpu.boot_parameters") is None


@settings(suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200))
def test_any_line_is_read(tree: Tree, line: bytes) -> None:
    words = told(tree, b"nosmt " + line)
    assert isinstance(words, tuple)
    assert words[:1] in ((), ("nosmt",)), "what follows may belong to it"
    assert all(word.isascii() and " " not in word for word in words)
