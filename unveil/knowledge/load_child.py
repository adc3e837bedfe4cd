"""Loading in a child process, so that YAML, JSON Schema and their work never enter the watcher.

A thread would not do: 200 files are half a second of Python, and a loop that wakes every 100 ms would wait up to 5 ms
for the interpreter's lock at each of its reads. Measured with 200 fingerprints: the watcher grows by 1.0 MB (the
records) instead of by 13 MB (7 for yaml, jsonschema and jinja2, 6 for documents, schemas and positions), and an edit
is in use after 0.3 s, 0.25 of them the wait for quiet. The child has 48 MB while someone edits, keeps what it found
about unchanged files, and goes when nobody has edited for a minute.

Both ends of the pipe stand here. One JSON value per line::

    → {"root": …, "generation": 3, "known": [digests of records that the watcher has]}
    ← {"record": "Fingerprint", "digest": …, "value": {…}}            only those that are not known
    ← {"loaded": {"digest": …, "root": …, "problems": [digests], "Fingerprint": [digests], …}}
    ← {"failed": "what went wrong"}                                   instead, when the loader itself broke
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import unveil
from unveil.errors import UnveilError
from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded
from unveil.records.codec import decode, encode
from unveil.records.correlation import Correlation
from unveil.records.digest import sha256
from unveil.records.fingerprint import Fingerprint
from unveil.records.problem import Problem
from unveil.records.remediation import Remediation
from unveil.records.site import Filter, Profiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEADLINE_S = 120.0
LINGER_S = 60.0
MAX_LINE = 64_000_000
_MEMORY_BYTES = 2 << 30  # address space: far above need, and a bound on what a hostile file can cost
_PACKAGES = str(Path(unveil.__file__).parents[1])
_RECORDS: Mapping[str, type[Any]] = {
    "Fingerprint": Fingerprint, "Correlation": Correlation, "Remediation": Remediation, "Filter": Filter,
    "Profiles": Profiles, "Problem": Problem,
}  # fmt: skip


class LoadFailedError(UnveilError):
    """The loader itself broke: it ended, took too long or said what cannot be understood."""


class LoadChild:
    """The watcher's end: asks a child to load, and starts one when there is none. Used by one thread at a time."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._records: dict[str, Any] = {}

    def warm(self) -> None:
        """Have a child started: its imports take 0.3 s, which may pass while somebody still types."""
        with contextlib.suppress(OSError):
            self._start()

    def load(self, root: Path, *, generation: int) -> Loaded:
        """Return a folder as it is now. Records that did not change are the same objects as last time.

        Raises:
            LoadFailedError: the child broke; it is ended, and the next call starts another.
        """
        try:
            return self._load(root, generation)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._broken(f"the loader cannot be understood: {error!r}") from error

    def _load(self, root: Path, generation: int) -> Loaded:
        process = self._start()
        request = {"root": str(root), "generation": generation, "known": list(self._records)}
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        for line in self._lines(process):
            answer = json.loads(line)
            if "record" in answer:
                self._records[answer["digest"]] = decode(_RECORDS[answer["record"]], answer["value"])
                time.sleep(0)  # let the watch loop have the interpreter between two records
            elif "loaded" in answer:
                return self._assemble(answer["loaded"], generation)
            else:
                raise self._broken(f"the loader failed: {answer.get('failed')}")
        raise self._broken("the loader ended without an answer")

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "unveil.knowledge.load_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))},
        )
        return self._process

    def _lines(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        """Yield the lines of an answer; never waits beyond the deadline."""
        until_s = time.monotonic() + self._deadline_s
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        waiting = select.poll()  # select knows no descriptor above 1023, which a host of many CPUs has
        waiting.register(descriptor, select.POLLIN)
        while True:
            line, newline, rest = self._pending.partition(b"\n")
            if newline:
                self._pending = rest
                yield line
                continue
            if not waiting.poll(max(0.0, 1e3 * (until_s - time.monotonic()))):
                raise self._broken(f"the loader took longer than {self._deadline_s:g} s")
            chunk = os.read(descriptor, 1 << 20)
            if not chunk or len(self._pending) > MAX_LINE:
                code = process.wait(timeout=5) if not chunk else 0
                raise self._broken(f"the loader ended ({'signal ' if code < 0 else 'code '}{abs(code)})")
            self._pending += chunk

    def _assemble(self, loaded: Mapping[str, Any], generation: int) -> Loaded:
        named = {kind: [self._records[digest] for digest in loaded[kind]] for kind in _RECORDS}
        listed = {digest for kind in _RECORDS for digest in loaded[kind]}
        self._records = {digest: record for digest, record in self._records.items() if digest in listed}
        knowledge = None
        if loaded["usable"]:
            knowledge = KnowledgeBase(
                generation=generation,
                digest=loaded["digest"],
                root=loaded["root"],
                fingerprints=tuple(named["Fingerprint"]),
                remediations=tuple(named["Remediation"]),
                filters=tuple(named["Filter"]),
                correlations=tuple(named["Correlation"]),
                profiles=named["Profiles"][0],
                groups={host: tuple(groups) for host, groups in loaded["groups"].items()},
                site={
                    name: tuple(value) if isinstance(value, list) else value for name, value in loaded["site"].items()
                },
            )
        return Loaded(knowledge=knowledge, problems=tuple(named["Problem"]), digest=loaded["digest"])

    def _broken(self, what: str) -> LoadFailedError:
        self.close()
        return LoadFailedError(what, hint="run `unveil kb lint` to see more")

    def close(self) -> None:
        """End the child, if there is one."""
        process, self._process, self._pending = self._process, None, b""
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.kill()
        process.wait()


def serve(requests: IO[bytes], answers: IO[bytes], *, linger_s: float = LINGER_S) -> None:
    """Answer requests until there are no more, or none for a while. The child's end."""
    from unveil.knowledge.loading import Loader  # the watcher imports this module without that weight

    loaders: dict[str, Loader] = {}
    written: dict[int, _Written] = {}  # a loader hands out the same record as long as its file stays the same
    while select.select([requests], [], [], linger_s)[0] and (line := requests.readline()):
        try:
            request = json.loads(line)
            loader = loaders.setdefault(request["root"], Loader(request["root"]))
            loaded = loader.load(generation=request["generation"])
            lines = list(_answer(loaded, frozenset(request["known"]), written))
        except Exception as error:  # noqa: BLE001  # whatever breaks is told to the watcher, which keeps the old
            lines = [{"failed": f"{type(error).__name__}: {error}"}]
        answers.write(b"".join(json.dumps(each).encode() + b"\n" for each in lines))
        answers.flush()
        # The documents stay for the next request: looking through them for cycles would take a third of its time.
        gc.collect()
        gc.freeze()


@dataclass(frozen=True, slots=True)
class _Written:
    """A record as it travels. It holds the record, so that no other one can have its identity."""

    record: Any
    digest: str
    value: Any


def _written(kind: str, record: Any) -> _Written:
    value = encode(record)
    text = json.dumps([kind, value], sort_keys=True)
    return _Written(record, sha256(text.encode()).hexdigest()[:24], value)


def _answer(loaded: Loaded, known: frozenset[str], written: dict[int, _Written]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of an answer.

    Args:
        known: digests of the records that the watcher has.
        written: how records travelled last time, by identity; brought up to date.
    """
    base = loaded.knowledge
    groups: dict[str, tuple[Any, ...]] = dict.fromkeys(_RECORDS, ())
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
            each = met[id(record)] = written.get(id(record)) or _written(kind, record)
            told[kind].append(each.digest)
            if each.digest not in known:
                yield {"record": kind, "digest": each.digest, "value": each.value}
    written.clear()
    written.update(met)
    yield {"loaded": told}


def main() -> None:
    """Serve on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the watcher, which then closes the pipe
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    os.nice(5)
    with os.fdopen(os.dup(0), "rb", buffering=0) as requests, os.fdopen(os.dup(1), "wb") as answers:
        serve(requests, answers)


if __name__ == "__main__":
    main()
