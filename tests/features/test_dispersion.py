"""Uneven loads over CPUs, GPUs and disks, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unveil.records.feature import FeatureVector

Extract = Callable[..., FeatureVector]
STATES = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]


def cpu(key: str, **busy: float) -> dict[str, list[float]]:
    """Counters of one CPU over one second, idle for what is not said."""
    spent = {state: busy.get(state, 0.0) for state in STATES}
    spent["idle"] = 1.0 - sum(busy.values())
    label = f"{{cpu={key}}}" if key else ""
    return {f"cpu.{state}{label}": [5.0, 5.0 + each] for state, each in spent.items()}


def test_one_cpu_that_does_the_work_of_many(extract: Extract) -> None:
    samples = cpu("0", softirq=0.9) | cpu("1", user=0.1) | cpu("8", user=0.1) | cpu("9")
    vector = extract(samples)
    assert vector.get("cpu.busy_highest.rate") == pytest.approx(0.9)
    assert vector.get("cpu.busy_imbalance.rate") == pytest.approx(0.9 - 0.1)
    assert vector.get("cpu.softirq_imbalance.rate") == pytest.approx(0.9)
    assert vector.get("cpu.steal_imbalance.rate") == 0.0


def test_a_host_of_one_cpu_has_no_imbalance(extract: Extract) -> None:
    vector = extract(cpu("0", user=0.5))
    assert vector.get("cpu.busy_highest.rate") == pytest.approx(0.5)
    assert vector.get("cpu.busy_imbalance.rate") is None


def test_all_interrupts_on_one_cpu(extract: Extract) -> None:
    vector = extract({f"cpu.irq{{irq={irq},cpu={cpu}}}": [0, 30 * (cpu == 2)] for irq in (24, 25) for cpu in range(4)})
    assert vector.get("cpu.irq_part_highest.rate") == 1.0
    assert vector.get("cpu.device_irqs.rate") == 60.0


def test_gpus_that_do_not_keep_step(extract: Extract) -> None:
    vector = extract({f"gpu.util{{gpu=GPU-{index}}}": [util, util] for index, util in enumerate((0.9, 0.9, 0.8, 0.1))})
    assert vector.get("gpu.util_lowest.mean") == pytest.approx(0.1)
    assert vector.get("gpu.util_average.mean") == pytest.approx(0.675)
    assert vector.get("gpu.util_highest.mean") == pytest.approx(0.9)
    assert vector.get("gpu.util_imbalance.mean") == pytest.approx(0.9 - 0.85)
