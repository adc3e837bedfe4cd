"""A real irqbalance, started here and ended here: what it is told to leave alone stays, and what it is not does not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.records.run import Plan

IRQBALANCE = shutil.which("irqbalance", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
RUN = Path("/run/irqbalance")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="moves interrupts of this machine: needs root"),
    pytest.mark.skipif(IRQBALANCE is None, reason="no irqbalance"),
]


def wait(what: str, condition: Callable[[], Any], *, seconds: float = 60) -> Any:
    """Return the first truthy value of a condition; fail the test when the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(UnveilError):
            if value := condition():
                return value
        time.sleep(0.2)
    pytest.fail(f"{what}: not within {seconds} s")


def _runs() -> bool:
    names = (path.read_text(errors="replace").strip() for path in Path("/proc").glob("[0-9]*/comm"))
    with contextlib.suppress(OSError):  # one that ended meanwhile
        return "irqbalance" in names
    return False


@pytest.fixture
def affinities() -> Iterator[None]:
    """Put every interrupt of this machine back, whatever a balancer did to it."""
    files = sorted(Path("/proc/irq").glob("[0-9]*/smp_affinity_list"))
    before = {path: path.read_text() for path in files}
    yield
    for path, text in before.items():
        with contextlib.suppress(OSError):  # one that the kernel holds in place
            path.write_text(text)
    assert {path: path.read_text() for path in files} == before


@pytest.fixture
def look_again(affinities: None, packets: str) -> Iterator[Callable[[], None]]:
    """Start irqbalance; gives what has it place all interrupts again, as it does when the load shifts."""
    if _runs():
        pytest.skip("irqbalance runs here already")
    made = not RUN.exists()
    RUN.mkdir(exist_ok=True)  # as its unit has it; else it has no socket
    balancer = subprocess.Popen([str(IRQBALANCE), "--foreground", "--interval=1"], stdout=subprocess.DEVNULL)
    try:
        wait("irqbalance answers", lambda: Settings("/").read("irqbalance:0/banned"))
        yield partial(balancer.send_signal, signal.SIGHUP)
    finally:
        balancer.terminate()
        balancer.wait(20)
        if made:
            shutil.rmtree(RUN)


@pytest.fixture
def irqs(packets: str) -> tuple[Entity, str, str]:
    """Give a NIC with two of its interrupts that both come."""
    nic = Entity(EntityKind.NIC, packets)
    found = read_facts(HostRoot("/")).value("network.nic_irqs_movable", nic)
    rows = (row.split() for row in Path("/proc/interrupts").read_text().splitlines()[1:])
    counts = {
        row[0].strip(":"): sum(map(int, row[1 : 1 + (os.cpu_count() or 1)])) for row in rows if row[0][0].isdigit()
    }
    busy = [irq for irq in found if counts.get(irq)] if isinstance(found, tuple) else []
    if len(busy) < 2 or (os.cpu_count() or 1) < 2:
        pytest.skip("it takes a NIC with two interrupts that may be moved, and somewhere to move them")
    return nic, busy[0], busy[1]


def test_irqbalance_leaves_alone_what_it_was_told_to_and_only_that_and_no_longer_after_a_rollback(
    irqs: tuple[Entity, str, str],
    look_again: Callable[[], None],
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
) -> None:
    host, (nic, ours, other), anywhere = Settings("/"), irqs, f"0-{(os.cpu_count() or 1) - 1}"

    def cpus(irq: str) -> str:
        return host.read(f"irq:{irq}/smp_affinity_list")

    def is_placed_anew(irq: str) -> None:
        """Let an interrupt come anywhere, and see irqbalance give it a place."""
        host.write(f"irq:{irq}/smp_affinity_list", anywhere)
        look_again()
        wait(f"irqbalance places {irq}", lambda: cpus(irq) != anywhere)

    is_placed_anew(ours)
    near = {"network.nic_irqs_movable": (ours,), "network.nic_local_cpus": anywhere}
    plan = plan_of("keep_nic_irqs_from_irqbalance", nic, near, host.peek)
    saved = snapshot.take(plan, host.peek)
    assert set(saved) == {f"irqbalance:{ours}/banned", f"irq:{ours}/smp_affinity_list"}
    assert module("unveil_setting", settings=wanted(plan), check=True)["changed"] is True
    assert {address: host.read(address) for address in saved} == saved, "check mode neither bans nor moves"
    assert module("unveil_setting", settings=wanted(plan))["changed"] is True
    assert module("unveil_setting", settings=wanted(plan))["changed"] is False
    written = snapshot.written(plan, saved, host.peek)

    for _ in range(3):  # each time irqbalance has gone through all interrupts
        is_placed_anew(other)
        assert cpus(ours) == anywhere, "it stays where it was put"
    assert host.read(f"irqbalance:{other}/banned") == "no"

    assert {each.outcome for each in host.restore(saved, written)} == {Outcome.RESTORED}
    assert {address: host.read(address) for address in saved} == saved, "byte for byte"
    is_placed_anew(ours)
