"""Another tenant's ordinary day: builds, archives, logs, a script that starts, and pauses in between. No fault.

python -m unveil.lab.workloads.neighbour
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import zlib
from pathlib import Path

MEGABYTE = 1 << 20


def compute(dice: random.Random) -> None:
    """Keep a third of a CPU busy for some seconds."""
    until = time.monotonic() + dice.uniform(2, 6)
    while time.monotonic() < until:
        pause = time.monotonic() + 0.02
        while time.monotonic() < pause:
            pass
        time.sleep(0.04)


def archive(dice: random.Random) -> None:
    """Compress some megabytes."""
    for _ in range(dice.randint(4, 16)):
        zlib.compress(dice.randbytes(MEGABYTE), 1)


def log(dice: random.Random) -> None:
    """Write some megabytes to disk, and have them there."""
    path = Path("neighbour.bin")
    with path.open("wb") as file:
        for _ in range(dice.randint(4, 24)):
            file.write(dice.randbytes(MEGABYTE))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


def remember(dice: random.Random) -> None:
    """Hold some memory for a while."""
    held = bytearray(dice.randint(40, 160) * MEGABYTE)
    held[::4096] = b"\x01" * len(held[::4096])
    time.sleep(dice.uniform(1, 3))


def script(_dice: random.Random) -> None:
    """Start a program that imports a library and ends."""
    subprocess.run([sys.executable, "-c", "import numpy"], check=False)


def main() -> None:
    """Do one thing after the other until killed."""
    dice = random.Random()  # noqa: S311  # no two days alike
    while True:
        dice.choice((compute, archive, log, remember, script))(dice)
        time.sleep(dice.uniform(1, 5))


if __name__ == "__main__":
    main()
