"""What TCP goes through inside of containers: of each, and of the host as the sum over all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unveil.features.catalogue import FEATURES
from unveil.features.load import is_load
from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureVector

Extract = Callable[..., FeatureVector]
POD = Entity(EntityKind.CGROUP, "/kubepods/pod1")


def test_each_container_has_its_rates_and_its_share(extract: Extract) -> None:
    vector = extract(
        {
            "network.cgroup_tcp_out_segs{cgroup=/kubepods/pod1}": [10_000, 15_600],
            "network.cgroup_tcp_retrans{cgroup=/kubepods/pod1}": [7, 49],
            "network.cgroup_tcp_out_segs{cgroup=/other}": [0, 4_400],
            "network.cgroup_tcp_retrans{cgroup=/other}": [0, 0],
        }
    )
    assert vector.get("network.cgroup_tcp_retrans.rate", POD) == 42
    assert vector.get("network.cgroup_tcp_retrans_share.rate", POD) == pytest.approx(0.0075)
    assert vector.get("network.cgroup_tcp_retrans_total.rate") == 42
    assert vector.get("network.cgroup_tcp_retrans_share_total.rate") == pytest.approx(0.0042)


def test_a_container_that_lacks_a_counter_hides_no_other(extract: Extract) -> None:
    vector = extract(
        {
            "network.cgroup_tcp_retrans{cgroup=/kubepods/pod1}": [7, 49],
            "network.cgroup_tcp_retrans{cgroup=/other}": [None, 5],
        }
    )
    assert vector.get("network.cgroup_tcp_retrans_total.rate") == 42
    assert vector.get("network.cgroup_tcp_retrans_share.rate", POD) is None


def test_a_host_without_containers_has_none_of_it(extract: Extract) -> None:
    vector = extract({"network.tcp_retrans": [0, 5], "network.tcp_out_segs": [0, 100]})
    assert vector.get("network.cgroup_tcp_retrans_total.rate") is None
    assert vector.get("network.tcp_retrans.rate") == 5


def test_detectors_see_the_losses_and_not_how_much_is_sent() -> None:
    seen = {name for name, each in FEATURES.items() if name.startswith("network.cgroup_") and each.detect}
    assert "network.cgroup_tcp_retrans_total.rate" in seen
    assert "network.cgroup_tcp_out_segs_total.rate" not in seen
    assert [name for name in seen if is_load(name)] == ["network.cgroup_tcp_ofo_queue_total.rate"]
    assert all(name.endswith("_total.rate") for name in seen)
