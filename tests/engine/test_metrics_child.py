"""The process that serves the metrics, by itself: what it says, and when it ends."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest

from unveil.engine.metrics_child import MOST_CLIENTS, Told

if TYPE_CHECKING:
    from pathlib import Path

LINE = json.dumps([["unveil_ticks", "counter", "Ticks.", [], [[[], 3.0]]]]).encode() + b"\n"


def child(file: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "unveil.engine.metrics_child", "--file", str(file)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_nothing_is_told_before_the_first_word() -> None:
    told, registry = Told(), CollectorRegistry()
    registry.register(told)
    assert generate_latest(registry) == b""
    told.tell(LINE)
    assert b"unveil_ticks_total 3.0" in generate_latest(registry)


def test_it_ends_and_takes_its_file_away_when_the_watcher_is_gone_even_in_the_middle_of_a_word(tmp_path: Path) -> None:
    file = tmp_path / "unveil.prom"
    process = child(file)
    _, said = process.communicate(LINE + LINE[:20], timeout=30)
    assert (process.returncode, said) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    process = child(tmp_path / "away" / "unveil.prom")
    _, said = process.communicate(LINE * 3, timeout=30)
    assert process.returncode == 0
    assert said.count(b"No such file or directory") == 1


def test_clients_that_never_come_to_an_end_do_not_keep_a_scraper_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = [sys.executable, "-m", "unveil.engine.metrics_child", "--fd", str(listener.fileno())]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
        assert process.stdin is not None
        process.stdin.write(LINE)
        process.stdin.flush()
        address = listener.getsockname()
        slow = [socket.create_connection(address) for _ in range(2 * MOST_CLIENTS)]
        try:
            for each in slow:
                each.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            with socket.create_connection(address, timeout=20) as scraper:
                scraper.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                assert scraper.recv(64).startswith(b"HTTP/1.0 200")
        finally:
            for each in slow:
                each.close()
            process.communicate(timeout=20)
