"""What runs in the guest while it is treated: one program, a way to be ill for each fault.

It enters its cgroup and takes its memory policy, begins anew, so that all of its memory is under that policy, and then
works until it is ended. Twice a second it writes what it did and the longest time that a step was late, as a JSON line.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import mmap
import os
import socket
import struct
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 4096
SET_MEMPOLICY, MPOL_BIND = 238, 2


def _memory(megabytes: int) -> mmap.mmap:
    memory = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[::PAGE] = b"\1" * (len(memory) // PAGE)
    return memory


def _trains(megabytes: int) -> tuple[Callable[[], int], float]:
    """Walk through memory that stays, as over the parameters of a model: a tenth of the time, for CPUs are few here."""
    memory = _memory(megabytes)
    places = itertools.cycle(range(0, len(memory), PAGE))

    def step() -> int:
        done, end = 0, time.monotonic() + 0.01
        while time.monotonic() < end:
            for _ in range(16):
                memory[next(places)] = 2
            done += 16
        return done

    return step, 0.09


def _trains_in_batches(megabytes: int) -> tuple[Callable[[], int], float]:
    """Train, and take a MiB anew for each step: too little to be in huge pages itself, and 256 page faults."""
    train, pause_s = _trains(megabytes)

    def step() -> int:
        _memory(1).close()
        return train()

    return step, pause_s


def _loads(megabytes: int) -> tuple[Callable[[], int], float]:
    """Go through memory of eight parts, of which one is had anew each ten steps, as batches that come and go."""
    parts = [_memory(megabytes // 8) for _ in range(8)]
    turns = itertools.count(1)

    def step() -> int:
        turn = next(turns)
        if turn % 10 == 0:
            place = turn // 10 % len(parts)
            parts[place].close()
            parts[place] = _memory(megabytes // 8)
        part = parts[turn % len(parts)]
        part[::PAGE] = b"\2" * (len(part) // PAGE)
        return 1

    return step, 0.09


def _pings(_megabytes: int, pause_s: float = 0.05) -> tuple[Callable[[], int], float]:
    """Have the NIC interrupt: ask the gateway for an echo, and wait for it, again and again."""
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    link.settimeout(0.2)
    body = struct.pack("!BBHHH", 8, 0, 0, 7, 1)
    total = sum(struct.unpack("!4H", body))
    packet = struct.pack("!BBHHH", 8, 0, ~(total + (total >> 16)) & 0xFFFF, 7, 1)

    def step() -> int:
        for done in range(10):
            link.sendto(packet, ("10.0.2.2", 0))
            try:
                link.recv(2048)
            except TimeoutError:
                return done
        return 10

    return step, pause_s


def _computes(_megabytes: int) -> tuple[Callable[[], int], float]:
    """Take a fifth of a CPU."""

    def step() -> int:
        done, end = 0, time.monotonic() + 0.02
        while time.monotonic() < end:
            done += 1
        return done

    return step, 0.08


ILLNESSES: dict[str, Callable[[int], tuple[Callable[[], int], float]]] = {
    "trains": _trains, "trains in batches": _trains_in_batches, "loads": _loads, "pings": _pings,
    "floods": partial(_pings, pause_s=0.0), "computes": _computes,
}  # fmt: skip


def main(illness: str, megabytes: str, node: str, cgroup: str) -> None:
    """Enter the cgroup, then work."""
    if cgroup:
        with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("0")
        if node:
            mask = ctypes.c_ulong(1 << int(node))
            if ctypes.CDLL(None).syscall(SET_MEMPOLICY, MPOL_BIND, ctypes.byref(mask), ctypes.c_ulong(64)):
                sys.exit("no memory policy")
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, illness, megabytes, "", ""])
    os.sched_setaffinity(0, {3})  # all of them on one, so that the host's CPUs are there for the watcher's
    step, pause_s = ILLNESSES[illness](int(megabytes))
    said, done, late = time.monotonic(), 0, 0.0
    while True:
        begun = time.monotonic()
        done += step()
        time.sleep(pause_s)
        now = time.monotonic()
        late = max(late, now - begun - pause_s)
        if now - said >= 0.5:
            print(json.dumps({"at": now, "done": done, "late": round(late, 4)}), flush=True)
            said, done, late = now, 0, 0.0


if __name__ == "__main__":
    main(*sys.argv[1:])
