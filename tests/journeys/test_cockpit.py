"""The journey of a person in a real terminal: a fault on this kernel is seen, fixed, verified and undone by keys."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.ansible,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings: needs root"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here"),
]


class Terminal:
    """A terminal of its own, in a tmux server of its own."""

    def __init__(self, folder: Path, command: list[str], *, columns: int = 110, lines: int = 40) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", str(columns), "-y", str(lines), "-s", "unveil", *command],
            check=True, env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        )  # fmt: skip
        self.seen: list[str] = []

    def text(self) -> str:
        told = subprocess.run(
            [*self._tmux, "capture-pane", "-p", "-t", "unveil"], check=True, capture_output=True, text=True
        )
        return told.stdout

    def press(self, *keys: str) -> None:
        for key in keys:
            subprocess.run([*self._tmux, "send-keys", "-t", "unveil", key], check=True)
            time.sleep(0.1)

    def shows(self, wanted: str) -> bool:
        """Return whether a text stands on the screen, in a line or broken over several."""
        text = self.text()
        return bool(re.search(wanted, text) or re.search(wanted, " ".join(text.split())))

    def confirm(self, asked: str) -> None:
        """Answer a question with y; a dialog takes no key in its first moment, however long that lasts here."""
        self.look(asked)
        end = time.monotonic() + 60
        while self.shows(asked):
            assert time.monotonic() < end, self.text()
            time.sleep(0.5)
            if self.shows(asked):
                self.press("y")
                time.sleep(0.5)

    def look(self, wanted: str, *, seconds: float = 60) -> str:
        """Wait until a text stands on the screen; return the screen."""
        end = time.monotonic() + seconds
        while True:
            text = self.text()
            if self.shows(wanted):
                return text
            assert time.monotonic() < end, f"{wanted!r} is not on the screen:\n{text}"
            time.sleep(0.2)

    def resize(self, columns: int, lines: int) -> None:
        subprocess.run([*self._tmux, "resize-window", "-t", "unveil", "-x", str(columns), "-y", str(lines)], check=True)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        opened.append(Terminal(tmp_path, [sys.executable, "-m", "unveil", *words]))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_seen_planned_applied_verified_and_undone_by_keys_alone(
    host: Callable[..., Any], patient: Callable[..., Any], thp_madvise: bytes, terminal: Callable[..., Terminal]
) -> None:
    watcher = host("--profile", "manual")
    screen = terminal("tui", "--state-dir", str(watcher.folder))
    screen.look("profile manual")
    workload = patient("--megabytes", "320", "--seconds", "280", "--step", "0.05", "--activations", "8")
    screen.look(r"firing +\S+ +reduced_huge_page_cov", seconds=90)

    screen.press("Tab", "Enter")
    screen.look("uncovered +memory.cgroup_huge_share.last < 0.1")
    screen.press("a")
    screen.look("acknowledged")
    screen.press("r")
    screen.look(r"enable_huge_pages: planned")
    screen.look(r"transparent_hugepage/enabled: always \[madvise\] never → always")
    assert THP.read_bytes() == thp_madvise, "a plan changes nothing"

    screen.press("a")
    screen.look("Approve this plan")
    screen.press("Enter", "a", "a")
    screen.look("does not confirm")
    assert THP.read_bytes() == thp_madvise
    screen.press("y")
    screen.look("a applies it")
    screen.press("a")
    screen.confirm("Change this host's settings now")
    screen.look("applying|verifying, an answer in|enable_huge_pages: kept")
    screen.look("verifying, an answer in|enable_huge_pages: kept")
    screen.look("enable_huge_pages: kept", seconds=90)
    assert "[always]" in THP.read_text()
    assert workload.anon_huge_kb() > 300_000

    screen.resize(20, 5)
    screen.look("needs 60x15")
    screen.resize(110, 40)
    screen.look("enable_huge_pages: kept")
    screen.press("u")
    screen.look("Put back what this run changed")
    screen.look(r"transparent_hugepage/enabled: always|enabled: .*→.*madvise")
    screen.confirm("Put back what this run changed")
    screen.look("enable_huge_pages: rolled_back")
    assert THP.read_bytes() == thp_madvise
    screen.press("Escape")
    screen.look("clauses in window")
    screen.press("Escape")
    screen.look("windows:|PAUSED")
    time.sleep(0.5)  # an Escape right before a letter is another key
    screen.press("q")
    end = time.monotonic() + 30
    while subprocess.run([*screen._tmux, "has-session"], check=False, capture_output=True).returncode == 0:
        assert time.monotonic() < end, screen.text()
        time.sleep(0.2)
