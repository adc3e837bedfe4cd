"""The loader's child: answers requests for as long as its watcher lives, and holds little between them.

`load_child` is the other end, and has what passes between the two. What must stay true for weeks: an answer is whole or
none, what breaks is told, nothing is kept but what the next request needs, the address space is bounded, and whatever
still adds up (a heap in pieces, a library's caches) ends with this process, which then makes room for a fresh one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from unveil.knowledge.load_child import RECORDS, REST_S, outlives
from unveil.knowledge.loading import Loader
from unveil.records.codec import encode
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.knowledge_base import Loaded

_MEMORY_BYTES = 2 << 30  # address space: far above need, and a bound on what a hostile file can cost
_GROWN = 2.0  # times what it held when it rested first; then it makes room for a fresh one


def serve(requests: IO[bytes], answers: IO[bytes], *, rest_s: float = REST_S) -> None:
    """Answer requests until there are no more, and rest whenever there is none for a while."""
    serving = _Serving()
    while True:
        if not select.select([requests], [], [], rest_s)[0]:
            if (held := serving.rest()) is None:
                return
            answers.write(_line({"resting": held}))
            answers.flush()
        line = requests.readline()  # waits as long as it takes, and costs nothing meanwhile
        if not line:
            return
        answers.writelines(serving.answer(line))
        answers.flush()
        # The documents stay for the next request: looking through them for cycles would take much of its time.
        gc.collect()
        gc.freeze()


class _Serving:
    """What a child keeps from one request to the next: nothing but what the next one needs."""

    def __init__(self) -> None:
        self._loaders: dict[str, Loader] = {}
        self._written: dict[int, _Written] = {}  # a loader hands out the same record as long as its file is the same
        self._rested_bytes = 0

    def answer(self, line: bytes) -> list[bytes]:
        """Return the lines of an answer, whole or none of it."""
        try:
            request = json.loads(line)
            loader = self._loaders.setdefault(request["root"], Loader(request["root"]))
            known = request.get("known")
            if known is None:
                known = [each.digest for each in self._written.values()]
            loaded = loader.load(generation=request["generation"])
            return [_line(each) for each in _answer(loaded, frozenset(known), self._written)]
        except Exception as error:  # noqa: BLE001  # whatever breaks is told to the watcher, which keeps the old
            return [_line({"failed": f"{type(error).__name__}: {error}"})]

    def rest(self) -> int | None:
        """Give back what is not needed; return what is left, in bytes, None when that is too much to go on with."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        with contextlib.suppress(OSError, AttributeError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
        held = _private_bytes()
        if self._written:
            self._rested_bytes = self._rested_bytes or held
        return held if held <= _GROWN * (self._rested_bytes or held) else None


def _private_bytes() -> int:
    """Return the memory that only this process has (proc(5), statm: resident less shared)."""
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * resource.getpagesize()


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class _Written:
    """How a record is called. It holds the record, so that no other one can have its identity."""

    record: Any
    digest: str


def _digest(kind: str, value: Any) -> str:
    return sha256(json.dumps([kind, value], sort_keys=True).encode()).hexdigest()[:24]


def _answer(loaded: Loaded, known: frozenset[str], written: dict[int, _Written]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of an answer.

    Args:
        known: digests of the records that the watcher has.
        written: what records were called last time, by identity; brought up to date.
    """
    base = loaded.knowledge
    groups: dict[str, tuple[Any, ...]] = dict.fromkeys(RECORDS, ())
    groups["Problem"] = loaded.problems
    if base is not None:
        groups |= {"Fingerprint": base.fingerprints, "Remediation": base.remediations, "Filter": base.filters}
        groups |= {"Correlation": base.correlations, "Profiles": (base.profiles,)}
    told: dict[str, Any] = {"digest": loaded.digest, "usable": base is not None}
    told |= {"root": base.root, "site": encode(base.site), "groups": encode(base.groups)} if base is not None else {}
    met: dict[int, _Written] = {}
    for kind, records in groups.items():
        told[kind] = []
        for record in records:
            value, each = None, written.get(id(record))
            if each is None:
                value = encode(record)
                each = _Written(record, _digest(kind, value))
            met[id(record)] = each
            told[kind].append(each.digest)
            if each.digest not in known:
                yield {"record": kind, "digest": each.digest, "value": encode(record) if value is None else value}
    kept = {key: each for key, each in written.items() if outlives(each.record, usable=base is not None)}
    written.clear()
    written.update(kept | met)
    yield {"loaded": told}


def main() -> None:
    """Serve on standard input and output; the argument is after how many seconds to rest."""
    for number in (signal.SIGINT, signal.SIGHUP):  # they are for the watcher; when that ends, the pipe does
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    os.nice(5)
    with contextlib.suppress(OSError):  # short of memory, the kernel shall take this one: it can be had again
        Path("/proc/self/oom_score_adj").write_text("1000")
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        serve(requests, answers, rest_s=float(sys.argv[1]))


if __name__ == "__main__":
    main()
