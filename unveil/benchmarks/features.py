"""What a window costs: cutting it out of the samples, and turning it into features.

    python -m unveil.benchmarks.features

Prints medians over many windows of made-up hosts of several sizes. CPU time, so that neighbours matter little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from unveil.features.catalogue import FEATURES
from unveil.features.extract import Extractor
from unveil.features.feature import Stat
from unveil.host.catalogue import SOURCES
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.slider import Slider

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"small": (4, 1, 4, 0), "usual": (24, 4, 12, 0), "GPU server": (128, 10, 60, 8)}  # CPUs, NICs, cgroups, GPUs
BUDGET_MS = 0.3  # for the usual host, of about 500 channels

_TIERS = {metric.name: source.pace.tier for source in SOURCES for metric in source.metrics}
_PERIOD_NS = {Tier.FAST: 100_000_000, Tier.MEDIUM: 1_000_000_000, Tier.SLOW: 2_000_000_000}


def made_up_layouts(cpus: int, nics: int, cgroups: int, gpus: int) -> dict[Tier, list[Layout]]:
    """Return layouts with every channel that some feature reads, for a host of the given size."""
    keys = {
        "cpu": [str(index) for index in range(cpus)],
        "nic": [f"eth{index}" for index in range(nics)],
        "cgroup": [f"/pod{index}" for index in range(cgroups)],
        "gpu": [f"GPU-{index}" for index in range(gpus)],
        "node": ["0", "1"],
        "disk": ["nvme0n1", "nvme1n1"],
        "irq": [str(40 + index) for index in range(4 * nics)],
        "port": [f"mlx5_{index}/1" for index in range(nics)],
        "pci": [f"0000:{index:02x}:00.0" for index in range(nics + gpus)],
    }
    wanted = {
        (each.metric, each.over, each.where) for feature in FEATURES.values() for each in feature.formula.channels
    }
    found: dict[tuple[Tier, bool], list[Channel]] = {}
    for metric, over, where in sorted(wanted):
        labels: list[tuple[tuple[str, str], ...]] = [where]
        for label in (*over, "node") if over == ("irq",) else over:
            labels = [(*each, (label, key)) for each in labels for key in keys.get(label, ["0"])]
        gpu = metric.startswith("gpu.")
        tier = Tier.MEDIUM if gpu else _TIERS.get(metric, Tier.FAST)
        found.setdefault((tier, gpu), []).extend(Channel(metric, each) for each in labels)
    layouts: dict[Tier, list[Layout]] = {}
    for (tier, _), channels in found.items():
        layouts.setdefault(tier, []).append(Layout(tuple(dict.fromkeys(channels))))
    return layouts


def made_up_second(layouts: dict[Tier, list[Layout]], second: int) -> list[SampleBlock]:
    """Return one second of samples: counters that count, gauges that do not stand still."""
    counted = {
        each.metric
        for feature in FEATURES.values()
        for each in feature.formula.channels
        if each.stat in (Stat.RATE, Stat.UNEVENNESS)
    }
    noise = np.random.default_rng(second)
    blocks = []
    for tier, several in layouts.items():
        period = _PERIOD_NS[tier]
        times = np.arange(second * 1_000_000_000, (second + 1) * 1_000_000_000, min(period, 1_000_000_000))
        times = times[times % period == 0]
        for layout in several if len(times) else ():
            counter = np.array([channel.metric in counted for channel in layout.channels])
            size = (len(times), len(layout.channels))
            values = np.where(counter, times[:, None] * 1e-9, 0.0) + noise.uniform(0, 0.05, size)
            blocks.append(SampleBlock(tier=tier, layout=layout, times_ns=times, values=values))
    return blocks


def made_up_facts(nics: int, cgroups: int) -> FactTable:
    """Return the facts that features ask for."""
    facts = [Fact(name="memory.total", value=2e11), Fact(name="cpu.online_count", value=24.0)]
    for index in range(nics):
        nic = Entity(EntityKind.NIC, f"eth{index}")
        irqs = tuple(str(40 + 4 * index + each) for each in range(4))
        facts += [
            Fact(name="network.nic_irqs", entity=nic, value=irqs),
            Fact(name="network.nic_node", entity=nic, value=float(index % 2)),
            Fact(name="network.nic_local_cpus", entity=nic, value="0-7"),
        ]
    facts += [
        Fact(name="interconnect.cgroup_home_node", entity=Entity(EntityKind.CGROUP, f"/pod{index}"), value=0.0)
        for index in range(cgroups)
    ]
    return FactTable(tuple(facts))


def median_ms(action: Callable[[], object], times: int) -> float:
    """Return the median CPU time of an action in milliseconds."""
    spent = []
    for _ in range(times):
        began = time.process_time_ns()
        action()
        spent.append((time.process_time_ns() - began) / 1e6)
    return statistics.median(spent)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="what cutting a window and extracting its features costs")
    parser.add_argument("--windows", type=int, default=500, help="repetitions of each measurement (default 500)")
    repetitions = parser.parse_args().windows
    print(f"{'host':<12}{'channels':>9}{'features':>9}{'detected':>9}{'plan ms':>9}{'slide ms':>9}{'extract ms':>11}")
    for name, (cpus, nics, cgroups, gpus) in SIZES.items():
        layouts, facts = made_up_layouts(cpus, nics, cgroups, gpus), made_up_facts(nics, cgroups)
        slider, sliding, window = Slider(), [], None
        for second in range(12):
            blocks = made_up_second(layouts, second)
            began = time.process_time_ns()
            windows = slider.push(blocks, wall_s=0.0)
            sliding.append((time.process_time_ns() - began) / 1e6)
            window = windows[-1] if windows else window
        assert window is not None
        extractor = Extractor(FEATURES)
        vector = extractor.extract(window, facts)
        channels = sum(len(block.layout.channels) for block in window.blocks)
        plan = median_ms(lambda window=window, facts=facts: Extractor(FEATURES).extract(window, facts), 5)  # type: ignore[misc]  # bound now
        cost = median_ms(lambda window=window, facts=facts: extractor.extract(window, facts), repetitions)  # type: ignore[misc]  # noqa: B023  # called now
        detected = sum(feature.detect for feature in FEATURES.values())
        print(
            f"{name:<12}{channels:>9}{len(vector.values):>9}{detected:>9}{plan:>9.1f}"
            f"{statistics.median(sliding[4:]):>9.3f}{cost:>11.3f}"
        )
    print(f"budget: {BUDGET_MS} ms for the usual host")


if __name__ == "__main__":
    main()
