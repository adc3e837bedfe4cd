"""A data-loading job: read shards from disk, decompress, shuffle, and hand batches on; no framework.

python -m unveil.lab.workloads.loading
"""

from __future__ import annotations

import os
import random
import time
import zlib
from pathlib import Path

from unveil.lab.units import done
from unveil.lab.workloads.training import arena

SHARDS, SHARD_BYTES, BATCHES = 32, 4 << 20, 8
SIX_BITS = bytes(value & 63 for value in range(256))  # so that there is something to compress
PACE_S = 0.04  # a consumer takes a batch so often, when there is one


def shards(folder: Path) -> list[Path]:
    """Make the compressed shards where they are not there yet."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.z" for number in range(SHARDS)]
    for number, path in enumerate(paths):
        if not path.exists():
            dice = random.Random(number)  # noqa: S311  # a workload, the same each time
            path.write_bytes(zlib.compress(dice.randbytes(SHARD_BYTES).translate(SIX_BITS), 1))
    return paths


def main() -> None:
    """Load until killed."""
    paths = shards(Path("shards"))
    dice = random.Random(0)  # noqa: S311
    while True:
        for path in dice.sample(paths, len(paths)):
            begin = time.monotonic()
            with path.open("rb", buffering=0) as file:
                packed = file.readall()
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # larger than memory, in real life
            content = zlib.decompress(packed)
            pieces = [content[at::BATCHES] for at in range(BATCHES)]
            dice.shuffle(pieces)
            with arena(len(content) >> 20) as batch:
                batch[:] = b"".join(pieces)
            spent = time.monotonic() - begin
            time.sleep(max(0.0, PACE_S - spent))
            done("batch", spent)


if __name__ == "__main__":
    main()
