"""What tells how much is done is told from what tells how well."""

from __future__ import annotations

from unveil.features.catalogue import FEATURES
from unveil.features.load import FRESH, LOAD, READS, WORK, is_load


def test_each_beginning_of_the_load_is_that_of_a_feature_that_is_judged():
    judged = [name for name, feature in FEATURES.items() if feature.detect]
    assert [begin for begin in LOAD if not any(name.startswith(begin) for name in judged)] == []
    left = [name for name in judged if not is_load(name)]
    assert len(left) > 80
    assert {"memory.thp_fault_alloc.rate", "network.tcp_retrans.rate", "storage.psi_some.rate"} <= set(left)


def test_lost_segments_of_containers_are_judged_and_those_that_overtook_each_other_are_not():
    assert is_load("network.cgroup_tcp_ofo_queue_total.rate")
    assert not is_load("network.cgroup_tcp_retrans_total.rate")
    assert FEATURES["network.cgroup_tcp_retrans_total.rate"].detect


def test_what_the_disks_read_stays_load_and_is_held_against_what_is_sent_in_one_unit():
    assert all(is_load(name) for name in (*READS, *FRESH) if not name.startswith("memory.thp_fault_alloc"))
    assert {(FEATURES[name].unit, FEATURES[name].log) for name in (*WORK, *READS)} == {("bytes/s", True)}
    assert min(READS.values()) > 0
