from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import BadInputError
from unveil.remediation.setting import Scheme, choices, content, equal, parse_address, parse_ids, sysctl_path

GOOD = [
    "file:/sys/kernel/mm/transparent_hugepage/enabled",
    "file:/sys/block/cciss!c0d0/queue/scheduler",
    "sysctl:vm.dirty_bytes",
    "sysctl:net.ipv4.conf.eth0/5.rp_filter",
    "irq:24/smp_affinity_list",
    "cgroup:/kubepods/pod1/cpu.max",
    "cgroup:/cpu.cfs_quota_us",
    "cgroup:/système.slice/a b/memory.high",
    "nvml:GPU-5eed0000-0000-4000-8000-000000000000/power_limit",
    "nvml:GPU-5eed0000-0000-4000-8000-000000000000/persistence_mode",
    "cgroup:/job/hugetlb.2MB.max",
    "ethtool:eth0/ring/rx",
    "ethtool:eth0.5/coalesce/adaptive-rx",
    "ethtool:enp1s0/feature/rx-gro",
    "service:irqbalance.service/active",
    "irqbalance:24/banned",
    "memory:/pod1/nodes",
]
BAD = [
    "",
    "vm.dirty_bytes",
    "http:/sys/x",
    "file:/etc/passwd",
    "file:/sys/../etc/passwd",
    "file:/sys/./x",
    "file:/sys//x",
    "file:/proc/sysrq-trigger",
    "file:/proc/irq",
    "sysctl:vm",
    "sysctl:vm..dirty",
    "sysctl:../../etc/passwd",
    "irq:x/smp_affinity_list",
    "irq:24/affinity_hint",
    "irq:24/../25/smp_affinity_list",
    "cgroup:pod/cpu.max",
    "cgroup:/pod1/cgroup.procs",
    "cgroup:/pod1/../../etc/cpu.max",
    "cgroup:/pod\n1/cpu.max",
    "cgroup:/pod\x1b[2J/cpu.max",
    "nvml:GPU-x;reboot/power_limit",
    "nvml:GPU-1/clock",
    "nvml:GPU-1/locked_clocks",
    "ethtool:eth0/ring/x",
    "ethtool:eth0; reboot/ring/rx",
    "ethtool:averyveryverylongname/ring/rx",
    "ethtool:eth0/feature/",
    "service:--help/active",
    "service:-Hroot@elsewhere.service/active",
    "service:irqbalance/active",
    "irqbalance:x/banned",
    "irqbalance:24/x",
    "memory:pod1/nodes",
    "memory:/pod1/stat",
    f"cgroup:/{'a' * 5000}/cpu.max",
]


@pytest.mark.parametrize("text", GOOD)
def test_an_address_comes_out_as_it_went_in(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("text", BAD)
def test_an_address_that_could_lead_elsewhere_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_address(text)
    assert caught.value.hint
    assert caught.value.what.isprintable()


@given(st.text(max_size=60))
def test_no_text_becomes_an_address_outside_of_the_places(text: str) -> None:
    try:
        address = parse_address(text)
    except BadInputError:
        return
    assert ".." not in address.key.split("/")
    assert address.scheme is not Scheme.FILE or address.key.startswith(("/sys/", "/proc/sys/", "/proc/irq/"))


def test_sysctl_names_are_read_as_sysctl_does() -> None:
    assert sysctl_path("vm.dirty_bytes") == "vm/dirty_bytes"
    assert sysctl_path("net.ipv4.conf.eth0/5.rp_filter") == "net/ipv4/conf/eth0.5/rp_filter"
    assert sysctl_path("net/ipv4/conf/eth0.5/rp_filter") == "net/ipv4/conf/eth0.5/rp_filter"


# address, one content, another, do they mean the same. The module has the same rules: tests/playbooks reads this table.
SAME = [
    ("file:/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", "madvise", True),
    ("file:/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never", "always", False),
    ("file:/sys/kernel/mm/transparent_hugepage/defrag", "always defer [defer+madvise] never", "defer+madvise", True),
    ("file:/sys/block/vda/queue/scheduler", "[none]", "none", True),
    ("sysctl:vm.dirty_ratio", "20\n", "20", True),
    ("sysctl:vm.dirty_ratio", "020", "20", True),
    ("sysctl:vm.dirty_ratio", "20", "21", False),
    ("sysctl:net.ipv4.tcp_rmem", "4096\t131072\t6291456\n", "4096 131072 6291456", True),
    ("sysctl:net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 131072", False),
    ("irq:24/smp_affinity_list", "0-3\n", "0,1,2,3", True),
    ("irq:24/smp_affinity_list", "0-3", "0-2", False),
    ("irq:24/smp_affinity_list", "0-3", "nonsense", False),
    ("irq:24/smp_affinity_list", "", "", True),
    ("irq:24/smp_affinity", "00000000,0000000f", "f", True),
    ("irq:24/smp_affinity", "f", "ff", False),
    ("cgroup:/p/cpuset.mems", "0-1", "0,1", True),
    ("cgroup:/p/cpuset.mems", "", "0", False),
    ("cgroup:/p/cpu.max", "max 100000\n", "max", True),
    ("cgroup:/p/cpu.max", "50000 100000", "50000 100000", True),
    ("cgroup:/p/cpu.max", "50000 100000", "50000 50000", False),
    ("cgroup:/p/cpu.max", "50000 100000", "max", False),
    ("cgroup:/p/cpu.cfs_quota_us", "-1\n", "-1", True),
    ("cgroup:/p/memory.high", "max", "max\n", True),
    ("nvml:GPU-1/power_limit", "700", "700.0", True),
    ("nvml:GPU-1/power_limit", "699.6", "700", True),
    ("nvml:GPU-1/power_limit", "650", "700", False),
    ("sysctl:vm.dirty_ratio", "", "0", False),
]


@pytest.mark.parametrize(("address", "one", "other", "same"), SAME)
def test_contents_are_compared_by_what_they_mean(address: str, one: str, other: str, same: bool) -> None:
    assert equal(address, one, other) is same
    assert equal(address, other, one) is same
    assert equal(address, one, one)


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from([row[0] for row in SAME]))
def test_comparing_never_fails_whatever_a_file_holds(one: str, other: str, address: str) -> None:
    assert equal(address, one, other) == equal(address, other, one)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_is_the_set_it_names(cpus: set[int]) -> None:
    assert parse_ids(",".join(map(str, sorted(cpus)))) == cpus


def test_a_choice_offers_words_and_has_one_selected() -> None:
    assert content("always [madvise] never\n") == "madvise"
    assert choices("always [madvise] never\n") == ("always", "madvise", "never")
    assert content("50000 100000\n") == "50000 100000"
    assert choices("50000 100000") == ()
    assert parse_ids("0-99999") is None


@pytest.mark.parametrize(
    ("alias", "address"),
    [
        ("file:/proc/sys/vm/dirty_ratio", "sysctl:vm.dirty_ratio"),
        ("file:/proc/sys/net/ipv4/conf/eth0.5/rp_filter", "sysctl:net.ipv4.conf.eth0/5.rp_filter"),
        ("sysctl:net/ipv4/conf/eth0.5/rp_filter", "sysctl:net.ipv4.conf.eth0/5.rp_filter"),
        ("file:/proc/irq/24/smp_affinity_list", "irq:24/smp_affinity_list"),
    ],
)
def test_one_setting_has_one_address(alias: str, address: str) -> None:
    assert str(parse_address(alias)) == address
