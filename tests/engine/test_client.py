"""The other end of the control socket: absent, deaf, dying and foreign watchers are each one clear error."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from unveil.engine import protocol
from unveil.engine.client import Client
from unveil.errors import RefusedError, UnveilError, WatcherAbsentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Callable[[socket.socket], None]], Path]]:
    """Serve connections one after the other with a function, in a thread."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    threads: list[threading.Thread] = []

    def begin(answer: Callable[[socket.socket], None]) -> Path:
        def loop() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        threads.append(threading.Thread(target=loop))
        threads[-1].start()
        return tmp_path / "s"

    yield begin
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for thread in threads:
        thread.join()


def test_nobody_there_is_said_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(WatcherAbsentError, match="no watcher listens") as caught:
        Client(tmp_path / "s").call("ping")
    assert "unveil watch" in (caught.value.hint or "")


def test_one_that_hangs_up_is_absent_and_the_next_question_connects_anew(
    serve: Callable[[Callable[[socket.socket], None]], Path],
) -> None:
    served: list[int] = []

    def answer(connection: socket.socket) -> None:
        served.append(1)
        connection.recv(1000)
        if len(served) > 1:
            connection.sendall(b'{"id": 1, "result"')
            connection.sendall(b': "pong"}\n')
            connection.recv(1000)

    client = Client(serve(answer))
    with pytest.raises(WatcherAbsentError, match="hung up"):
        client.call("ping")
    assert client.call("ping") == "pong"
    client.close()
    client.close()


def test_one_that_says_nothing_is_given_up(serve: Callable[[Callable[[socket.socket], None]], Path]) -> None:
    def listen_only(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    client = Client(serve(listen_only), timeout_s=0.2)
    with pytest.raises(WatcherAbsentError, match="does not answer"):
        client.call("ping")


def test_one_that_talks_nonsense_is_said_to(serve: Callable[[Callable[[socket.socket], None]], Path]) -> None:
    def babble(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")
        connection.recv(1000)

    client = Client(serve(babble))
    with pytest.raises(UnveilError, match="not an answer"):
        client.call("ping")
    client.close()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
def test_a_socket_of_someone_else_is_refused_not_absent(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    (tmp_path / "s").chmod(0o600)
    folder = tmp_path
    while folder != folder.parent:
        folder.chmod(folder.stat().st_mode | 0o011)
        folder = folder.parent
    pid = os.fork()
    if pid == 0:  # a process that has just become nobody
        os.setuid(65534)
        try:
            Client(tmp_path / "s").call("ping")
        except RefusedError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    listener.close()


def test_who_is_refused_before_he_asks_hears_why(serve: Callable[..., Path]) -> None:
    client = Client(serve(lambda connection: connection.sendall(protocol.refusal(0, RefusedError("too many")))))
    client._connect()
    time.sleep(0.2)  # it has hung up by now
    with pytest.raises(RefusedError, match="too many"):
        client.call("ping")
    client.close()
