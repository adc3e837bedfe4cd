"""The control socket, served by the watch loop while it sleeps.

Only the watcher's own user and root may talk to it: the socket stands in a directory of that user alone, has mode 0600,
and the kernel's word on who connected (SO_PEERCRED) is checked again. Where the site has roles, who has one may talk,
too, for as long as they have it: then the kernel's word alone decides. Nobody can stall the loop: reads and writes
never block, questions are bounded, a peer that does not read its answers is dropped, and of those who may not talk only
so many are turned away in a turn.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
import stat
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
MAX_STRANGERS = 200  # who may not talk is turned away so often in a turn of the loop; more wait for the next
DEAF_S = 10.0  # a peer that takes nothing of its answer for so long is dropped
SILENT_S = 30.0  # one that has asked nothing for so long makes room for another, when there is none left
TURN_NS = 50_000_000  # answers that take longer together are parted by a look at what else is to be done
MOST_DESCRIPTORS = 1024  # what select can look at; poll looks at any, but only to the millisecond
_TOO_MANY = RefusedError("too many connections")
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


@dataclass(slots=True)
class _Peer:
    connection: socket.socket
    uid: int
    actor: str
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    since_s: float = 0.0  # it connected, was last given an answer, or took something of one

    @property
    def waits(self) -> bool:
        """Return whether a question is to be answered: one at a time, and only to who took the last answer."""
        return not self.unsent and b"\n" in self.received


class ControlServer:
    """Answers questions with *handle(method, params, actor)*; UnveilErrors travel back to who asked.

    Args:
        admits: whether a user other than the watcher's own and root may talk to it, too.
        came: called when somebody connects while nobody was.
    """

    def __init__(
        self,
        path: Path,
        handle: Callable[[str, dict[str, Any], str], Any],
        *,
        admits: Callable[[int], bool] = lambda _uid: False,
        came: Callable[[], object] = lambda: None,
    ) -> None:
        self._admits = admits
        self._came = came
        self._path = path
        self._handle = handle
        self._owner = os.geteuid()
        self._peers: dict[int, _Peer] = {}
        self._strangers = 0
        self._narrow: int | None = None  # mode of the directory before others were let in
        path.unlink(missing_ok=True)  # the state directory's lock says that nobody serves it
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        mask = os.umask(0o177)
        try:
            self._listener.bind(str(path))
        except OSError as error:
            self._listener.close()
            raise BadInputError(
                f"cannot serve the control socket {path}: {error}", hint="a socket's path has at most 107 bytes"
            ) from error
        finally:
            os.umask(mask)
        self._listener.listen(MAX_PEERS)
        self._waker = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._made = path.stat().st_ino

    def close(self) -> None:
        """Hang up on everybody."""
        for descriptor in list(self._peers):
            self._drop(descriptor)
        self._listener.close()
        waker, self._waker = self._waker, -1
        os.close(waker)
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._made:  # not another watcher's, when the directory was replaced
                self._path.unlink()

    @property
    def asked(self) -> bool:
        """Return whether somebody is connected."""
        return bool(self._peers)

    def open_to_others(self, others: bool) -> None:
        """Let other users reach the socket, or no longer; who may talk is decided when they come."""
        self._path.chmod(0o666 if others else 0o600)
        folder = self._path.parent
        mode = stat.S_IMODE(folder.stat().st_mode)
        if self._narrow is None and mode & 0o077 == 0o011:  # opened by a watcher that was killed
            self._narrow = mode & ~0o011
        if others and not mode & 0o001:
            self._narrow = mode
            folder.chmod(mode | 0o011)  # they may go through it, not look around
        elif not others and self._narrow is not None:
            folder.chmod(self._narrow)
            self._narrow = None

    def wake(self) -> None:
        """Have `serve_until` return; safe in a signal handler and from other threads."""
        with contextlib.suppress(OSError):  # closed already: there is nobody to wake
            os.eventfd_write(self._waker, 1)

    def serve_until(self, deadline_ns: int) -> None:
        """Serve until somebody calls `wake`, or CLOCK_MONOTONIC reaches the deadline: so the watch loop sleeps.

        What is late is one answer at most: whoever else asks has its turn after the next second, the longest unserved
        first.
        """
        now_s = time.monotonic()
        for descriptor, peer in tuple(self._peers.items()):
            if peer.unsent and now_s - peer.since_s > DEAF_S:
                self._drop(descriptor)
        full = False  # no descriptor is left, or strangers crowd in: asking the listener again would only burn time
        self._strangers = 0
        while (remaining := deadline_ns - time.monotonic_ns()) > 0:
            readers = [self._waker] if full else [self._waker, self._listener.fileno()]
            readers += [descriptor for descriptor, peer in self._peers.items() if not peer.unsent and not peer.waits]
            writers = [descriptor for descriptor, peer in self._peers.items() if peer.unsent]
            asking = [descriptor for descriptor, peer in self._peers.items() if peer.waits]
            readable, writable = _ready(readers, writers, 0.0 if asking else remaining / 1e9)
            if self._waker in readable:
                os.eventfd_read(self._waker)
                return
            turn_ns = min(deadline_ns, time.monotonic_ns() + TURN_NS)
            for descriptor in writable:
                self._send(descriptor)
            for descriptor in (*readable, *asking):
                if time.monotonic_ns() >= turn_ns:
                    break
                if descriptor == self._listener.fileno():
                    full = not self._accept()
                elif descriptor in asking:
                    self._reply(descriptor)
                else:
                    self._receive(descriptor)

    def _accept(self) -> bool:
        """Take in a peer; return False when no more are taken in this turn."""
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            return error.errno not in (errno.EMFILE, errno.ENFILE)  # else: it hung up again already
        pid, uid, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        welcome = self._welcome(uid)
        if welcome and len(self._peers) >= MAX_PEERS:
            self._make_room(uid)
        if not welcome or len(self._peers) >= MAX_PEERS:
            with contextlib.suppress(OSError):
                connection.send(protocol.refusal(0, _TOO_MANY) if welcome else _unwelcome(uid))
            connection.close()
            self._strangers += not welcome
            return self._strangers < MAX_STRANGERS
        connection.setblocking(False)
        if not self._peers:
            self._came()
        self._peers[connection.fileno()] = _Peer(connection, uid, f"uid:{uid} pid:{pid}", since_s=time.monotonic())
        return True

    def _owns(self, uid: int) -> bool:
        return uid in {self._owner, 0}

    def _welcome(self, uid: int) -> bool:
        return self._owns(uid) or self._admits(uid)

    def _make_room(self, uid: int) -> None:
        """Hang up on the peer that has been silent for longest: forgotten connections must not lock a person out.

        For the watcher's owner also on another user's that was not: no role is to keep a rollback from being made.
        """
        silent = {descriptor: peer.since_s for descriptor, peer in self._peers.items() if not peer.waits}
        if not silent or time.monotonic() - min(silent.values()) <= SILENT_S:
            guests = {} if not self._owns(uid) else self._peers
            silent = {descriptor: peer.since_s for descriptor, peer in guests.items() if not self._owns(peer.uid)}
        if silent:
            self._drop(min(silent, key=lambda descriptor: silent[descriptor]))

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
        if peer.waits:
            self._reply(descriptor)
        elif len(peer.received) > protocol.MAX_QUESTION:
            self._drop(descriptor)

    def _reply(self, descriptor: int) -> None:
        """Answer a peer's next question."""
        peer = self._peers.get(descriptor)
        if peer is None or not peer.waits:
            return
        self._peers[descriptor] = self._peers.pop(descriptor)  # the last one to be served next time
        if not self._welcome(peer.uid):  # it was when it came; without roles nothing else would refuse its orders
            with contextlib.suppress(OSError):
                peer.connection.send(_unwelcome(peer.uid))
            self._drop(descriptor)
            return
        line, _, rest = bytes(peer.received).partition(b"\n")
        peer.received[:] = rest
        peer.unsent += self._answer(line, peer.actor)
        peer.since_s = time.monotonic()
        self._send(descriptor)

    def _answer(self, line: bytes, actor: str) -> bytes:
        number = 0
        try:
            number, method, params = protocol.read_question(line)
            answer = protocol.answer(number, self._handle(method, params, actor))
            if len(answer) > protocol.MAX_ANSWER:
                raise RefusedError("the answer is too large to be sent", hint="ask for less, e.g. with a limit")
            return answer
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
        peer.since_s = time.monotonic()

    def _drop(self, descriptor: int) -> None:
        self._peers.pop(descriptor).connection.close()


def _unwelcome(uid: int) -> bytes:
    return protocol.refusal(0, RefusedError(f"uid {uid} may not talk to this watcher"))


def _ready(readers: list[int], writers: list[int], timeout_s: float) -> tuple[list[int], list[int]]:
    """Return the descriptors that can be read, and those that can be written, waiting at most so long."""
    if max([0, *readers, *writers]) < MOST_DESCRIPTORS:
        readable, writable, _ = select.select(readers, writers, [], timeout_s)
        return readable, writable
    poll = select.poll()
    for descriptor in readers:
        poll.register(descriptor, select.POLLIN)
    for descriptor in writers:
        poll.register(descriptor, select.POLLOUT)
    events = poll.poll(1e3 * timeout_s)
    broken = select.POLLERR | select.POLLHUP
    return (
        [found for found, event in events if found in readers and event & (select.POLLIN | broken)],
        [found for found, event in events if found in writers and event & (select.POLLOUT | broken)],
    )
