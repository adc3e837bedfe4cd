"""The control socket, served between two ticks of the watch loop, without a thread.

Only the watcher's own user may talk to it: the socket stands in a directory of that user alone, has mode 0600, and
the kernel's word on who connected (SO_PEERCRED) is checked again. Nobody can stall the loop: reads and writes never
block, questions are bounded, and a peer that does not read its answers is dropped.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unveil.engine import protocol
from unveil.errors import BadInputError, RefusedError, UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOG = logging.getLogger(__name__)
MAX_PEERS = 16
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


@dataclass(slots=True)
class _Peer:
    connection: socket.socket
    actor: str
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)


class ControlServer:
    """Answers questions with *handle(method, params, actor)*; UnveilErrors travel back to who asked."""

    def __init__(self, path: Path, handle: Callable[[str, dict[str, Any], str], Any]) -> None:
        self._path = path
        self._handle = handle
        self._owner = os.geteuid()
        self._peers: dict[int, _Peer] = {}
        path.unlink(missing_ok=True)  # the state directory's lock says that nobody serves it
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        mask = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        except OSError as error:
            raise BadInputError(
                f"cannot serve the control socket {path}: {error}", hint="a socket's path has at most 107 bytes"
            ) from error
        finally:
            os.umask(mask)
        self._listener.listen(MAX_PEERS)

    def close(self) -> None:
        """Hang up on everybody."""
        for descriptor in list(self._peers):
            self._drop(descriptor)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def serve_until(self, deadline_ns: int) -> None:
        """Serve until CLOCK_MONOTONIC reaches the deadline; this is how the watch loop sleeps."""
        while (remaining := deadline_ns - time.monotonic_ns()) > 0:
            readers = [self._listener.fileno(), *self._peers]
            writers = [descriptor for descriptor, peer in self._peers.items() if peer.unsent]
            try:
                readable, writable, _ = select.select(readers, writers, [], remaining / 1e9)
            except InterruptedError:
                return
            for descriptor in writable:
                self._send(descriptor)
            for descriptor in readable:
                if descriptor == self._listener.fileno():
                    self._accept()
                else:
                    self._receive(descriptor)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # hung up again already
        pid, uid, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if uid not in {self._owner, 0} or len(self._peers) >= MAX_PEERS:
            reason = "too many connections" if uid in {self._owner, 0} else f"uid {uid} may not talk to this watcher"
            with contextlib.suppress(OSError):
                connection.send(protocol.refusal(0, RefusedError(reason)))
            connection.close()
            return
        connection.setblocking(False)
        self._peers[connection.fileno()] = _Peer(connection, f"uid:{uid} pid:{pid}")

    def _receive(self, descriptor: int) -> None:
        peer = self._peers.get(descriptor)
        if peer is None:
            return  # dropped while its other side was served
        try:
            data = peer.connection.recv(protocol.MAX_QUESTION)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(descriptor)
            return
        peer.received += data
        while (end := peer.received.find(b"\n")) >= 0:
            line = bytes(peer.received[:end])
            del peer.received[: end + 1]
            peer.unsent += self._answer(line, peer.actor)
        if len(peer.received) > protocol.MAX_QUESTION or len(peer.unsent) > protocol.MAX_ANSWER:
            self._drop(descriptor)
            return
        self._send(descriptor)

    def _answer(self, line: bytes, actor: str) -> bytes:
        number = 0
        try:
            number, method, params = protocol.read_question(line)
            return protocol.answer(number, self._handle(method, params, actor))
        except UnveilError as error:
            return protocol.refusal(number, error)
        except Exception as error:  # noqa: BLE001  # a fault of ours in one answer must not end the watch; it is said and logged
            _LOG.exception("a fault in unveil itself")
            return protocol.refusal(number, UnveilError(f"a fault in unveil itself: {type(error).__name__}: {error}"))

    def _send(self, descriptor: int) -> None:
        peer = self._peers.get(descriptor)
        if peer is None or not peer.unsent:
            return
        try:
            sent = peer.connection.send(peer.unsent)
        except BlockingIOError:
            return
        except OSError:
            self._drop(descriptor)
            return
        del peer.unsent[:sent]

    def _drop(self, descriptor: int) -> None:
        self._peers.pop(descriptor).connection.close()
