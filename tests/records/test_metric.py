"""A channel is a metric with labels, and says so."""

from __future__ import annotations

import pytest

from unveil.records.metric import Channel, Kind, declare
from unveil.records.subsystem import Subsystem


def test_a_channel_names_its_labels_and_answers_for_them() -> None:
    channel = Channel("cpu.irq", (("irq", "24"), ("cpu", "3")))
    assert str(channel) == "cpu.irq{irq=24,cpu=3}"
    assert channel.label("cpu") == "3"
    assert channel.label("node") is None
    assert str(Channel("cpu.forks")) == "cpu.forks"


def test_a_metric_belongs_to_the_subsystem_that_its_name_begins_with() -> None:
    told = declare("network.nic_drops", Kind.COUNTER, "1", "packets dropped", source="/proc/net/dev", labels=("nic",))
    assert (told.subsystem, told.labels) == (Subsystem.NETWORK, ("nic",))
    with pytest.raises(ValueError, match="nowhere"):
        declare("nowhere.drops", Kind.COUNTER, "1", "", source="")
