from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.irqs import MAX_IRQS, Irq, dealt, immovable, read_irqs, remote_share
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

ETH0 = Entity(EntityKind.NIC, "eth0")
cpus = st.frozensets(st.integers(0, 15), max_size=4)
irqs = st.builds(
    Irq, number=st.integers(0, 500), effective=st.none() | cpus, writable=st.booleans(), used=st.booleans()
)


@given(st.lists(irqs, max_size=20), cpus)
def test_the_share_is_one_or_there_is_none(found: list[Irq], local: frozenset[int]) -> None:
    share = remote_share(found, local)
    assert share is None or 0 <= share <= 1
    if any(irq.used and irq.effective for irq in found):
        assert share is not None


def test_only_interrupts_in_use_with_a_known_cpu_count() -> None:
    local = frozenset({0, 1})
    found = [
        Irq(number=1, effective=frozenset({0}), writable=True, used=True),
        Irq(number=2, effective=frozenset({7}), writable=True, used=True),
        Irq(number=3, effective=frozenset({7}), writable=True, used=False),
        Irq(number=4, effective=None, writable=True, used=True),
        Irq(number=5, effective=frozenset({1, 7}), writable=True, used=True),
    ]
    assert remote_share(found, local) == 1 / 3
    assert remote_share(found[2:4], local) is None


def test_an_interrupt_has_its_lists_device_and_handler(tree: Tree) -> None:
    tree.irq(40, "0-3", "2", action="eth0-TxRx-0")
    sheet = tree.sheet()
    found = read_irqs(sheet, [(ETH0, (40,))])
    entity = Entity(EntityKind.IRQ, "40")
    assert found[40].effective == {2}
    assert found[40].writable
    assert sheet.value("cpu.irq_affinity", entity) == "0-3"
    assert sheet.value("cpu.irq_effective", entity) == "2"
    assert sheet.value("cpu.irq_device", entity) == "nic:eth0"
    assert sheet.value("cpu.irq_action", entity) == "eth0-TxRx-0"
    assert sheet.settings == {"irq:40/smp_affinity_list": "0-3\n"}


def test_without_an_effective_list_the_allowed_cpus_stand_for_it(tree: Tree) -> None:
    tree.irq(40, "4-5", None)
    assert read_irqs(tree.sheet(), [(ETH0, (40,))])[40].effective == {4, 5}


def test_an_older_kernel_names_the_handler_by_a_folder(tree: Tree) -> None:
    tree.write("proc/irq/40/smp_affinity_list", "0\n")
    tree.write("proc/irq/40/eth0-rx-0/nothing")
    tree.write("proc/irq/41/smp_affinity_list", "0\n")
    found = read_irqs(tree.sheet(), [(ETH0, (40, 41))])
    assert found[40].used
    assert not found[41].used


def test_an_interrupt_that_went_meanwhile_is_absent_and_no_exception(tree: Tree) -> None:
    sheet = tree.sheet()
    found = read_irqs(sheet, [(ETH0, (40,))])
    assert found[40].effective is None
    assert sheet.value("cpu.irq_affinity", Entity(EntityKind.IRQ, "40")) is None


def test_no_more_than_a_bounded_number_is_read(tree: Tree) -> None:
    found = read_irqs(tree.sheet(), [(ETH0, range(MAX_IRQS + 50))])
    assert len(found) == MAX_IRQS


def test_one_read_only_file_shows_that_this_kernel_tells_by_mode(tree: Tree) -> None:
    tree.write("proc/sys/kernel/osrelease", "5.14.0-503.el9\n")  # a backport
    tree.irq(40, "0", "0")
    tree.irq(41, "0", "0", managed=True)
    sheet = tree.sheet()
    assert immovable(sheet, read_irqs(sheet, [(ETH0, (40,))])) is None
    assert immovable(sheet, read_irqs(sheet, [(ETH0, (40, 41))])) == {41}


def test_interrupts_of_a_kind_are_dealt_out_to_as_many_cpus_as_there_are(tree: Tree) -> None:
    sheet = tree.sheet()
    for irq, action in enumerate(("v0-config", "v0-input.0", "v0-output.0", "v0-input.1", "v0-output.1", "v0-input.2")):
        sheet.tell("cpu.irq_action", action, Entity(EntityKind.IRQ, str(irq)))
    assert dealt(sheet, map(str, range(6)), {7, 5}) == {"0": "5", "1": "5", "2": "5", "3": "7", "4": "7", "5": "5"}
    assert dealt(sheet, ("8", "9"), {3, 4}) == {"8": "3", "9": "4"}, "of no known kind: all of one"
    assert dealt(sheet, ("1",), ()) == {}
