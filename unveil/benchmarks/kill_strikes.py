"""What is killed while a playbook runs, and the exact moment: for the kill matrix.

A module is caught half-way by a permission event of fanotify: the kernel holds its open of the sixth file until we have
killed it. Source: fanotify(7), FAN_OPEN_PERM.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import struct
import threading
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.kill_watcher import SETTINGS, fill, place
from unveil.execution import processes
from unveil.execution.ansible_at_hand import READY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

CANCEL_S = 3.5
_EVENT = struct.Struct("=IBBHQii")  # struct fanotify_event_metadata
_ANSWER = struct.Struct("=iI")
_OPEN_PERM, _CONTENT, _ALLOW = 0x10000, 0x04, 1
HALF = SETTINGS // 2


class Struck(StrEnum):
    """Who is struck while the playbook runs."""

    WATCHER = "watcher, in the playbook"
    CHILD = "the run's child"
    PLAYBOOK = "ansible-playbook"
    MODULE = "module, half-way"
    WATCHER_AND_CHILD = "watcher and child"
    CANCEL = "canceled by a person"
    FULL_DISK = "full disk, in the playbook"


def strike(what: Struck, folder: Path, root: Path, watcher: subprocess.Popen[bytes]) -> list[str]:
    """Strike at the right moment; return what went wrong with that."""
    if what is Struck.MODULE:
        return _kill_module(folder, root)
    if not _until(lambda: place(root, SETTINGS - 1).read_text() == "2\n"):
        return ["the playbook never came to the settings"]
    mark = json.loads(_request(folder).read_text())["mark"]
    match what:
        case Struck.WATCHER:
            watcher.kill()
        case Struck.CHILD:
            os.kill(_child(folder), signal.SIGKILL)
        case Struck.WATCHER_AND_CHILD:
            watcher.kill()
            os.kill(_child(folder), signal.SIGKILL)
        case Struck.PLAYBOOK:
            playing = list(_named(mark, READY.name.encode()))
            for pid in playing:
                os.kill(pid, signal.SIGKILL)
            return [] if playing else ["there is no ansible-playbook"]
        case Struck.FULL_DISK:
            fill(folder / "state")
        case Struck.CANCEL:
            os.kill(_child(folder), signal.SIGTERM)
            began = time.monotonic()
            gone = _until(lambda: not processes.marked(mark), within_s=10.0)
            took = time.monotonic() - began
            return [] if gone and took <= CANCEL_S else [f"processes lived for {took:.1f} s after a cancel"]
    return []


def _until(holds: object, *, within_s: float = 30.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        with suppress(OSError):
            if holds():  # type: ignore[operator]  # a condition without arguments
                return True
        time.sleep(0.01)
    return False


def _request(folder: Path) -> Path:
    return next((folder / "state/runs").glob("r*/request.json"))


def _child(folder: Path) -> int:
    _until(lambda: next((folder / "state/runs").glob("r*/child.json"), None) is not None)
    return int(json.loads(next((folder / "state/runs").glob("r*/child.json")).read_text())["pid"])


def _named(mark: str, name: bytes) -> Iterator[int]:
    for pid in processes.marked(mark):
        with suppress(OSError):
            if name in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield pid


def _kill_module(folder: Path, root: Path) -> list[str]:
    """Kill the module when it opens the sixth file to write it: five are written, five are not."""
    library = ctypes.CDLL(None, use_errno=True)
    library.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
    watch = library.fanotify_init(_CONTENT | 1, os.O_RDONLY | os.O_CLOEXEC)
    if watch < 0 or library.fanotify_mark(watch, 1, _OPEN_PERM, -100, os.fsencode(place(root, HALF))):
        return ["this kernel has no permission events: nobody can be caught half-way"]
    caught = threading.Event()
    ends = time.monotonic() + 40
    try:
        while time.monotonic() < ends and not caught.is_set():
            if not select.select([watch], [], [], 0.2)[0]:
                continue
            _length, _version, _reserved, _header, _mask, opened, pid = _EVENT.unpack(os.read(watch, _EVENT.size))
            if _is_module(pid, folder) and _half_done(root):
                os.kill(pid, signal.SIGKILL)
                caught.set()
            os.write(watch, _ANSWER.pack(opened, _ALLOW))
            os.close(opened)
    finally:
        os.close(watch)
    return [] if caught.is_set() else ["the module was not caught half-way"]


def _is_module(pid: int, folder: Path) -> bool:
    with suppress(OSError):
        return str(folder / "state/runs").encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def _half_done(root: Path) -> bool:
    """Tell whether those before are written; the sixth itself is being opened, and must not be looked at from here."""
    return all(place(root, number).read_text() == "2\n" for number in range(HALF))
