"""What an entry says of itself when only the unusual is spelt out."""

from __future__ import annotations

import math

from unveil.features.catalogue import FEATURES
from unveil.features.feature import Across, Channels, FactNumber, Formula, Pick, Stat, feature
from unveil.records.entity import EntityKind
from unveil.records.subsystem import Subsystem

UTIL = Channels(metric="gpu.util", stat=Stat.MEAN, over=("gpu",))


def test_a_part_is_for_matching_and_a_host_feature_for_detection() -> None:
    part = feature("gpu.util.mean", "busy", Formula(numerator=(UTIL,), each=EntityKind.GPU))
    assert (part.per, part.detect, part.subsystem) == (EntityKind.GPU, False, Subsystem.GPU)
    whole = feature("gpu.util_lowest.mean", "", Formula(numerator=(UTIL,), each=EntityKind.GPU, across=Across.LOWEST))
    assert (whole.per, whole.detect) == (EntityKind.HOST, True)


def test_shares_end_at_one_and_are_not_skewed() -> None:
    share = feature("gpu.util.mean", "busy", Formula(numerator=(UTIL,)))
    assert (share.low, share.high, share.log) == (0.0, 1.0, False)
    rate = feature("cpu.forks.rate", "forks", Formula(numerator=(UTIL,)), unit="1/s")
    assert (rate.low, rate.high, rate.log) == (0.0, math.inf, True)
    slope = feature("memory.anon.slope", "growth", Formula(numerator=(UTIL,)), unit="bytes/s", signed=True)
    assert (slope.low, slope.log) == (-math.inf, False)


def test_a_formula_knows_what_it_reads() -> None:
    picked = Channels(metric="cpu.irq", stat=Stat.RATE, pick=Pick(("network.nic_irqs",), lambda *_: None))
    formula = Formula(numerator=(UTIL, picked), denominator=(FactNumber(fact="memory.total"),))
    assert formula.channels == (UTIL, picked)
    assert formula.facts == {"memory.total", "network.nic_irqs"}


def test_an_entity_without_channels_of_its_own_gets_the_hosts_value() -> None:
    assert not UTIL.whole_for(EntityKind.GPU)
    assert UTIL.whole_for(EntityKind.NIC)
    assert Channels(metric="gpu.util", stat=Stat.MEAN, over=("gpu",), whole=True).whole_for(EntityKind.GPU)
    assert FactNumber(fact="memory.total").whole_for(EntityKind.GPU)
    assert not FactNumber(fact="network.nic_speed", per=EntityKind.NIC).whole_for(EntityKind.NIC)


def test_a_softirq_tells_of_the_subsystem_that_it_is_run_for() -> None:
    assert FEATURES["cpu.softirq_net_tx.rate"].subsystem is Subsystem.NETWORK
    assert FEATURES["cpu.softirq_block.rate"].subsystem is Subsystem.STORAGE
    assert FEATURES["cpu.softirq_timer.rate"].subsystem is Subsystem.CPU
