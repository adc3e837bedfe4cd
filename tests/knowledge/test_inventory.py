"""The groups of a host, from Ansible's own inventory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.inventory import MAX_HOSTS, groups_of, groups_of_hosts, hosts_of
from unveil.knowledge.load_child import LoadChild
from unveil.knowledge.loading import load
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from pathlib import Path

INVENTORY = """\
all:
  hosts:
    gateway: {ansible_host: 10.0.0.1}
  children:
    training:
      children:
        hall_a: {hosts: {"gpu-a-[01:03]": {}, special: null}}
        hall_b: {hosts: {gpu-b-1: {}}, vars: {x: 1}}
    empty:
"""


def test_a_host_is_in_its_group_and_in_those_above(kb: Path) -> None:
    (kb / "inventory/hosts.yml").write_text(INVENTORY)
    base = load(kb).knowledge
    assert base is not None
    assert base.groups["gpu-a-02"] == ("all", "hall_a", "training")
    assert base.groups["gateway"] == ("all",)
    assert groups_of("gpu-b-1.example.org", base.groups) == ("all", "hall_b", "training")
    assert groups_of("elsewhere", base.groups) == ()


def test_a_profile_holds_for_the_hosts_of_its_groups_in_the_watcher_too(kb: Path) -> None:
    (kb / "inventory/hosts.yml").write_text(INVENTORY)
    profiles = kb / "inventory/profiles.yml"
    profiles.write_text(profiles.read_text().replace('hosts: ["gpu-*"]', "groups: [hall_a]"))
    child = LoadChild()
    try:
        base = child.load(kb, generation=1).knowledge
    finally:
        child.close()
    assert base is not None
    modes = {
        host: base.profiles.mode("raise_quota", Mode.AUTO, host=host, groups=groups_of(host, base.groups))
        for host in ("gpu-a-01", "gpu-b-1")
    }
    assert modes == {"gpu-a-01": Mode.AUTO, "gpu-b-1": Mode.OBSERVE}


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        ("web", ["web"]), ("web[1:3]", ["web1", "web2", "web3"]), ("web[08:10]", ["web08", "web09", "web10"]),
        ("web[1:5:2].x", ["web1.x", "web3.x", "web5.x"]), ("db-[a:c]", ["db-a", "db-b", "db-c"]),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"]), ("web[3:1]", []),
    ],
)  # fmt: skip
def test_ranges_are_as_ansible_has_them(pattern: str, hosts: list[str]) -> None:
    assert list(hosts_of(pattern)) == hosts


def test_a_range_without_end_is_cut() -> None:
    assert len(groups_of_hosts({"all": {"hosts": {"h[0:999999999]": None, "g[0:9]": None}}})) <= MAX_HOSTS


@pytest.mark.parametrize(
    "data", [None, [], "x", {"all": None}, {"all": {"hosts": ["a"]}}, {"all": {"children": ["g"]}}]
)
def test_another_form_has_no_groups(data: object) -> None:
    assert groups_of_hosts(data) == {}


def test_ranges_cost_little_whatever_they_stand_for() -> None:
    ranges = {f"[1:20000]x{number}": None for number in range(20_000)}
    began = time.process_time()
    assert len(groups_of_hosts({"all": {"hosts": ranges}})) == MAX_HOSTS
    assert time.process_time() - began < 60, "not the hours of four hundred million names"
    wide = f"[{'0' * 100_000}1:9]"
    assert groups_of_hosts({"all": {"hosts": {wide: None}}}) == {wide: ("all",)}, "no range, but a name"
