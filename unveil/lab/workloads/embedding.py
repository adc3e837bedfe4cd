"""A batch-inference job over an object store: fetch documents, embed them, write vectors, send the index back.

    python -m unveil.lab.workloads.embedding store ADDRESS
    python -m unveil.lab.workloads.embedding job ADDRESS

The store keeps objects on disk, larger than memory in real life, and puts what it is sent durably. The job has a few
workers, each with a connection: a document, of a size that nobody foresees, is fetched, unpacked, embedded in small
matrices with a sleep for the GPU, and its vectors are appended to a file; now and then a shard of the index goes back
to the store, and the worker waits until it is there. No framework; no rhythm.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import threading
import time
import zlib
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.lab.units import done
from unveil.lab.workloads.training import arena

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PORT = 8077
SIZES_KB = (96, 128, 160, 192, 256, 256, 320, 384, 448, 512, 640, 768, 960, 1280, 1792, 2560)
"""Of documents before they are packed; a worker takes them in an order of its own, all before any comes again."""
COPIES = 6  # objects of each size
WORKERS = 2
WIDTH, CHUNK = 192, 4096  # of a vector; bytes that make one
SLEEP_S = 0.01  # the GPU, for each 256 kB
VECTORS_MB, SPREAD = 64, 12  # of a file before it begins anew; bytes written for each byte of a vector
SHARD_MB, SHARD_EVERY = 3, 14  # documents, by chance: each fourteenth one is a rhythm that is told
SEVEN_BITS = bytes(value & 127 for value in range(256))


def objects(folder: Path) -> list[Path]:
    """Make the objects where they are not there yet, the sizes side by side."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.z" for number in range(COPIES * len(SIZES_KB))]
    for number, path in enumerate(paths):
        if not path.exists():
            dice = random.Random(number)  # noqa: S311  # a workload, the same each time
            size = SIZES_KB[number % len(SIZES_KB)] << 10
            path.write_bytes(zlib.compress(dice.randbytes(size).translate(SEVEN_BITS), 1))
    return paths


def store(address: str) -> None:
    """Serve objects until killed."""
    paths = objects(Path("objects"))

    def serve(connection: socket.socket, name: str) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while head := receive(connection, 8):
                number, length = struct.unpack("<II", head)
                if length:
                    _put(Path(name), receive(connection, length))
                    connection.sendall(head)
                    continue
                with paths[number % len(paths)].open("rb", buffering=0) as file:
                    content = file.readall()
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                connection.sendall(struct.pack("<I", len(content)) + content)

    with socket.create_server((address, PORT)) as listening:
        count = 0
        while True:
            count += 1
            threading.Thread(target=serve, args=(listening.accept()[0], f"shard.{count % 8}"), daemon=True).start()


def _put(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def receive(connection: socket.socket, count: int) -> bytes:
    """Read exactly so many bytes; nothing when the other side ended."""
    whole = memoryview(bytearray(count))
    at = 0
    while at < count:
        got = connection.recv_into(whole[at:])
        if not got:
            return b""
        at += got
    return bytes(whole)


def embed(text: bytes, weights: tuple[NDArray[np.float32], ...]) -> bytes:
    """Return a vector for each chunk of a text, in half precision."""
    import numpy as np

    chunks = np.frombuffer(text[: len(text) // CHUNK * CHUNK], np.uint8).reshape(-1, CHUNK)
    with arena(8) as scratch:
        scratch[::4096] = b"\x01" * (8 << 8)
    hidden = chunks[:, :: CHUNK // 512].astype(np.float32) / 127
    for weight in weights:
        hidden = np.tanh(hidden @ weight)
    return bytes(hidden.astype(np.float16).tobytes())


def job(address: str) -> None:
    """Embed until killed."""
    import numpy as np

    dice = np.random.default_rng(0)
    sizes = (512, 1024, 1024, WIDTH)
    weights = tuple(dice.standard_normal(pair, np.float32) / np.float32(np.sqrt(pair[0])) for pair in pairwise(sizes))
    for number in range(WORKERS):
        threading.Thread(target=_work, args=(address, number, weights), daemon=True).start()
    while os.getppid() > 1:
        time.sleep(1)


def _work(address: str, number: int, weights: tuple[NDArray[np.float32], ...]) -> None:
    dice = random.Random(number)  # noqa: S311
    path = Path(f"vectors.{number}")
    written = 0
    while True:
        try:
            with socket.create_connection((address, PORT), timeout=120) as connection, path.open("wb") as file:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while True:
                    for kind in dice.sample(range(len(SIZES_KB)), len(SIZES_KB)):
                        begin = time.monotonic()
                        wanted = kind + len(SIZES_KB) * dice.randrange(COPIES)
                        connection.sendall(struct.pack("<II", wanted, 0))
                        packed = receive(connection, *struct.unpack("<I", receive(connection, 4)))
                        text = zlib.decompress(packed)
                        vectors = embed(text, weights) * SPREAD
                        time.sleep(SLEEP_S * len(text) / (256 << 10) * dice.uniform(0.7, 1.3))
                        if written > VECTORS_MB << 20:
                            file.seek(0)
                            written = 0
                        written += file.write(vectors)
                        file.flush()
                        if dice.randrange(SHARD_EVERY) == 0:
                            connection.sendall(struct.pack("<II", 0, SHARD_MB << 20) + bytes(SHARD_MB << 20))
                            receive(connection, 8)
                        done("document", time.monotonic() - begin)
        except (OSError, struct.error):
            time.sleep(0.2)  # the store is not up yet


if __name__ == "__main__":
    {"store": store, "job": job}[sys.argv[1]](sys.argv[2])
