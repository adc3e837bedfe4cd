"""The server reads a prompt whole, however it comes in pieces."""

from __future__ import annotations

import socket
import threading
import time

from unveil.lab.workloads.serving import PROMPT, _read


def test_what_comes_in_pieces_is_read_whole_and_what_ends_early_is_nothing() -> None:
    here, there = socket.socketpair()

    def send() -> None:
        for _ in range(4):
            there.sendall(b"x" * (PROMPT // 4))
            time.sleep(0.01)
        there.sendall(b"half of one")
        there.close()

    sender = threading.Thread(target=send)
    sender.start()
    with here:
        assert _read(here, PROMPT) == b"x" * PROMPT
        assert _read(here, PROMPT) == b""
    sender.join()
