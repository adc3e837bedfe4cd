"""A crowd at the control socket keeps neither the loop busy nor the watcher's owner out."""

from __future__ import annotations

import contextlib
import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.control import MAX_PEERS, ControlServer

if TYPE_CHECKING:
    from pathlib import Path


def handle(method: str, _params: dict[str, Any], _actor: str) -> Any:
    return method


def served(server: ControlServer, client: socket.socket) -> bytes:
    """Serve until the client was told something, or was hung up on."""
    client.setblocking(False)
    for _ in range(100):
        server.serve_until(time.monotonic_ns() + 20_000_000)
        with contextlib.suppress(BlockingIOError):
            return client.recv(65536)
    raise AssertionError("nothing was said")


def _hung_up(stream: socket.socket) -> bool:
    stream.setblocking(False)
    try:
        return stream.recv(1) == b""
    except BlockingIOError:
        return False


def test_users_with_a_role_cannot_keep_the_owner_out_by_taking_every_place(tmp_path: Path) -> None:
    server = ControlServer(tmp_path / "s", handle, admits=lambda _uid: True)
    with ExitStack() as opened:
        opened.callback(server.close)

        def knock() -> socket.socket:
            stream = opened.enter_context(socket.socket(socket.AF_UNIX))
            stream.connect(str(tmp_path / "s"))
            server.serve_until(time.monotonic_ns() + 50_000_000)
            return stream

        guests = [knock() for _ in range(MAX_PEERS)]
        for peer in server._peers.values():
            peer.uid = 4711  # as the kernel would say of them
        guests[0].sendall(b'{"id": 1, "method": "ping"}\n')
        assert b"ping" in served(server, guests[0])  # the others have been silent for longer
        owner = knock()
        owner.sendall(b'{"id": 1, "method": "rollback"}\n')
        assert b"rollback" in served(server, owner)
        assert [number for number, each in enumerate(guests[1:], 1) if _hung_up(each)] == [1]
        assert not _hung_up(guests[0])


def test_a_crowd_of_strangers_is_turned_away_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlServer, "_welcome", lambda _server, _uid: False)
    monkeypatch.setattr("unveil.engine.control.MAX_STRANGERS", 3)
    server = ControlServer(tmp_path / "s", handle)
    with ExitStack() as opened:
        crowd = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(5)]
        for each in crowd:
            each.connect(str(tmp_path / "s"))
            each.setblocking(False)
        server.serve_until(time.monotonic_ns() + 50_000_000)
        for each in crowd[:3]:
            assert b"may not talk" in each.recv(65536)
        with pytest.raises(BlockingIOError):
            crowd[3].recv(65536)
        assert b"may not talk" in served(server, crowd[4])
    server.close()
