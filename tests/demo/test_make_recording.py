"""The demo's recording holds nothing that a stranger should not see."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.demo.make_recording import CGROUP, PRIVATE_FACTS, keep_channel, keep_facts
from unveil.engine.observation import Observation
from unveil.host.fact_json import encode_facts
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ({}, True),
        ({"cpu": "3"}, True),
        ({"node": "0"}, True),
        ({"disk": "vda"}, True),
        ({"cgroup": CGROUP}, True),
        ({"cgroup": "/tenants/acme"}, False),
        ({"cgroup": f"{CGROUP}/inner"}, False),
        ({"nic": "eth0"}, True),
        ({"nic": "veth1a2b3c"}, False),
        ({"irq": "24", "cpu": "0"}, False),
    ],
)
def test_channels_are_those_of_the_host_and_of_the_workload(labels: dict[str, str], kept: bool) -> None:
    assert keep_channel(Channel("some.metric", tuple(sorted(labels.items())))) is kept


def test_facts_of_others_and_private_ones_go_with_the_settings_behind_them() -> None:
    def about(kind: EntityKind, key: str) -> Fact:
        return Fact(name=f"x.{kind}", entity=Entity(kind, key), value="v", setting=f"file:/{kind}/{key}")

    table = FactTable(
        (
            Fact(name="memory.thp_enabled", value="never", setting="file:/thp"),
            Fact(name="cpu.model", value="Secret 9000"),
            Fact(name="cpu.kernel", value="6.1.0-acme"),
            about(EntityKind.CGROUP, CGROUP),
            about(EntityKind.CGROUP, "/tenants/acme"),
            about(EntityKind.NIC, "eth0"),
            about(EntityKind.NIC, "veth1a2b3c"),
            about(EntityKind.IRQ, "24"),
        ),
        {
            "file:/thp": "always madvise [never]",
            "file:/cgroup//tenants/acme": "1",
            "file:/irq/24": "0-3",
            f"file:/cgroup/{CGROUP}": "2",
        },
    )
    kept = keep_facts(table)
    assert {(fact.name, fact.entity.key) for fact in kept.facts} == {
        ("memory.thp_enabled", ""),
        ("x.cgroup", CGROUP),
        ("x.nic", "eth0"),
    }
    assert kept.settings == {"file:/thp": "always madvise [never]", f"file:/cgroup/{CGROUP}": "2"}


@pytest.fixture
def here() -> Iterator[FactTable]:
    with closing(Observation(Path("/"), gpu=False)) as observation:
        yield observation.facts


def test_of_this_very_machine_neither_name_nor_kernel_nor_model_is_kept(here: FactTable) -> None:
    kept = keep_facts(here)
    assert kept.facts
    assert not {fact.name for fact in kept.facts} & PRIVATE_FACTS
    said = str(encode_facts(kept))
    assert os.uname().release not in said
    assert os.uname().version not in said
    assert socket.gethostname() not in {fact.value for fact in kept.facts}
    assert {fact.entity.key for fact in kept.facts if fact.entity.kind is EntityKind.CGROUP} <= {CGROUP}
