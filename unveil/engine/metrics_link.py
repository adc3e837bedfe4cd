"""The watcher's end of the metrics endpoint: binds the port, starts the child that serves it, and feeds it.

Serving is not done in the watcher: prometheus_client and an HTTP server would make it much larger (``python -m
unveil.benchmarks.imports``), and a scrape would take turns with the reading of the host. A child is told everything
every few seconds, in one line of JSON that is written without waiting: a child that does not keep up gets less, and one
that dies is started again after a pause. The port is bound here, so that an address in use is said at the start, and
survives the child.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.metrics import Family

EVERY_NS = 10_000_000_000
_FIRST_PAUSE_NS = 1_000_000_000
_LONGEST_PAUSE_NS = 60_000_000_000
_WAIT_S = 2.0


def parse_address(text: str) -> tuple[str, int]:
    """Return the address and port of ``9464``, ``127.0.0.1:9464`` or ``[::1]:9464``.

    Raises:
        BadInputError: it is none, or one that others than this host could reach.
    """
    address, _, port = text.rpartition(":")
    address = address.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise BadInputError(f"metrics cannot be served at {text!r}", hint="give a port, or ADDRESS:PORT")
    try:
        loopback = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address).is_loopback
    except ValueError as error:
        raise BadInputError(f"metrics cannot be served at {text!r}: {error}") from error
    if not loopback:
        raise BadInputError(
            f"metrics are served on this host's loopback only, not at {address}",
            hint="from elsewhere: through a proxy that asks who it is, or --metrics-file and node_exporter",
        )
    return ("127.0.0.1" if address == "localhost" else address), int(port)


def parse_file(text: str) -> Path:
    """Return the path of a file for node_exporter's textfile collector.

    Raises:
        BadInputError: the collector would not read it, or its folder is not there.
    """
    path = Path(text).absolute()
    if path.suffix != ".prom":
        raise BadInputError(f"{text!r} would not be read: the textfile collector takes *.prom only")
    if not path.parent.is_dir():
        raise BadInputError(f"{text!r}: there is no folder {path.parent}")
    return path


class MetricsLink:
    """One endpoint, one file or both, served by a child. Everything here returns at once.

    Args:
        listen: ``[ADDRESS:]PORT``, empty for no endpoint.
        file: path of a ``.prom`` file, empty for none.

    Raises:
        BadInputError: an address or a path is wrong.
        RefusedError: the port is taken.
    """

    def __init__(self, *, listen: str = "", file: str = "") -> None:
        self._listener = _bound(parse_address(listen)) if listen else None
        self._command = [sys.executable, "-m", "unveil.engine.metrics_child"]
        if file:
            self._command += ["--file", str(parse_file(file))]
        if self._listener is not None:
            self._command += ["--fd", str(self._listener.fileno())]
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent = b""
        self._due_ns = 0
        self._start_ns = 0
        self._started_ns = 0
        self._pause_ns = _FIRST_PAUSE_NS
        self.starts = 0

    @property
    def port(self) -> int | None:
        """Return the port that is listened at."""
        return None if self._listener is None else int(self._listener.getsockname()[1])

    @property
    def pid(self) -> int | None:
        """Return the PID of the child that runs."""
        return None if self._process is None else self._process.pid

    def poll(self, now_ns: int, families: Callable[[], tuple[Family, ...]]) -> None:
        """Tell the child what is new when it is due; start one when there is none.

        Args:
            now_ns: CLOCK_MONOTONIC.
            families: asked only when there is somebody to tell.
        """
        self._push()
        if self._process is not None and self._process.poll() is not None:
            self._drop(now_ns)
        if self._process is None and now_ns >= self._start_ns:
            self._start(now_ns)
        if self._process is not None and now_ns >= self._due_ns and not self._unsent:
            self._due_ns = now_ns + EVERY_NS
            told = [(each.name, each.kind, each.help, each.labels, each.samples) for each in families()]
            self._unsent = json.dumps(told, separators=(",", ":")).encode() + b"\n"
            self._push()

    def close(self) -> None:
        """Hang up: the child removes its file and ends."""
        if self._listener is not None:
            self._listener.close()
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()  # it is in no driver
            process.wait()

    def _start(self, now_ns: int) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=() if self._listener is None else (self._listener.fileno(),),
                start_new_session=True,  # a Ctrl-C is the watcher's business
            )
        except OSError:
            self._drop(now_ns)
            return
        self.starts += 1
        self._started_ns = now_ns
        self._due_ns = 0
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def _push(self) -> None:
        if self._process is None or not self._unsent:
            return
        assert self._process.stdin is not None
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = b""

    def _drop(self, now_ns: int) -> None:
        """Forget a child that ended; the next is started after a pause that grows."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process = None
        self._unsent = b""
        if now_ns - self._started_ns > _LONGEST_PAUSE_NS:
            self._pause_ns = _FIRST_PAUSE_NS
        self._start_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, _LONGEST_PAUSE_NS)


def _bound(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(16)
    except OSError as error:
        listener.close()
        raise RefusedError(
            f"metrics cannot be served at {address[0]} port {address[1]}: {error.strerror}",
            hint="is another watcher serving there?",
        ) from error
    return listener
