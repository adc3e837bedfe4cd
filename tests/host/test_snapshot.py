from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.host.root import HostRoot
from unveil.host.snapshot import newest, survey, take_snapshot
from unveil.host.source import SourceState
from unveil.records.codec import encode
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from unveil.host.snapshot import Snapshot


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return take_snapshot(HostRoot(), wall_s=1_800_000_000.0, gpus=False)


def test_a_snapshot_of_this_machine_is_plain_json(snapshot: Snapshot) -> None:
    value = json.loads(json.dumps(encode(snapshot)))
    assert value["taken_s"] == 1_800_000_000
    assert value["root"] == "/"
    assert {"name": "memory.thp_enabled", "entity": {"kind": "host", "key": ""}}.items() <= next(
        fact for fact in value["facts"] if fact["name"] == "memory.thp_enabled"
    ).items()
    assert value["settings"]["sysctl:vm.swappiness"] == Path("/proc/sys/vm/swappiness").read_text()


def test_every_pace_has_given_a_value(snapshot: Snapshot) -> None:
    values = {(reading.metric, tuple(reading.labels.items())): reading for reading in snapshot.readings}
    for metric in ("cpu.user", "memory.free", "memory.page_faults"):
        reading = values[metric, ()]
        assert reading.value is not None
        assert reading.value > 0
        assert reading.unit
    assert values["memory.free", ()].kind == "gauge"
    slow = [reading for reading in snapshot.readings if reading.metric == "memory.node_total"]
    assert slow
    assert all(reading.value is not None for reading in slow)
    assert {source.state for source in snapshot.sources} <= set(SourceState)


def test_an_empty_tree_gives_facts_without_values_and_no_exception(tmp_path: Path) -> None:
    seen = survey(HostRoot(tmp_path), ticks=3)
    assert all(source.state is not SourceState.OK for source in seen.sources)
    assert seen.table.value("cpu.count") is None


def test_the_newest_value_that_is_one_counts() -> None:
    free, used = Channel("memory.free"), Channel("x.unknown", (("nic", "eth0"),))
    layout = Layout(channels=(free, used))

    def block(*rows: tuple[float, float]) -> SampleBlock:
        times = np.arange(len(rows), dtype=np.int64)
        return SampleBlock(tier=Tier.FAST, layout=layout, times_ns=times, values=np.array(rows, dtype=np.float64))

    found = newest([block((1.0, np.nan), (2.0, np.nan)), block((np.nan, np.nan))])
    assert [(reading.metric, reading.value) for reading in found] == [("memory.free", 2.0), ("x.unknown", None)]
    assert found[0].unit == "bytes"
    assert (found[1].unit, found[1].labels) == ("", {"nic": "eth0"})
