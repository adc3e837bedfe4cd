"""Many features from one line, each with the name and the meaning that a person would have written."""

from __future__ import annotations

from unveil.features.families import across, counters, device_irqs, gauges, plain, ratio, single
from unveil.features.feature import SHARE, Across, Channels, Stat, Trouble
from unveil.records.entity import EntityKind


def test_a_table_of_metrics_becomes_features() -> None:
    dirty, grown = plain("memory", (Stat.MEAN, Stat.SLOPE), "bytes", {"dirty": "memory to be written"})
    assert (dirty.name, dirty.unit, dirty.meaning) == ("memory.dirty.mean", "bytes", "memory to be written, on average")
    assert (grown.name, grown.unit, grown.log) == ("memory.dirty.slope", "bytes/s", False)
    (spread,) = plain("cpu", (Stat.UNEVENNESS,), "1/s", {"forks": "forks"})
    assert spread.name == "cpu.forks.std"
    (sent,) = plain("network", (Stat.RATE,), "1/s", {"tx_bytes": "bytes sent"}, name="{}_total", over=("nic",))
    assert (sent.name, sent.unit) == ("network.tx_bytes_total.rate", "bytes/s")


def test_values_of_entities_become_values_of_the_host() -> None:
    part = ratio("gpu.load.mean", "load", gauges("gpu", "util", Stat.MEAN, ("gpu",)), (), each=EntityKind.GPU)
    low, apart = across(part, (Across.LOWEST, Across.IMBALANCE))
    assert (low.name, low.meaning) == ("gpu.load_lowest.mean", "load: lowest of all GPUs")
    assert (low.per, low.detect, low.unit) == (EntityKind.HOST, True, SHARE)
    assert (apart.name, apart.trouble) == ("gpu.load_imbalance.mean", Trouble.UP)


def test_channels_are_named_in_one_breath() -> None:
    assert counters("cpu", "user nice") == (
        Channels(metric="cpu.user", stat=Stat.RATE),
        Channels(metric="cpu.nice", stat=Stat.RATE),
    )
    assert single("cpu.user", Stat.RATE).numerator == counters("cpu", "user")
    assert device_irqs().loose
