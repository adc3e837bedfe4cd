"""What is seen of recorded work from below a guest."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.engine.views import View, looked_at, sees
from unveil.host.replay import Tick
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

WORK = (("cgroup", "/work"),)
BUSY = Channel("cpu.user")
NIC = Channel("network.tx_bytes", (("nic", "tap0"),))
USAGE = Channel("cpu.cgroup_usage", WORK)
NODE = Channel("interconnect.cgroup_node_anon", (*WORK, ("node", "0")))
RETRANS = Channel("network.cgroup_tcp_retrans", WORK)
FAULTS = Channel("memory.cgroup_page_faults", WORK)
CHANNELS = (BUSY, USAGE, RETRANS, NIC, NODE, FAULTS)


@pytest.mark.parametrize(
    ("view", "seen"),
    [
        (View.ALL, CHANNELS),
        (View.GUEST, (BUSY, USAGE, NIC, NODE)),
        (View.HOST, (BUSY, NIC)),
    ],
)
def test_a_view_leaves_out_what_is_not_seen_from_there(view: View, seen: tuple[Channel, ...]) -> None:
    assert tuple(channel for channel in CHANNELS if sees(view, channel)) == seen


def test_the_values_left_are_those_of_their_channels_and_blocks_go_on_sharing_a_layout() -> None:
    layout = Layout(CHANNELS)
    blocks = [
        SampleBlock(
            tier=Tier.FAST, layout=layout, times_ns=np.array([number]), values=np.arange(6.0)[np.newaxis] + number
        )
        for number in (10, 20)
    ]  # fmt: skip
    entity = Entity(EntityKind.CGROUP, "/work")
    facts = FactTable(
        facts=(Fact(name="cpu.count", entity=HOST, value=2.0), Fact(name="cpu.cgroup_kind", entity=entity, value="vm")),
        settings={"sysctl:vm.swappiness": "60", "cgroup:/work/cpu.max": "max"},
    )
    ticks = [Tick(blocks=(block,), facts=facts, wall_s=1.0) for block in blocks]
    seen = list(looked_at(ticks, View.HOST))
    assert [tick.blocks[0].values.tolist() for tick in seen] == [[[10.0, 13.0]], [[20.0, 23.0]]]
    assert seen[0].blocks[0].layout is seen[1].blocks[0].layout
    assert seen[0].facts is not None
    assert [fact.name for fact in seen[0].facts.facts] == ["cpu.count"]
    assert list(seen[0].facts.settings) == ["sysctl:vm.swappiness"]
    assert next(looked_at(ticks, View.GUEST)).facts is facts
    assert next(looked_at(ticks, View.ALL)) is ticks[0]
