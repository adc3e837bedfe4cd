"""Facts of a GPU from what the driver said and where sysfs places it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.gpu_facts import gpu_facts, power_limit_texts, watts_text
from unveil.host.gpu_frames import IdentityFrame
from unveil.host.root import HostRoot
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.fact import Fact

TOLD = {
    "gpu.name": "H100",
    "gpu.pci": "0000:19:00.0",
    "gpu.power_limit": 700.0,
    "gpu.power_default": 700.0,
    "gpu.pids": ["7"],
}


def facts_of(root: Path, told: dict[str, object] | None = None, **keywords: object) -> dict[str, Fact]:
    identity = IdentityFrame(
        gpu="GPU-1", at_ns=0, facts=TOLD if told is None else told, reasons={"gpu.power_min": "why"}
    )
    return {fact.name: fact for fact in gpu_facts(HostRoot(root), identity, **keywords)}


def place(root: Path, node: str) -> None:
    device = root / "sys/bus/pci/devices/0000:19:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text(node)


def test_every_fact_is_in_the_catalogue_and_absent_ones_have_a_reason(tmp_path: Path) -> None:
    for fact in facts_of(tmp_path).values():
        assert fact.name in FACTS
        assert (fact.value is None) == (fact.reason is not None), fact


@pytest.mark.parametrize(("text", "value"), [("1\n", 1.0), ("0\n", 0.0), ("-1\n", None), ("", None), ("x", None)])
def test_the_node_is_that_of_sysfs_and_minus_one_is_none(tmp_path: Path, text: str, value: float | None) -> None:
    place(tmp_path, text)
    assert facts_of(tmp_path)["gpu.node"].value == value


def test_a_gpu_without_an_address_has_no_node(tmp_path: Path) -> None:
    assert "PCI" in (facts_of(tmp_path, {})["gpu.node"].reason or "")


def test_a_silent_driver_takes_the_word_back_on_what_may_have_changed(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, silent="the driver does not answer", power_limit=350.0)
    assert facts["gpu.power_limit"].value is facts["gpu.pids"].value is None
    assert facts["gpu.power_limit"].reason == "the driver does not answer"
    assert facts["gpu.name"].value == "H100"
    assert facts["gpu.power_default"].value == 700.0


def test_the_newest_sample_knows_the_limit_better(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, power_limit=350.5)
    assert facts["gpu.power_limit"].value == 350.5
    assert power_limit_texts(facts.values()) == {"nvml:GPU-1/power_limit": "350.5\n"}


@pytest.mark.parametrize(
    ("watts", "text"), [(350.0, "350"), (350.5, "350.5"), (100.0, "100"), (0.0, "0"), (612.345, "612.345")]
)
def test_watts_are_written_as_a_person_would(watts: float, text: str) -> None:
    assert watts_text(watts) == text
