"""The shuffle of a data-preparation job, before a sort, a join, or to leave duplicates out: records change sides.

    python -m unveil.lab.workloads.shuffle NUMBER ADDRESS

There are two sides; number 0 listens at the address. In a round each reads some blocks of its shard from disk, keeps
the records whose keys are its own, by hash, and sends the others, packed, while those of the other side come in. It
sorts what it has then, leaves duplicates out and writes the result durably, so that a job goes on from its last round;
once both have, the next round begins. A sleep stands for the store that a block comes from. After some rounds the job
is over: its results are read once more, as by whoever comes next, and after a pause begins another one, of smaller or
larger rounds. A unit is a block: all are equal, and what a round takes beside them lies between two of them.

What a round gives is verified: every record that was read is on one side or the other, on the side of its key, in
order and once. When it is not, or when the other side is gone, this one ends and says so.

Shards are larger than memory, in real life: they are read through the page cache, with what the kernel reads ahead, and
dropped from it. Results are not: they stay in it until their job is over. No file has a name, so nothing is left,
however this ends; a side never has more than its shard and the results of one job.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from unveil.errors import RunFailedError, UnveilError
from unveil.lab.units import done
from unveil.lab.workloads.embedding import receive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from numpy.typing import NDArray

PORT = 8055
PATIENCE_S = 120  # with a side that says nothing
RECORD = np.dtype([("key", "<u8"), ("text", "V120")])
SHARD, BLOCK = 768 << 10, 8 << 10  # records of a side; that are read at once
KEYS = 600_000  # so many are there: of a round's records about a tenth has one that another one has, too
MIX, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
SIX_BITS = bytes(value & 63 for value in range(256))  # so that there is something to pack
BLOCK_SLEEP_S = 0.02
CLOSING_S = (0.4, 1.6)  # the pause after a job, at least and at most
HEAD = struct.Struct("<II")  # bytes of a packed block and records in it; after the last one 0 and records in all
TOLD = struct.Struct("<II")  # of a round: records that a side read, and that it has after the shuffle


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job: its kind, the blocks that a side reads in a round, at least and at most, rounds, the pause after it."""

    kind: str
    least: int
    most: int
    rounds: int
    pause_s: float


def jobs() -> Iterator[Job]:
    """Give one job after the other, the same for both sides: of six, four are small, in any order."""
    dice = random.Random(0)  # noqa: S311  # a workload, the same each time
    while True:
        for kind in dice.sample(("small", "large"), 6, counts=(4, 2)):
            least, most, rounds = (5, 7, dice.randint(8, 14)) if kind == "small" else (8, 12, dice.randint(5, 9))
            yield Job(kind=kind, least=least, most=most, rounds=rounds, pause_s=dice.uniform(*CLOSING_S))


def owner(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return whose each key is: 0 or 1, by hash."""
    return (keys * MIX) >> np.uint64(63)


def make_shard(file: IO[bytes], number: int) -> None:
    """Write the records of a side, the same each time, and have them on disk only."""
    dice = np.random.default_rng(number)
    for _ in range(SHARD // BLOCK):
        block = np.zeros(BLOCK, RECORD)
        block["key"] = dice.integers(1, KEYS, BLOCK, np.uint64) * SPREAD
        text = dice.bytes(BLOCK * RECORD["text"].itemsize).translate(SIX_BITS)
        block["text"] = np.frombuffer(text, RECORD["text"])
        file.write(block.tobytes())
    file.flush()
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def blocks(file: IO[bytes], first: int, count: int) -> Iterator[NDArray[np.void]]:
    """Read records of a shard, from its first one on again after its last one; the page cache keeps none."""
    size = os.fstat(file.fileno()).st_size // RECORD.itemsize
    while count > 0:
        first %= size
        wanted = min(count, BLOCK, size - first)
        at, length = first * RECORD.itemsize, wanted * RECORD.itemsize
        content = os.pread(file.fileno(), length, at)
        os.posix_fadvise(file.fileno(), 0, at + length, os.POSIX_FADV_DONTNEED)  # a folio may have begun before
        yield np.frombuffer(content, RECORD)
        first, count = first + wanted, count - wanted


class Peer:
    """The other side, over a connection.

    Raises:
        RunFailedError: from each method: it is gone, or silent.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(PATIENCE_S)

    def tell(self, content: bytes) -> None:
        """Send it something."""
        try:
            self._connection.sendall(content)
        except OSError as error:
            raise RunFailedError(f"the other side of the shuffle is lost: {error}") from error

    def told(self, count: int) -> bytes:
        """Return so many bytes that it sends."""
        try:
            content = receive(self._connection, count)
        except OSError as error:
            raise RunFailedError(f"the other side of the shuffle is lost: {error}") from error
        if not content:
            raise RunFailedError("the other side of the shuffle is lost: it has ended")
        return content

    def give(self, block: NDArray[np.void]) -> None:
        """Send it a block of records, packed; one without records says nothing."""
        if len(block):
            packed = zlib.compress(block.tobytes(), 1)
            self.tell(HEAD.pack(len(packed), len(block)) + packed)

    def given(self) -> NDArray[np.void]:
        """Return all records that it sends in a round; a RunFailedError, too, where they are not as many as it says."""
        parts = [np.empty(0, RECORD)]
        while True:
            length, count = HEAD.unpack(self.told(HEAD.size))
            if not length:
                break
            parts.append(np.frombuffer(zlib.decompress(self.told(length)), RECORD))
        records = np.concatenate(parts)
        if len(records) != count:
            raise RunFailedError(f"{len(records)} records came in of {count} that were sent")
        return records


def shuffle(
    number: int, peer: Peer, coming: Iterable[NDArray[np.void]], pool: ThreadPoolExecutor
) -> tuple[NDArray[np.void], int]:
    """Change records with the other side, while a thread takes what it sends.

    Returns:
        What belongs to this side, in the order of keys, of each key the first one: of side 0 before 1, and of a side as
        it reads them; and how many records there were before duplicates were left out.
    """
    others = pool.submit(peer.given)
    own, sent = [np.empty(0, RECORD)], 0
    for block in coming:
        mine = owner(block["key"]) == number
        own.append(block[mine])
        peer.give(block[~mine])
        sent += len(block) - len(own[-1])
    peer.tell(HEAD.pack(0, sent))
    records = np.concatenate([*own, others.result()] if number == 0 else [others.result(), *own])
    order = np.argsort(records["key"], kind="stable")
    keys = records["key"][order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return records[order[first]], len(records)


def verify(result: NDArray[np.void], number: int) -> None:
    """Raise RunFailedError where a side's result is not in order, or holds what is not its own."""
    keys = result["key"]
    if not (keys[1:] > keys[:-1]).all():
        raise RunFailedError("a result is not in order, or has a key twice")
    if not (owner(keys) == number).all():
        raise RunFailedError("a result holds what belongs to the other side")


class Side:
    """One of the two sides, with its shard."""

    def __init__(self, number: int, peer: Peer, shard: IO[bytes], folder: Path, pool: ThreadPoolExecutor) -> None:
        self._number, self._peer, self._shard, self._folder, self._pool = number, peer, shard, folder, pool
        self._dice = random.Random(number)  # noqa: S311
        self._next = 0

    def work(self, job: Job) -> None:
        """Do a job, round by round, and read its results once more.

        Raises:
            RunFailedError: the other side is lost, or a result is wrong.
        """
        with ExitStack() as stack:
            results: list[tuple[IO[bytes], int]] = []
            file: IO[bytes]
            for _ in range(job.rounds):
                file = stack.enter_context(tempfile.TemporaryFile(dir=self._folder))
                results.append((file, self._round(job, file)))
            begin = time.monotonic()
            for file, count in results:
                file.seek(0)
                result = np.fromfile(file, RECORD)
                verify(result, self._number)
                if len(result) != count:
                    raise RunFailedError(f"{len(result)} records are on disk of {count} that were written")
            done("closing", time.monotonic() - begin)
        time.sleep(job.pause_s)

    def _round(self, job: Job, file: IO[bytes]) -> int:
        """Shuffle some blocks, write what is this side's, wait for the other one; return how many records that is."""
        count = BLOCK * self._dice.randint(job.least, job.most)
        result, taken = shuffle(self._number, self._peer, self._fetched(count, job.kind), self._pool)
        verify(result, self._number)
        result.tofile(file)
        os.fsync(file.fileno())
        self._peer.tell(TOLD.pack(count, taken))
        read_there, taken_there = TOLD.unpack(self._peer.told(TOLD.size))
        if count + read_there != taken + taken_there:
            raise RunFailedError(f"{count + read_there} records were read, and {taken + taken_there} shuffled")
        return len(result)

    def _fetched(self, count: int, kind: str) -> Iterator[NDArray[np.void]]:
        """Read the next records of the shard, each block with a sleep; one that has been dealt with is a unit."""
        begin = time.monotonic()
        for block in blocks(self._shard, self._next, count):
            time.sleep(BLOCK_SLEEP_S * self._dice.uniform(0.7, 1.3))
            yield block
            done(kind, time.monotonic() - begin)
            begin = time.monotonic()
        self._next += count


@contextmanager
def joined(number: int, address: str) -> Iterator[socket.socket]:
    """Give a connection to the other side once it is there; a thread that still waits for it at the end is let go.

    Raises:
        RunFailedError: it does not come.
    """
    try:
        connection = _listen(address) if number == 0 else _reach(address)
    except OSError as error:
        raise RunFailedError(f"the other side of the shuffle does not come: {error}") from error
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            yield connection
        finally:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _listen(address: str) -> socket.socket:
    with socket.create_server((address, PORT)) as listening:
        listening.settimeout(PATIENCE_S)
        return listening.accept()[0]


def _reach(address: str) -> socket.socket:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=PATIENCE_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)  # it is not up yet


def run(number: int, address: str, folder: Path, coming: Iterable[Job]) -> None:
    """Do jobs together with the other side.

    Raises:
        RunFailedError: the other side is lost, or a result is wrong.
    """
    with tempfile.TemporaryFile(dir=folder) as shard, ThreadPoolExecutor(1) as pool:
        make_shard(shard, number)
        with joined(number, address) as connection:
            side = Side(number, Peer(connection), shard, folder, pool)
            for job in coming:
                side.work(job)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        run(int(sys.argv[1]), sys.argv[2], Path(), jobs())
    except UnveilError as error:
        sys.exit(error.what)
