"""Faults laid on plain files and taken away again; tests/lab/test_lab.py lays every one on this kernel."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from unveil.lab.faults import FAULTS, ImpossibleError, write
from unveil.lab.place import Place

ROOT = Path(__file__).parents[2]


@pytest.fixture
def where(tmp_path: Path) -> Place:
    """Give a place whose cgroup is a folder of plain files, as in a v2 tree."""
    for name, text in (("cpu.max", "max 100000\n"), ("memory.high", "max\n"), ("memory.current", "1000\n")):
        (tmp_path / name).write_text(text)
    return Place(folders={"": tmp_path}, scratch=tmp_path)


def test_every_fault_has_a_title_and_a_label_that_is_a_fingerprint() -> None:
    names = {path.stem for path in (ROOT / "fingerprints").rglob("*.yml")}
    for fault in FAULTS.values():
        assert fault.title
        assert not fault.label or fault.label in names


@pytest.mark.parametrize(("before", "after"), [("10\n", "10"), ("always [madvise] never\n", "madvise")])
def test_what_was_written_is_put_back_as_the_kernel_takes_it(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "setting"
    file.write_text(before)
    with ExitStack() as stack:
        write(stack, file, "never")
        assert file.read_text() == "never"
    assert file.read_text() == after


def test_what_the_kernel_does_not_have_is_impossible_with_its_reason(tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(ImpossibleError, match="absent: No such file"):
        write(stack, tmp_path / "absent", "1")
    nowhere = Place(folders={"net_cls": tmp_path}, scratch=tmp_path)
    for name in ("cpu_quota", "memory_limit"):
        with pytest.raises(ImpossibleError, match=r"no \w+ controller"), FAULTS[name].inject(nowhere):
            raise AssertionError("it was injected")


@pytest.mark.parametrize(
    ("fault", "file", "inside"), [("cpu_quota", "cpu.max", "45000 100000"), ("memory_limit", "memory.high", "850")]
)
def test_a_cgroup_is_bounded_and_free_again(fault: str, file: str, inside: str, where: Place) -> None:
    path = where.scratch / file
    before = path.read_text().strip()
    with FAULTS[fault].inject(where):
        assert path.read_text() == inside
    assert path.read_text() == before
    with pytest.raises(KeyboardInterrupt), FAULTS[fault].inject(where):
        raise KeyboardInterrupt
    assert path.read_text() == before


def test_a_neighbour_ends_with_its_fault(where: Place) -> None:
    children = Path("/proc/thread-self/children")
    before = children.read_text()
    with FAULTS["busy_but_healthy"].inject(where):
        assert len(children.read_text().split()) == len(before.split()) + 1
    assert children.read_text() == before
