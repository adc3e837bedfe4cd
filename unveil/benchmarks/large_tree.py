"""A large host's procfs and sysfs as plain files: what sampling one costs can be measured on any machine.

Two sockets of 64 CPUs, each in four nodes, eight GPUs and sixteen NICs of eight queues each, eight NVMe disks with a
queue for every other CPU, and five hundred containers of Kubernetes in half as many pods. Texts are as long as on such
a host; what the kernel itself takes to write them is not measured here. To let the whole watcher look at one:

    python -m unveil.benchmarks.large_tree /tmp/large && python -m unveil.benchmarks.watch --host-root /tmp/large
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BIG = 1_234_567_890
_VECTORS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
_IPIS = ("NMI", "LOC", "SPU", "PMI", "IWI", "RTR", "RES", "CAL", "TLB", "TRM", "THR", "DFR", "MCE", "MCP")
_NET_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything; ``cpus`` and ``cgroups`` are what costs."""

    cpus: int = 128
    nodes: int = 8
    gpus: int = 8
    nics: int = 16
    queues: int = 8
    disks: int = 8
    cgroups: int = 500


def grow(folder: Path, size: Size) -> None:
    """Write the tree below a folder."""
    for path, text in (*_proc(size), *_system(size), *_devices(size), *_cgroups(size)):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def _proc(size: Size) -> Iterator[tuple[str, str]]:
    cpus = range(size.cpus)
    states = " ".join(str(_BIG // (state + 1)) for state in range(10))
    interrupts = " ".join(["0"] * 3000)
    yield (
        "proc/stat",
        "".join(
            (
                f"cpu  {states}\n",
                *(f"cpu{cpu} {states}\n" for cpu in cpus),
                f"intr {_BIG} {interrupts}\nctxt {_BIG}\nbtime 1790000000\nprocesses 9999999\nprocs_running 42\n",
                f"procs_blocked 0\nsoftirq {_BIG} {states}\n",
            )
        ),
    )
    for name in ("cpu", "memory", "io"):
        line = f"avg10=0.00 avg60=0.12 avg300=0.08 total={_BIG}"
        yield f"proc/pressure/{name}", f"some {line}\nfull {line}\n"
    yield "proc/softirqs", _table(cpus, ((vector, "") for vector in _VECTORS))
    yield "proc/interrupts", _table(cpus, (*_device_irqs(size), *((name, f"  {name} interrupts") for name in _IPIS)))
    nics = ("lo", *(f"eth{nic}" for nic in range(size.nics)), *(f"cali{each:011x}" for each in range(60)))
    counters = " ".join(str(_BIG * (column % 3 + 1)) for column in range(16))
    yield "proc/net/dev", _NET_HEADER + "".join(f"{nic:>15}: {counters}\n" for nic in nics)
    softnet = " ".join(["0012d687"] * 13)
    yield "proc/net/softnet_stat", "".join(f"{softnet} {cpu:08x} 00000000\n" for cpu in cpus)
    yield "proc/schedstat", _schedstat(cpus)
    disks = "".join(f" 259 {disk} nvme{disk}n1 {states} 0 0 0 0 0 0 0\n" for disk in range(size.disks))
    yield "proc/diskstats", disks
    for path in ("proc/meminfo", "proc/vmstat", "proc/net/snmp", "proc/net/netstat"):  # as long on every host
        yield path, Path("/", path).read_text()


def _schedstat(cpus: range) -> str:
    domains = "".join(f"domain{level} {'f' * 32} {' '.join(['12345'] * 36)}\n" for level in range(4))
    return "version 15\ntimestamp 4300000000\n" + "".join(
        f"cpu{cpu} 0 0 0 0 0 0 {_BIG}00 {_BIG}00 {_BIG}\n{domains}" for cpu in cpus
    )


def _table(cpus: range, rows: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...]) -> str:
    everywhere = "".join(f"{_BIG + cpu:>11}" for cpu in cpus)
    nowhere = [f"{0:>11}"] * len(cpus)
    lines = [f"{'':>10}{''.join(f'CPU{cpu:<8}' for cpu in cpus)}\n"]
    for row, (name, what) in enumerate(rows):
        mine = row % len(cpus)  # a queue's interrupts come to one CPU
        counts = "".join((*nowhere[:mine], f"{_BIG:>11}", *nowhere[mine + 1 :])) if name.isdigit() else everywhere
        lines.append(f"{name:>9}:{counts}{what}\n")
    return "".join(lines)


def _device_irqs(size: Size) -> Iterator[tuple[str, str]]:
    irq = 60
    for kind, count, queues in (
        ("eth", size.nics, size.queues),
        ("nvme", size.disks, size.cpus // 2),
        ("gpu", size.gpus, 4),
    ):
        for device in range(count):
            for queue in range(queues):
                irq += 1
                yield str(irq), f"  IR-PCI-MSIX-0000:{device + 1:02x}:00.0 {queue}-edge  {kind}{device}-{queue}"


def _system(size: Size) -> Iterator[tuple[str, str]]:
    base = "sys/devices/system"
    yield f"{base}/cpu/online", f"0-{size.cpus - 1}\n"
    yield f"{base}/node/online", f"0-{size.nodes - 1}\n"
    share = size.cpus // size.nodes
    for node in range(size.nodes):
        folder = f"{base}/node/node{node}"
        yield f"{folder}/cpulist", f"{node * share}-{node * share + share - 1}\n"
        yield f"{folder}/distance", " ".join("10" if other == node else "21" for other in range(size.nodes)) + "\n"
        names = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
        yield f"{folder}/numastat", "".join(f"{name} {_BIG}\n" for name in names)
        yield f"{folder}/meminfo", "".join(f"Node {node} {name}: {_BIG} kB\n" for name in _NODE_MEMINFO)
    for cpu in range(size.cpus):
        folder = f"{base}/cpu/cpu{cpu}"
        yield f"{folder}/topology/physical_package_id", f"{2 * cpu // size.cpus}\n"
        yield f"{folder}/cpufreq/scaling_cur_freq", "2450000\n"
        yield f"{folder}/cpufreq/scaling_governor", "schedutil\n"
        for state in range(3):
            for name, text in (("name", f"C{state}"), ("latency", "50"), ("usage", f"{_BIG}"), ("time", f"{_BIG}")):
                yield f"{folder}/cpuidle/state{state}/{name}", f"{text}\n"


def _devices(size: Size) -> Iterator[tuple[str, str]]:
    kinds = (("0x030200", size.gpus, 0), ("0x020000", size.nics, 0x40), ("0x010802", size.disks, 0x80))
    for code, count, first in kinds:
        for number in range(count):
            folder = f"sys/bus/pci/devices/0000:{first + number:02x}:00.0"
            yield f"{folder}/class", f"{code}\n"
            for name, text in (
                ("current_link_speed", "32.0 GT/s PCIe"), ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"), ("max_link_width", "16"),
                ("numa_node", str(size.nodes * number // count)),
            ):  # fmt: skip
                yield f"{folder}/{name}", f"{text}\n"
            for name in ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"):
                yield f"{folder}/{name}", "RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nTOTAL_ERR_COR 0\n"
    for nic in range(size.nics):
        folder = f"sys/class/net/eth{nic}"
        yield f"{folder}/ifindex", f"{nic + 2}\n"
        yield f"{folder}/carrier_changes", "2\n"
        yield f"{folder}/device/vendor", "0x15b3\n"
    for disk in range(size.disks):
        yield f"sys/block/nvme{disk}n1/dev", f"259:{disk}\n"


def _cgroups(size: Size) -> Iterator[tuple[str, str]]:
    base = "sys/fs/cgroup"
    yield f"{base}/cgroup.controllers", "cpuset cpu io memory hugetlb pids\n"
    pressure = "".join(f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={_BIG}\n" for kind in ("some", "full"))
    stat = "".join(f"{name} {_BIG}\n" for name in (*_MEMORY_STAT, *(f"other_{n}" for n in range(40))))
    nodes = " ".join(f"N{node}={_BIG}" for node in range(size.nodes))
    numa = "".join(f"{name} {nodes}\n" for name in _MEMORY_STAT[:16])
    files = {
        "cpu.stat": "".join(
            f"{name} {_BIG}\n"
            for name in ("usage_usec", "user_usec", "system_usec", "nr_periods", "nr_throttled", "throttled_usec")
        ),
        "memory.stat": stat, "memory.numa_stat": numa, "memory.max": "max\n",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
        "io.stat": "".join(f"259:{disk} rbytes={_BIG} wbytes=9 rios=9 wios=9 dbytes=0 dios=0\n" for disk in range(4)),
        "cpu.pressure": pressure, "memory.pressure": pressure, "io.pressure": pressure,
    }  # fmt: skip
    folders = [base, f"{base}/kubepods.slice"]
    for number in range(size.cgroups):
        pod = f"{base}/kubepods.slice/kubepods-pod{number // 2:08x}_0000_4000_8000_000000000000.slice"
        folders += [pod, f"{pod}/cri-containerd-{number:064x}.scope"]
    for number, folder in enumerate(dict.fromkeys(folders)):
        yield from ((f"{folder}/{name}", text) for name, text in files.items())
        yield f"{folder}/memory.current", f"{(number * 7919) % 1000 << 24}\n"  # no two weigh the same


_NODE_MEMINFO = (
    "MemTotal", "MemFree", "MemUsed", "Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)", "Dirty",
    "Writeback", "FilePages", "Mapped", "AnonPages", "Shmem", "KernelStack", "PageTables", "Slab", "SReclaimable",
    "SUnreclaim", "AnonHugePages", "ShmemHugePages", "FileHugePages", "HugePages_Total", "HugePages_Free",
)  # fmt: skip
_MEMORY_STAT = (
    "anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "shmem",
    "zswap", "zswapped", "file_mapped", "file_dirty", "file_writeback", "swapcached", "anon_thp", "file_thp",
    "shmem_thp", "inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable", "slab", "pgfault",
    "pgmajfault", "workingset_refault_anon",
)  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m unveil.benchmarks.large_tree FOLDER")
    grow(Path(sys.argv[1]), Size())
