"""The machine: two NUMA nodes under QEMU's software emulation, a NIC and a disk, and what it says, line by line."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QEMU = "qemu-system-x86_64"
NODE_MEGABYTES = 1024
SHAPE = f"""
-M q35 -accel tcg,thread=multi,tb-size=512 -cpu Nehalem -m {2 * NODE_MEGABYTES} -smp 4,sockets=2,cores=2,threads=1
-object memory-backend-ram,id=m0,size={NODE_MEGABYTES}M -object memory-backend-ram,id=m1,size={NODE_MEGABYTES}M
-numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1
-numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=21
-device pxb-pcie,id=bus1,bus_nr=0x40,numa_node=1,bus=pcie.0 -device pcie-root-port,id=port1,bus=bus1,chassis=1,slot=1
-netdev user,id=net,restrict=on -device virtio-net-pci,netdev=net,bus=port1
-device virtio-blk-pci,bus=pcie.0,drive=disk,num-queues=1
-display none -no-reboot -monitor none -nodefaults
"""  # the NIC hangs on node 1, so that node 1 is the home of every workload

# What protects a real CPU's secrets makes an emulated one several times slower.
APPEND = (
    "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable no_timer_check random.trust_cpu=on mitigations=off nopti "
    "init_on_alloc=0 hardened_usercopy=off audit=0 apparmor=0"
)


class Machine:
    """One boot of the guest; `lines` is what the program inside says, `close` ends it on every path.

    Args:
        folder: holds ``initrd`` and ``disk``; gets ``console.log``. ``UNVEIL_GUEST_FAULTS=numa,irq`` has only those
            gone through.
        kernel: the kernel package, unpacked.
    """

    def __init__(self, folder: Path, kernel: Path) -> None:
        self.console = folder / "console.log"
        faults = os.environ.get("UNVEIL_GUEST_FAULTS", "")
        only = f"unveil.faults={faults}" if faults else ""
        command = [
            "setpriv", "--pdeathsig", "KILL", "nice", "-n", "10", QEMU, *SHAPE.split(),
            "-kernel", str(next(kernel.glob("boot/vmlinuz-*"))), "-initrd", str(folder / "initrd"),
            "-append", f"{APPEND} {only}",
            "-drive", f"file={folder / 'disk'},if=none,id=disk,format=raw,snapshot=on",
            "-serial", f"file:{self.console}", "-serial", "stdio",
        ]  # fmt: skip
        self._errors = (folder / "qemu.log").open("wb")
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def lines(self, *, until: float, silence_s: float) -> Iterator[dict[str, Any]]:
        """Yield what the program says until it ends.

        Args:
            until: on the monotonic clock: when the whole is to be over.
            silence_s: the longest time between two lines.

        Raises:
            TimeoutError: either is over.
        """
        while True:
            wait_s = min(silence_s, until - time.monotonic())
            try:
                line = self._queue.get(timeout=max(0.0, wait_s))
            except queue.Empty:
                raise TimeoutError(f"the guest said nothing for {wait_s:.0f} s\n{self.tail()}") from None
            if line is None:
                return
            if (text := line.strip()).startswith(b"{"):
                yield json.loads(text)

    def tail(self) -> str:
        """Return the end of what its kernel and its programs wrote on the console."""
        return self.console.read_bytes()[-6000:].decode("utf-8", "replace") if self.console.exists() else ""

    def close(self) -> None:
        """End it, at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        if self._process.stdout:
            self._process.stdout.close()
        self._errors.close()
