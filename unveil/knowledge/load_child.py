"""Loading in a child process, so that YAML, JSON Schema and their work never enter the watcher.

A thread would not do: hundreds of files are long work for Python, and a loop that wakes every 100 ms would wait for the
interpreter's lock at each of its reads. The child stays as long as the watcher does, since Python alone takes
longer to start than an edit may: what it found about unchanged files is at hand whenever the next edit comes. When
nobody has edited for a minute it gives back what it does not need and sleeps, in a system call without a time-out.
`python -m unveil.benchmarks.knowledge` prints what it holds then, and what the next edit takes.

It can be lost: the kernel, short of memory, is asked to take it first, and it ends by itself when it has grown to
twice what it was. The watcher goes on with the records that it has, and `Reloader` has another one started.

This is the watcher's end of the pipe, `load_serving` the child's. One JSON value per line::

    → {"root": …, "generation": 3, "known": [digests of records that the watcher has]}    known: the first time only
    ← {"record": "Fingerprint", "digest": …, "value": {…}}            only those that are not known
    ← {"loaded": {"digest": …, "root": …, "problems": [digests], "Fingerprint": [digests], …}}
    ← {"failed": "what went wrong"}                                   instead, when the loader itself broke
    ← {"resting": bytes that it holds for itself}                     once nobody has asked for a minute
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unveil
from unveil.errors import UnveilError
from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded
from unveil.records.codec import decode
from unveil.records.correlation import Correlation
from unveil.records.fingerprint import Fingerprint
from unveil.records.problem import Problem
from unveil.records.remediation import Remediation
from unveil.records.site import Filter, Profiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEADLINE_S = 120.0
REST_S = 60.0
MAX_LINE = 64_000_000
_PACKAGES = str(Path(unveil.__file__).parents[1])
RECORDS: Mapping[str, type[Any]] = {
    "Fingerprint": Fingerprint, "Correlation": Correlation, "Remediation": Remediation, "Filter": Filter,
    "Profiles": Profiles, "Problem": Problem,
}  # fmt: skip


class LoadFailedError(UnveilError):
    """The loader itself broke: it ended, took too long or said what cannot be understood."""


class _Ended(Exception):  # noqa: N818 - never leaves this module
    """The child is no more."""


class LoadChild:
    """The watcher's end: asks a child to load, and starts one when there is none. Used by one thread at a time."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, rest_s: float = REST_S) -> None:
        """Make one; the child starts with the first question.

        Args:
            deadline_s: what a load may take.
            rest_s: how long nobody must have asked until the child gives back what it does not need.
        """
        self._deadline_s = deadline_s
        self._rest_s = rest_s
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._met = False
        self._stopped = threading.Event()
        self._records: dict[str, Any] = {}

    @property
    def ready(self) -> bool:
        """Return whether there is a child that has loaded before, so that the next load is a quick one."""
        return self._met and self._process is not None and self._process.poll() is None

    def resting_bytes(self) -> int | None:
        """Return the memory that only a child at rest has, None when there is none or it does not rest. Never waits."""
        process = self._process
        if process is None or process.stdout is None:
            return None
        waiting = select.poll()
        waiting.register(process.stdout.fileno(), select.POLLIN)
        if waiting.poll(0):
            self._pending += os.read(process.stdout.fileno(), 1 << 16)
        told = json.loads(self._pending) if self._pending.endswith(b"\n") else {}
        return int(told["resting"]) if "resting" in told else None

    def warm(self) -> None:
        """Have a child started: its imports take a while, which may pass while somebody still types."""
        with contextlib.suppress(OSError, _Ended):
            self._start()

    def load(self, root: Path, *, generation: int) -> Loaded:
        """Return a folder as it is now. Records that did not change are the same objects as last time.

        Raises:
            LoadFailedError: the child broke; it is ended, and the next call starts another.
        """
        kept = self.ready
        try:
            try:
                return self._load(root, generation)
            except (_Ended, BrokenPipeError):
                if not kept or self._stopped.is_set():
                    raise
                self.close()  # it was lost while it waited, which says nothing about the folder
                return self._load(root, generation)
        except _Ended as error:
            raise self._broken(str(error)) from error
        except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
            raise self._broken(f"the loader cannot be understood: {error!r}") from error

    def _load(self, root: Path, generation: int) -> Loaded:
        process = self._start()
        until_s = time.monotonic() + self._deadline_s
        request: dict[str, Any] = {"root": str(root), "generation": generation}
        if not self._met:
            request["known"] = list(self._records)
        self._say(process, json.dumps(request).encode() + b"\n", until_s)
        for line in self._lines(process, until_s):
            answer = json.loads(line)
            if "resting" in answer:
                continue  # it did, until now
            if "record" in answer:
                self._records[answer["digest"]] = decode(RECORDS[answer["record"]], answer["value"])
                time.sleep(0)  # let the watch loop have the interpreter between two records
            elif "loaded" in answer:
                loaded = self._assemble(answer["loaded"], generation)
                self._met = True
                return loaded
            else:
                raise self._broken(f"the loader failed: {answer.get('failed')}")
        raise self._broken("the loader ended without an answer")

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        if self._stopped.is_set():
            raise _Ended("the loader was stopped")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "unveil.knowledge.load_serving", str(self._rest_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))},
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        if self._stopped.is_set():  # meanwhile, by another thread that did not see this one
            self._process.kill()
        return self._process

    def _say(self, process: subprocess.Popen[bytes], request: bytes, until_s: float) -> None:
        """Send a request, which may be longer than a pipe holds, to a child that may stand still."""
        assert process.stdin is not None
        descriptor = process.stdin.fileno()
        waiting = select.poll()
        waiting.register(descriptor, select.POLLOUT)
        left = memoryview(request)
        while left:
            self._wait(waiting, until_s)
            left = left[os.write(descriptor, left) :]

    def _lines(self, process: subprocess.Popen[bytes], until_s: float) -> Iterator[bytes]:
        """Yield the lines of an answer; never waits beyond the deadline."""
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
            self._wait(waiting, until_s)
            chunk = os.read(descriptor, 1 << 20)
            if not chunk:
                code = process.wait(timeout=5)
                raise _Ended(f"the loader ended ({'signal' if code < 0 else 'code'} {abs(code)})")
            self._pending += chunk
            if len(self._pending) > MAX_LINE:
                raise self._broken(f"the loader said a line of more than {MAX_LINE:,} bytes")

    def _wait(self, waiting: select.poll, until_s: float) -> None:
        if not waiting.poll(max(0.0, 1e3 * (until_s - time.monotonic()))):
            raise self._broken(f"the loader took longer than {self._deadline_s:g} s")

    def _assemble(self, loaded: Mapping[str, Any], generation: int) -> Loaded:
        named = {kind: [self._records[digest] for digest in loaded[kind]] for kind in RECORDS}
        listed = {digest for kind in RECORDS for digest in loaded[kind]}
        usable = loaded["usable"]
        self._records = {
            digest: record
            for digest, record in self._records.items()
            if digest in listed or outlives(record, usable=usable)
        }
        knowledge = None
        if usable:
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

    def stop(self) -> None:
        """End the child for good, from any thread: a load that is under way fails at once, and no other one starts."""
        self._stopped.set()
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the child, if there is one."""
        process, self._process, self._pending, self._met = self._process, None, b"", False
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a dead file server holds it; it ends with that
            process.wait(timeout=5)


def outlives(record: Any, *, usable: bool) -> bool:
    """Return whether both ends keep a record that an answer does not name: until a broken folder is mended."""
    return not usable and not isinstance(record, Problem)
