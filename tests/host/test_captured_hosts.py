"""Every captured machine goes through `unveil snapshot`, and its CPUs, nodes, NICs and interrupts are counted right.

The counts are taken from the trees by other means: directories and lines. The trees are other projects' test data,
where somebody has them: UNVEIL_FIXTURES names their folder.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.cli.main import main
from unveil.host.cpulist import format_cpulist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CAPTURED = os.environ.get("UNVEIL_FIXTURES", "")
WHOLE = {
    "prometheus-procfs": "prometheus-procfs/fixtures",
    "prometheus-node_exporter": "prometheus-node_exporter/collector/fixtures",
    "dynolog": "dynolog/testing/root",
    "telegraf": "telegraf/plugins/inputs/cpu/testcases",
}
pytestmark = pytest.mark.slow
captured = pytest.mark.skipif(not CAPTURED, reason="UNVEIL_FIXTURES names no folder of captured trees")


def leniently(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, path)
    except tarfile.FilterError:  # a link out of the tree
        return None


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tree:
        tree.extractall(folder, filter=leniently)
    return folder


def roots(folder: Path, deepest: int = 3) -> Iterator[Path]:
    """Give the folders that hold a procfs or a sysfs."""
    places = [folder]
    for _ in range(deepest):
        found = [place for place in places if any((place / name).is_dir() for name in ("proc", "sys"))]
        yield from found
        places = [each for place in places if place not in found for each in place.iterdir() if each.is_dir()]


def count(folder: Path, pattern: str) -> int | None:
    return len(list(folder.glob(pattern))) if folder.is_dir() else None


def lines(file: Path, pattern: str) -> set[str] | None:
    return set(re.findall(pattern, file.read_text(errors="replace"), re.MULTILINE)) if file.is_file() else None


def has_cpus(node: Path) -> bool:
    """Tell whether a node's list, or else its mask, names any CPU."""
    file = next((node / name for name in ("cpulist", "cpumap") if (node / name).is_file()), None)
    text = "" if file is None else file.read_text(errors="replace").strip("\0 \n")
    return bool(text.strip("0,") if file is not None and file.name == "cpumap" else text)


@pytest.fixture
def snapshot(capsys: pytest.CaptureFixture[str]) -> Callable[[Path], dict[str, Any]]:
    def take(root: Path) -> dict[str, Any]:
        assert main(["snapshot", "--host-root", str(root), "--json"]) == 0, root
        told = capsys.readouterr()
        assert told.err == "", root
        return dict(json.loads(told.out))

    return take


def check(root: Path, told: dict[str, Any]) -> None:
    facts = {(fact["name"], fact["entity"]["kind"], fact["entity"]["key"]): fact["value"] for fact in told["facts"]}
    sick = [source for source in told["sources"] if source["state"] in ("failed", "stale")]
    assert sick == [], root
    assert facts["cpu.count", "host", ""] == count(root / "sys/devices/system/cpu", "cpu[0-9]*"), root
    nodes = root / "sys/devices/system/node"
    assert facts["interconnect.node_count", "host", ""] == count(nodes, "node[0-9]*"), root
    with_cpus = facts.get(("interconnect.cpu_nodes", "host", ""))
    assert with_cpus is None or {f"node{node}" for node in with_cpus} == {
        node.name for node in nodes.glob("node[0-9]*") if has_cpus(node)
    }, root
    nics = {key for _, kind, key in facts if kind == "nic"}
    net = root / "sys/class/net"
    links = {each.name for each in net.iterdir() if each.is_symlink() or each.is_dir()} if net.is_dir() else set()
    assert nics == links, root
    for nic in nics:
        messages = net / nic / "device/msi_irqs"
        if messages.is_dir():
            assert set(facts["network.nic_irqs", "nic", nic]) == {each.name for each in messages.iterdir()}, (root, nic)
    cpus = {each["labels"].get("cpu") for each in told["readings"] if each["metric"] == "cpu.user"} - {None}
    assert cpus == (lines(root / "proc/stat", r"^cpu(\d+) ") or set()), root
    irqs = {each["labels"].get("irq") for each in told["readings"] if each["metric"] == "cpu.irq"} - {None}
    assert irqs == (lines(root / "proc/interrupts", r"^ *(\d+):") or set()), root
    for each in told["readings"]:
        assert each["value"] is None or each["value"] == each["value"], "a number, or absent"


@captured
@pytest.mark.parametrize("origin", sorted(WHOLE))
def test_whole_trees(snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path, origin: str) -> None:
    place = unpack(Path(CAPTURED, f"{origin}.tar.gz"), tmp_path) / WHOLE[origin]
    taken = 0
    for root in roots(place):
        check(root, snapshot(root))
        taken += 1
    assert taken


@captured
@pytest.mark.parametrize(("origin", "pattern", "least"), [("hwloc", "*.tar.bz2", 33), ("ghw", "*.tar.gz", 8)])
def test_archives_of_topologies(
    snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path, origin: str, pattern: str, least: int
) -> None:
    archives = sorted(unpack(Path(CAPTURED, f"{origin}.tar.gz"), tmp_path / "archives").rglob(pattern))
    taken = 0
    for archive in archives:
        for root in roots(unpack(archive, tmp_path / archive.stem)):
            check(root, snapshot(root))
            taken += 1
    assert taken >= least


CPUS = "sys/devices/system/cpu"
PARTS = [  # folder within the archive, where it stands on a host
    ("lib/machine/testdata_rpi4", CPUS),
    ("lib/machine/testdata/sysfs_cpus", CPUS),
    ("lib/machine/testdata/wrong_sysfs", CPUS),
    ("lib/machine/testdata/edac", "sys/devices/system/edac"),
    ("lib/utils/sysfs/testdata_single_socket_many_NUMAs", CPUS),
    ("lib/utils/sysfs/testdata/edac", "sys/devices/system/edac"),
]


@captured
@pytest.mark.parametrize(("part", "place"), PARTS)
def test_parts_of_hosts_that_cadvisor_is_tested_with(
    snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path, part: str, place: str
) -> None:
    inner = unpack(Path(CAPTURED, "cadvisor.tar.gz"), tmp_path / "archive") / "cadvisor/testdata.tar.gz"
    tree = unpack(inner, tmp_path / "inner") / part
    root = tmp_path / "host"
    (root / place).parent.mkdir(parents=True)
    tree.rename(root / place)
    check(root, snapshot(root))


@captured
def test_the_infiniband_ports_of_an_h100_host_count_what_its_files_say(
    snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    archive = unpack(Path(CAPTURED, "gpud.tar.gz"), tmp_path / "archive")
    (ports,) = archive.rglob("sys-class-infiniband-h100.0")
    root = tmp_path / "host"
    (root / "sys/class").mkdir(parents=True)
    ports.rename(root / "sys/class/infiniband")
    told = snapshot(root)
    check(root, told)
    readings = {each["labels"]["port"]: each for each in told["readings"] if each["metric"] == "network.rdma_rx_bytes"}
    files = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters/port_rcv_data"))
    assert len(files) > 7
    for file in files:
        adapter, port = file.parts[-5], file.parts[-3]
        assert readings[f"{adapter}/{port}"]["value"] == 4 * int(file.read_text()), "words of four bytes"


@captured
@pytest.mark.parametrize(
    "origin", ["cadvisor", "gpud", "gpud-history", "telegraf", "infiniband_exporter", "insights-core"]
)
def test_whatever_else_looks_like_a_host_is_read_without_an_error(
    snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path, origin: str
) -> None:
    archive = unpack(Path(CAPTURED, f"{origin}.tar.gz"), tmp_path)
    for inner in sorted(archive.rglob("*.tar.gz")):
        unpack(inner, inner.parent)
    for root in roots(archive, deepest=8):
        snapshot(root)


def test_a_host_of_a_thousand_cpus_with_gaps_and_sparse_nodes(
    snapshot: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    cpus = [cpu for cpu in range(1152) if cpu % 9]
    nodes = {0: cpus[:500], 8: cpus[500:], 252: []}
    system = tmp_path / "sys/devices/system"
    for cpu in cpus:
        (system / f"cpu/cpu{cpu}").mkdir(parents=True)
    for name in ("present", "possible", "online"):
        (system / f"cpu/{name}").write_text(f"{format_cpulist(cpus)}\n")
    for node, local in nodes.items():
        (system / f"node/node{node}").mkdir(parents=True)
        (system / f"node/node{node}/cpulist").write_text(f"{format_cpulist(local)}\n")
        (system / f"node/node{node}/meminfo").write_text(
            f"Node {node} MemTotal:  1024 kB\nNode {node} MemFree:  512 kB\n"
        )
        (system / f"node/node{node}/distance").write_text("10 20 40\n")
    (tmp_path / "proc/irq").mkdir(parents=True)
    row = " ".join(["7"] * 10)
    (tmp_path / "proc/stat").write_text(f"cpu  {row}\n" + "".join(f"cpu{cpu} {row}\n" for cpu in cpus) + "ctxt 1\n")
    cells = " ".join(["123456"] * len(cpus))
    (tmp_path / "proc/interrupts").write_text(
        " ".join(f"CPU{cpu}" for cpu in cpus) + "\n" + "".join(f"{irq}: {cells} PCI-MSI x\n" for irq in range(24, 200))
    )
    told = snapshot(tmp_path)
    facts = {(fact["name"], fact["entity"]["key"]): fact["value"] for fact in told["facts"]}
    assert facts["cpu.count", ""] == facts["cpu.online_count", ""] == len(cpus) == 1024
    assert facts["interconnect.node_count", ""] == 3
    assert facts["cpu.node", "1151"] == 8
    readings = [each for each in told["readings"] if each["metric"] == "cpu.user"]
    assert len(readings) == 1025
    irqs = [each for each in told["readings"] if each["metric"] == "cpu.irq" and "irq" in each["labels"]]
    assert len({each["labels"]["irq"] for each in irqs}) == 176
    assert len(irqs) < 1000, "by node, not by CPU: the table has 180,000 cells"
