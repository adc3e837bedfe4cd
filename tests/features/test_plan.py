"""The plan gives for every formula what a slow reading of the formula gives."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.features.catalogue import FEATURES
from unveil.features.feature import Across, Channels, FactNumber, Formula, Stat
from unveil.features.plan import ABSENT, Planner
from unveil.features.roster import Roster
from unveil.features.statistics import STATISTICS
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import FactTable
from unveil.records.sample import SampleBlock

Block = Callable[..., SampleBlock]
Facts = Callable[..., FactTable]
NONE = float("nan")
KEYS = {
    "cpu": ["0", "1", "8"],
    "nic": ["eth0", "ib0"],
    "disk": ["sda", "sdb"],
    "node": ["0", "1"],
    "gpu": ["GPU-a", "GPU-b"],
    "cgroup": ["/a"],
    "irq": ["24", "25"],
    # no entities, only told apart
    "package": ["0", "1"],
    "sensor": ["a", "b"],
    "state": ["0", "2"],
    "depth": ["deep", "poll"],
    "size": ["64", "2048"],
    "controller": ["0"],
    "pci": ["0000:01:00.0"],
    "port": ["mlx5_0/1"],
    "vcpu": ["0", "1"],
    "vhost": ["0"],
}
PLAIN = {name: feature for name, feature in FEATURES.items() if not any(each.pick for each in feature.formula.channels)}


def statistic(block: SampleBlock, column: int, stat: Stat) -> float:
    seconds = (block.times_ns - block.times_ns[0]) * 1e-9
    samples = block.values[:, column : column + 1]
    with np.errstate(all="ignore"):
        return float(STATISTICS[stat](seconds, samples, np.isfinite(samples))[0])


def slow_term(term: Channels | FactNumber, entity: Entity, block: SampleBlock, facts: FactTable) -> float:
    """Sum over the instances that are present, None when there is none."""
    if isinstance(term, FactNumber):
        value = facts.value(term.fact, entity if term.per is entity.kind else HOST)
        return value if isinstance(value, float) else NONE
    own = not term.whole and entity.kind in term.over
    present = []
    for column, channel in enumerate(block.layout.channels):
        labels = dict(channel.labels)
        if channel.metric != term.metric or (own and labels.get(entity.kind) != entity.key):
            continue
        fits = {*term.over} <= {*labels} and (term.loose or {*labels} == {*term.over, *dict(term.where)})
        if fits and all(labels[label] == value for label, value in term.where):
            present.append(statistic(block, column, term.stat))
    present = [value for value in present if not math.isnan(value)]
    return sum(present) if present else NONE


def slow_value(formula: Formula, entity: Entity, block: SampleBlock, facts: FactTable) -> float:
    if formula.across is not None:
        plain = Formula(numerator=formula.numerator, denominator=formula.denominator, scale=formula.scale)
        values = [slow_value(plain, Entity(formula.each, key), block, facts) for key in KEYS[formula.each]]
        known = sorted(value for value in values if not math.isnan(value))
        if not known or (formula.across is Across.IMBALANCE and len(known) < 2):
            return NONE
        return {
            Across.LOWEST: known[0],
            Across.AVERAGE: statistics.fmean(known),
            Across.HIGHEST: known[-1],
            Across.IMBALANCE: known[-1] - statistics.median(known),
        }[formula.across]
    above = sum(slow_term(term, entity, block, facts) for term in formula.numerator)
    below = sum(slow_term(term, entity, block, facts) for term in formula.denominator) if formula.denominator else 1.0
    return formula.scale * above / below if below > 0 else NONE


def channels(metrics: set[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]]) -> list[str]:
    names = []
    for metric, over, where in sorted(metrics):
        labels = [[f"{key}={value}" for key, value in where]]
        for label in (*over, "cpu") if over == ("irq",) else over:
            labels = [[*each, f"{label}={key}"] for each in labels for key in KEYS[label]]
        names += [metric + ("{" + ",".join(each) + "}" if each else "") for each in labels]
    return list(dict.fromkeys(names))


EVERYTHING = channels(
    {(each.metric, each.over, each.where) for feature in PLAIN.values() for each in feature.formula.channels}
)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 6), lost=st.sampled_from([0.0, 0.0, 0.02, 0.3, 0.9]))
def test_every_formula_comes_out_as_a_slow_reading_of_it(
    block: Block, facts: Facts, seed: int, rows: int, lost: float
) -> None:
    noise = np.random.default_rng(seed)
    chosen = [name for name in EVERYTHING if noise.uniform() > lost / 4]
    steps = noise.integers(0, 5, (rows, len(chosen))) * noise.choice([1, 1, 1, 1000], len(chosen))
    values = np.where(noise.uniform(size=steps.shape) < lost, NONE, np.cumsum(steps, axis=0) + 7.0)
    made = block(dict(zip(chosen, values.T.tolist(), strict=True)), 0.5)
    known = facts({"cpu.online_count": 3.0, "network.nic_speed[nic:ib0]": 1000.0, "cpu.cgroup_quota[cgroup:/a]": 0.5})
    planner = Planner(Roster([made.layout], known))
    asked = [
        (feature.formula, entity)
        for feature in PLAIN.values()
        for entity in (
            [HOST] if feature.per is EntityKind.HOST else [Entity(feature.per, k) for k in KEYS[feature.per]]
        )
    ]
    plan = planner.draw([planner.register(*each) for each in asked], [math.inf] * len(asked))
    wanted = [slow_value(formula, entity, made, known) for formula, entity in asked]
    np.testing.assert_allclose(plan.run([made]), wanted, rtol=1e-9, atol=1e-9)


def test_equal_numbers_are_computed_once(block: Block, facts: Facts) -> None:
    planner = Planner(Roster([block({"cpu.user": [1, 2], "cpu.idle": [1, 2]}, 1.0).layout], facts({})))
    total = (Channels(metric="cpu.user", stat=Stat.RATE), Channels(metric="cpu.idle", stat=Stat.RATE))
    share = Formula(numerator=total[:1], denominator=total)
    first, again = planner.register(share, HOST), planner.register(share, HOST)
    other = planner.register(Formula(numerator=total[1:], denominator=total), HOST)
    assert first == again != other
    plan = planner.draw([first, other], [1.0, 1.0])
    assert (len(plan.reads), len(plan.quantities.out), len(plan.ratios.out)) == (1, 1, 2)
    assert planner.register(Formula(numerator=(Channels(metric="cpu.steal", stat=Stat.RATE),)), HOST) == ABSENT


@pytest.mark.parametrize("poison", [math.inf, -math.inf, 1e308, NONE])
def test_what_overflows_is_absent_and_alone(block: Block, facts: Facts, poison: float) -> None:
    made = block({"memory.free": [poison, poison, -poison], "memory.dirty": [1, 2, 3]}, 1.0)
    planner = Planner(Roster([made.layout], facts({})))
    names = [(metric, stat) for metric in ("memory.free", "memory.dirty") for stat in Stat]
    registers = [planner.register(Formula(numerator=(Channels(metric=m, stat=s),)), HOST) for m, s in names]
    values = planner.draw(registers, [math.inf] * len(names)).run([made])
    assert not np.isinf(values).any()
    half = len(names) // 2
    assert not np.isnan(values[half:]).any()
