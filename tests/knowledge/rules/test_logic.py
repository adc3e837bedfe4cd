"""Conditions that contradict themselves, and clauses that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "fingerprints/gpu/power_limit_low.yml"
CLAUSES = """\
    busy: {feature: gpu.util.mean, gte: 0.6}
    slower: {feature: gpu.sm_clock.mean, deviates: down, by_sigma: 2}
    gpu_led: {share: gpu, gte: 0.5, optional: true}
  condition: busy and (slower or gpu_led)
"""
NEVER = "it can never hold: its clauses contradict each other"
ALWAYS = "it always holds: whatever the clauses answer"


def written(condition: str, **clauses: str) -> str:
    lines = [f"    {name}: {{{clause}}}\n" for name, clause in clauses.items()]
    return "".join(lines) + f"  condition: {condition}\n"


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (written("a and b", a="feature: gpu.util.mean, gte: 0.6", b="feature: gpu.util.mean, lt: 0.6"), NEVER),
        (written("a or b", a="feature: gpu.util.mean, gte: 0.6", b="feature: gpu.util.mean, lt: 0.6"), ALWAYS),
        (written("a and b", a="feature: gpu.util.mean, gte: 0.6", b="feature: gpu.util.mean, lte: 0.6"), ""),
        (written("a and b", a="feature: gpu.util.mean, gt: 0.2", b="feature: gpu.util.mean, lt: 0.3"), ""),
        (written("a and not b", a="feature: gpu.util.mean, gt: 0.6", b="feature: gpu.util.mean, gte: 0.5"), NEVER),
        (written("2 of *", a="feature: gpu.util.mean, gt: 0.6", b="feature: gpu.util.mean, lt: 0.5",
                 c="feature: gpu.util.mean, lt: 0.4"), ""),
        (written("3 of *", a="feature: gpu.util.mean, gt: 0.6", b="feature: gpu.util.mean, lt: 0.5",
                 c="feature: gpu.util.mean, lt: 0.4"), NEVER),
        (written("a and b", a="fact: memory.thp_enabled, eq: never", b="fact: memory.thp_enabled, in: [always]"),
         NEVER),
        (written("a and b", a="fact: memory.thp_enabled, neq: never",
                 b="fact: memory.thp_enabled, not_in: [always]"), ""),
        (written("a or b", a="fact: network.nic_physical, eq: true, entity: nic",
                 b="fact: network.nic_physical, eq: false, entity: nic"), ALWAYS),
        (written("a and b", a="fact: cpu.managers, in: [tuned]", b="fact: cpu.managers, in: [irqbalance]"), ""),
        (written("a and b", a="fact: memory.swappiness, gte: 61", b="fact: memory.swappiness, lt: 60"), NEVER),
        (written("a and b", a="share: gpu, gte: 0.6", b="share: memory, gte: 0.5"),
         "it can never hold: the shares it asks for are more than the whole"),
        (written("a and b", a="share: gpu, gte: 0.5", b="share: memory, gte: 0.5"), ""),
        (written("a or b", a="share: gpu, gte: 0.6", b="share: memory, gte: 0.5"), ""),
        (written("a and b", a="feature: gpu.util.mean, deviates: up, by_sigma: 2",
                 b="feature: gpu.util.mean, deviates: down, by_sigma: 2"), NEVER),
        (written("a and b", a="feature: gpu.util.mean, deviates: up, by_sigma: 2",
                 b="feature: gpu.util.mean, deviates: down, by_sigma: 2, against: peers"), ""),
        (written("a or not a", a="feature: gpu.util.mean, gte: 0.6"), ALWAYS),
        (written("a and not b", a="feature: gpu.util.mean, gte: 0.6, optional: true",
                 b="feature: gpu.util.mean, gte: 0.5, optional: true"), NEVER),
        (written("not a and b", a="feature: gpu.util.mean, gte: 0, optional: true",
                 b="feature: gpu.util.mean, lt: 0.5"), NEVER),
    ],
)  # fmt: skip
def test_what_can_never_or_always_hold_is_told(
    told: Callable[[str, str, str], list[str]], signature: str, expected: str
) -> None:
    found = [line for line in told(FILE, CLAUSES, signature) if "K206" in line or "K212" in line]
    assert [line.partition(": ")[2].partition(": ")[2] for line in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("gte: 0", "gpu.util.mean gte 0 always holds (it lies between 0 and 1)"),
        ("lt: 0", "gpu.util.mean lt 0 never holds (it lies between 0 and 1)"),
        ("lte: 1", "gpu.util.mean lte 1 always holds (it lies between 0 and 1)"),
        ("gt: 1", "gpu.util.mean gt 1 never holds (it lies between 0 and 1)"),
        ("eq: 0.5", "gpu.util.mean is measured: to equal 0.5 is chance (a bound, or two)"),
        ("gt: 0", ""), ("lt: 1", ""), ("eq: 0", ""), ("eq: 1", ""), ("slope_over: 9s, gte: 0", ""),
    ],
)  # fmt: skip
def test_a_comparison_that_says_nothing_is_told(
    told: Callable[[str, str, str], list[str]], clause: str, expected: str
) -> None:
    found = [line for line in told(FILE, "mean, gte: 0.6", f"mean, {clause}") if "K207" in line]
    assert [line.partition("K207: ")[2] for line in found] == ([expected] if expected else [])
