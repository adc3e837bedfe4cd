from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError, ConflictError, RefusedError, SourceAbsentError, SourceFailedError
from unveil.execution import settings as module
from unveil.execution.settings import Outcome, Settings

THP = "file:/sys/kernel/mm/transparent_hugepage/enabled"
QUOTA = "cgroup:/pod1/cpu.max"
IRQS = ("irq:24/smp_affinity_list", "irq:25/smp_affinity_list")


def test_contents_come_as_the_kernel_gives_them_without_the_newline(tree: Path) -> None:
    host = Settings(tree)
    assert host.read(THP) == "always [madvise] never"
    assert host.read("sysctl:vm.dirty_ratio") == "20"
    assert host.read(QUOTA) == "50000 100000"


def test_what_is_not_there_is_told_from_what_fails(tree: Path) -> None:
    host = Settings(tree)
    with pytest.raises(SourceAbsentError):
        host.read("sysctl:vm.no_such")
    with pytest.raises(SourceFailedError):
        host.read("file:/sys/kernel/mm")
    with pytest.raises(BadInputError):
        host.read("file:/etc/passwd")
    with pytest.raises(SourceAbsentError, match="nothing here serves nvml"):
        host.read("nvml:GPU-1/power_limit")
    assert host.peek("sysctl:vm.no_such") is None


def test_a_write_is_read_back_and_the_tree_behaves_as_the_kernel(tree: Path) -> None:
    host = Settings(tree)
    assert host.write(THP, "always") == "[always] madvise never"
    assert (tree / THP[6:]).read_bytes() == b"[always] madvise never\n"
    assert host.write(IRQS[0], "1,0") == "1,0"
    for bad in ("a\nb", "x" * 5000, "\x1b[2J", "\0"):
        with pytest.raises(RefusedError):
            host.write(THP, bad)


def test_nothing_is_created_by_a_write(tree: Path) -> None:
    with pytest.raises(SourceAbsentError):
        Settings(tree).write("sysctl:vm.no_such", "1")
    assert not (tree / "proc/sys/vm/no_such").exists()


def test_restoring_puts_every_byte_back(tree: Path, kit: Any) -> None:
    host, before = Settings(tree), kit.content(tree)
    saved = {address: host.read(address) for address in (THP, QUOTA, *IRQS)}
    written = {THP: host.write(THP, "always"), QUOTA: host.write(QUOTA, "max")}
    written |= {irq: host.write(irq, "0") for irq in IRQS}
    assert kit.content(tree) != before
    assert [each.outcome for each in host.restore(saved, written)] == [Outcome.RESTORED] * 4
    assert kit.content(tree) == before
    again = host.restore(saved, written)
    assert {each.reason for each in again} == {"it reads as before"}, "restoring twice is restoring once"


def test_an_interrupt_that_is_on_its_way_reads_as_before_for_a_moment_and_is_put_back_all_the_same(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, real, stale = Settings(tree), module._read, list[bytes]()
    monkeypatch.setattr(module, "_read", lambda path: stale.pop() if stale else real(path))
    before = host.read(IRQS[0])
    stale[:] = [f"{before}\n".encode()] * 2  # once while it is written, once right after
    assert host.write(IRQS[0], "0") == "0"
    stale[:] = [f"{before}\n".encode()]
    assert [each.outcome for each in host.restore({IRQS[0]: before}, {IRQS[0]: "0"})] == [Outcome.RESTORED]
    assert host.read(IRQS[0]) == before


def test_what_someone_else_changed_since_is_left_alone(tree: Path) -> None:
    host = Settings(tree)
    saved = {address: host.read(address) for address in IRQS}
    written = {irq: host.write(irq, "0") for irq in IRQS}
    (tree / "proc/irq/25/smp_affinity_list").write_text("7\n")
    first, second = host.restore(saved, written)
    assert (first.outcome, second.outcome, second.foreign) == (Outcome.RESTORED, Outcome.LEFT_ALONE, True)
    assert "'7', which we did not write" in second.reason
    assert host.read(IRQS[1]) == "7"


def test_what_we_never_wrote_is_left_alone_and_what_is_gone_is_no_failure(tree: Path) -> None:
    host = Settings(tree)
    (tree / "proc/irq/24/smp_affinity_list").write_text("3\n")
    (tree / "sys/fs/cgroup/pod1/cpu.max").unlink()
    first, second = host.restore({IRQS[0]: "0-1", QUOTA: "50000 100000"}, {QUOTA: "max"})
    assert (first.outcome, first.foreign) == (Outcome.LEFT_ALONE, True)
    assert (second.outcome, second.foreign) == (Outcome.LEFT_ALONE, False)
    assert "gone" in second.reason


def test_a_setting_of_several_numbers_is_restored_with_the_tabs_that_the_kernel_shows(tree: Path) -> None:
    buffers = tree / "proc/sys/net/ipv4/tcp_rmem"
    buffers.parent.mkdir(parents=True)
    buffers.write_text("4096\t131072\t6291456\n")
    host, address = Settings(tree), "sysctl:net.ipv4.tcp_rmem"
    saved = {address: host.read(address)}
    written = {address: host.write(address, "4096 131072 67108864")}
    assert [each.outcome for each in host.restore(saved, written)] == [Outcome.RESTORED]
    assert buffers.read_text() == "4096\t131072\t6291456\n"


def test_one_setting_that_cannot_be_written_does_not_keep_the_others(tree: Path) -> None:
    host = Settings(tree)
    saved = {"sysctl:vm.dirty_ratio": "20", IRQS[0]: "0-1"}
    written = {"sysctl:vm.dirty_ratio": host.write("sysctl:vm.dirty_ratio", "30"), IRQS[0]: host.write(IRQS[0], "1")}
    outside = tree.parent / "outside"
    outside.write_text("30\n")
    path = tree / "proc/sys/vm/dirty_ratio"
    path.unlink()
    path.symlink_to(outside)
    first, second = host.restore(saved, written)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.RESTORED)
    assert "leads out" in first.reason
    assert outside.read_text() == "30\n"


def test_a_hundred_settings_are_restored(tree: Path) -> None:
    host = Settings(tree)
    for number in range(100, 200):
        (tree / f"proc/irq/{number}").mkdir()
        (tree / f"proc/irq/{number}/smp_affinity_list").write_text("0-1\n")
    addresses = [f"irq:{number}/smp_affinity_list" for number in range(100, 200)]
    saved = {address: host.read(address) for address in addresses}
    written = {address: host.write(address, "1") for address in addresses}
    assert [each.outcome for each in host.restore(saved, written)] == 100 * [Outcome.RESTORED]
    assert {address: host.read(address) for address in addresses} == saved


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=50)
@given(
    values=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    theirs=st.none() | st.integers(0, 9),
    at=st.integers(0, 2),
)
def test_restoring_never_writes_over_someone_else(tree: Path, values: list[int], theirs: int | None, at: int) -> None:
    host = Settings(tree)
    addresses = [f"irq:{number}/smp_affinity_list" for number in (30, 31, 32)]
    for address in addresses:
        path = tree / "proc/irq" / address[4:]
        path.parent.mkdir(exist_ok=True)
        path.write_text("11\n")
    saved = {address: host.read(address) for address in addresses}
    written = {address: host.write(address, str(value)) for address, value in zip(addresses, values, strict=True)}
    if theirs is not None:
        host.write(addresses[at], str(theirs))
    host.restore(saved, written)
    for number, address in enumerate(addresses):
        kept = theirs is not None and number == at and theirs != values[at]
        assert host.read(address) == (str(theirs) if kept else "11")


class Gpu:
    """A backend as the engine brings one: a value and what the driver makes of it."""

    def __init__(self) -> None:
        self.watts = "700"

    def read(self, key: str, item: str) -> str:
        assert (key, item) == ("GPU-1", "power_limit")
        return f"{self.watts}\n"

    def write(self, key: str, item: str, value: str) -> None:
        self.watts = value


def test_a_scheme_that_is_no_file_goes_through_its_backend(tree: Path) -> None:
    host = Settings(tree, backends={"nvml": Gpu()})
    address = "nvml:GPU-1/power_limit"
    saved = {address: host.read(address)}
    written = {address: host.write(address, "600")}
    assert (saved[address], written[address]) == ("700", "600")
    assert host.restore(saved, written)[0].outcome is Outcome.RESTORED
    assert host.read(address) == "700"


def test_a_value_that_does_not_stay_is_a_conflict(tree: Path) -> None:
    class Stubborn(Gpu):
        def write(self, key: str, item: str, value: str) -> None:
            self.watts = "650"

    with pytest.raises(ConflictError, match="written as '600' and reads '650'"):
        Settings(tree, backends={"nvml": Stubborn()}).write("nvml:GPU-1/power_limit", "600")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings: needs root")
def test_of_a_coupled_pair_this_kernel_gets_both_values_back() -> None:
    host = Settings("/")
    names = ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes")
    original = {f"sysctl:vm.{name}": host.read(f"sysctl:vm.{name}") for name in names}
    try:
        for start in ({"dirty_ratio": "17"}, {"dirty_bytes": "104857600"}):
            for name, value in start.items():
                host.write(f"sysctl:vm.{name}", value)
            saved = {address: host.read(address) for address in original}
            other = "dirty_bytes" if "dirty_ratio" in start else "dirty_ratio"
            host.write(f"sysctl:vm.{other}", "209715200" if other == "dirty_bytes" else "33")
            written = {address: host.read(address) for address in original}
            assert written != saved
            answers = host.restore(saved, written)
            assert all(each.outcome is Outcome.RESTORED for each in answers), answers
            assert {address: host.read(address) for address in original} == saved
    finally:
        host.restore(original, {address: host.read(address) for address in original})
    assert {address: host.read(address) for address in original} == original


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings: needs root")
def test_this_kernels_interrupts_and_huge_pages_are_put_back() -> None:
    host = Settings("/")
    addresses = [THP] if host.peek(THP) else []
    for folder in sorted(Path("/proc/irq").glob("[0-9]*")):
        address = f"irq:{folder.name}/smp_affinity_list"
        try:
            host.write(address, host.read(address))  # those that the kernel manages itself say EPERM
        except (SourceFailedError, SourceAbsentError):
            continue
        addresses.append(address)
        break
    if not addresses:
        pytest.skip("this kernel lets nothing be set")
    saved = {address: host.read(address) for address in addresses}
    try:
        written = {}
        for address in addresses:
            written[address] = host.write(address, "0" if address.startswith("irq:") else "always")
        assert all(each.outcome is Outcome.RESTORED for each in host.restore(saved, written))
        assert {address: host.read(address) for address in addresses} == saved
    finally:
        host.restore(saved, {address: host.read(address) for address in addresses})


@pytest.mark.root
def test_a_cpuset_that_allowed_no_node_by_itself_allows_none_again() -> None:
    folder = Path(f"/sys/fs/cgroup/cpuset/unveil-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no cpuset of its own can be made here: {error}")
    try:
        host, address = Settings(), f"cgroup:/{folder.name}/cpuset.mems"
        saved = {address: host.read(address)}
        assert saved == {address: ""}
        written = {address: host.write(address, "0")}
        assert [each.outcome for each in host.restore(saved, written)] == [Outcome.RESTORED]
        assert host.read(address) == ""
    finally:
        folder.rmdir()
