"""The catalogue: complete, well named, and made of metrics and facts that there are."""

from __future__ import annotations

import math
import re
from collections import Counter

from unveil.features.catalogue import FEATURES
from unveil.features.feature import SHARE, Stat
from unveil.host.catalogue import METRICS
from unveil.records.entity import EntityKind
from unveil.records.fact_catalogue import FACTS
from unveil.records.metric import Kind
from unveil.records.subsystem import Subsystem

# What the six fingerprints go by: names and kinds are a contract.
PROMISED = {
    EntityKind.HOST: """
        memory.page_faults.rate memory.thp_fault_alloc.rate memory.thp_fault_fallback_share.rate
        memory.anon_huge_share.last interconnect.numa_other_share.rate cpu.busy.rate cpu.idle.rate cpu.iowait.rate
        memory.dirty_to_threshold.mean memory.dirty.mean memory.writeback.mean storage.psi_full.rate
        storage.psi_some.rate storage.write_bytes.rate memory.psi_some.rate cpu.psi_some.rate""",
    EntityKind.CGROUP: """
        memory.cgroup_anon.last memory.cgroup_huge_share.last cpu.cgroup_usage.rate
        interconnect.cgroup_remote_share.last cpu.cgroup_throttled_share.rate cpu.cgroup_throttled_time.rate""",
    EntityKind.NIC: """
        network.irq_remote_share.rate network.irq.rate network.rx_bytes.rate network.tx_bytes.rate
        network.rx_packets.rate""",
    EntityKind.GPU: """
        gpu.util.mean gpu.power_limit_share.min gpu.power_to_limit.mean gpu.throttle_power.mean
        gpu.throttle_thermal.max gpu.sm_clock.mean gpu.value_age.max""",
}
STATS = {"rate", "mean", "min", "max", "last", "std", "slope"}


def test_what_fingerprints_were_promised_is_there() -> None:
    for kind, names in PROMISED.items():
        assert {name: FEATURES[name].per for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_a_feature_reads_metrics_that_sources_give() -> None:
    for feature in FEATURES.values():
        for channels in feature.formula.channels:
            metric = METRICS[channels.metric]
            assert {*channels.over, *dict(channels.where)} <= set(metric.labels), feature.name
            counter = channels.stat in (Stat.RATE, Stat.UNEVENNESS)
            assert counter == (metric.kind is Kind.COUNTER), f"{feature.name}: {metric.name} is a {metric.kind}"


def test_a_feature_reads_facts_that_the_reader_gives() -> None:
    for feature in FEATURES.values():
        assert feature.formula.facts <= set(FACTS), feature.name
        for term in (*feature.formula.numerator, *feature.formula.denominator):
            if not hasattr(term, "metric"):
                assert FACTS[term.fact].per is term.per, feature.name
                assert FACTS[term.fact].type == "number", feature.name


def test_no_metric_is_sampled_for_nothing() -> None:
    assert {each.metric for feature in FEATURES.values() for each in feature.formula.channels} == set(METRICS)


def test_an_entry_is_well_formed() -> None:
    for name, feature in FEATURES.items():
        assert re.fullmatch(r"[a-z]+\.[a-z][a-z0-9_]*\.[a-z]+", feature.name), name
        assert feature.subsystem in Subsystem, name
        assert feature.name.rpartition(".")[2] in STATS, name
        assert feature.meaning, name
        assert "{" not in feature.meaning, name
        assert feature.low in (0.0, -math.inf), name
        assert feature.high == (1.0 if feature.unit == SHARE else math.inf), name
        assert not (feature.log and feature.low < 0), f"{name}: log1p of a negative is nothing"
        assert not feature.detect or feature.per is EntityKind.HOST, name


def test_the_detectors_see_the_breadth_of_the_host() -> None:
    seen = Counter(feature.subsystem for feature in FEATURES.values() if feature.detect)
    assert 150 <= seen.total() <= 270
    assert set(seen) == set(Subsystem)
    assert min(seen.values()) >= 15


def test_no_two_families_claim_one_name() -> None:
    by_formula = Counter(feature.formula for feature in FEATURES.values() if feature.formula.across is None)
    assert by_formula.most_common(1)[0][1] == 1, "one number under two names weighs twice"
