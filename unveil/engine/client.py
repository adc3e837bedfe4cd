"""The other end of the control socket: what the command line and the screens hold."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from unveil.engine import protocol
from unveil.errors import RefusedError, WatcherAbsentError

if TYPE_CHECKING:
    from pathlib import Path

_AGAIN_S = 0.05


class Watcher(Protocol):
    """Whoever answers questions about a watch: a client of the socket, or a replay in this process."""

    def call(self, method: str, **params: Any) -> Any:
        """Ask, and return the answer's JSON value; raise the UnveilError that the watcher raised."""


class Client:
    """A connection to a watcher. Not for two threads at once."""

    def __init__(self, path: Path, *, timeout_s: float = 10.0) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._number = 0
        self._stream: socket.socket | None = None
        self._buffer = bytearray()

    def call(self, method: str, **params: Any) -> Any:
        """Ask the watcher, connecting when there is no connection.

        Raises:
            WatcherAbsentError: nobody listens there, or it hung up.
            RefusedError: this user may not ask.
            UnveilError: what the watcher raised.
        """
        stream = self._stream or self._connect()
        self._number += 1
        try:
            with suppress(BrokenPipeError):  # refused before it was asked: what it said is still there to be read
                stream.sendall(protocol.question(self._number, method, params))
            return protocol.read_answer(self._line(stream))
        except OSError as error:
            self.close()
            raise WatcherAbsentError(
                f"the watcher at {self._path} does not answer ({error})", hint="see whether `unveil watch` still runs"
            ) from error

    def close(self) -> None:
        """Hang up; the next question connects anew."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._buffer.clear()

    def _connect(self) -> socket.socket:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        stream.settimeout(self._timeout_s)
        try:
            self._knock(stream)
        except PermissionError as error:
            stream.close()
            raise RefusedError(
                f"not allowed to talk to the watcher at {self._path}", hint="ask as the user who started it, or as root"
            ) from error
        except OSError as error:
            stream.close()
            raise WatcherAbsentError(
                f"no watcher listens at {self._path}", hint="start one with `unveil watch`, or name its --state-dir"
            ) from error
        self._stream = stream
        return stream

    def _knock(self, stream: socket.socket) -> None:
        """Connect; when others crowd at the door, which the kernel says at once, try again until the time is up."""
        until_s = time.monotonic() + self._timeout_s
        while True:
            try:
                stream.connect(str(self._path))
                return
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise
            time.sleep(_AGAIN_S)

    def _line(self, stream: socket.socket) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            data = stream.recv(1 << 16)
            if not data:
                raise ConnectionResetError("it hung up")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line
