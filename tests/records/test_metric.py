"""A channel is a metric with labels, and says so."""

from __future__ import annotations

from unveil.records.metric import Channel


def test_a_channel_names_its_labels_and_answers_for_them() -> None:
    channel = Channel("cpu.irq", (("irq", "24"), ("cpu", "3")))
    assert str(channel) == "cpu.irq{irq=24,cpu=3}"
    assert channel.label("cpu") == "3"
    assert channel.label("node") is None
    assert str(Channel("cpu.forks")) == "cpu.forks"
