"""Faults in settings of the whole host: huge pages, write-back, read-ahead, and who drops caches or compacts memory."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.lab.changes import ImpossibleError
from unveil.lab.in_cgroups import disk_folder
from unveil.lab.neighbours import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
VM = Path("/proc/sys/vm")
DIRTY_BYTES = 2 << 20
READ_AHEAD_KB = 4
DROP = "import time\nwhile True: open('/proc/sys/vm/drop_caches', 'w').write('1'); time.sleep(1)"
COMPACT = "import time\nwhile True: open('/proc/sys/vm/compact_memory', 'w').write('1'); time.sleep(0.2)"


@contextmanager
def huge_pages_off(place: Place, _uses: Uses) -> Iterator[None]:
    """Turn transparent huge pages off."""
    with place.changes.scope() as changes:
        changes.write(HUGE_PAGES, "never")
        yield


@contextmanager
def small_dirty_limit(place: Place, _uses: Uses, *, folder: Path = VM) -> Iterator[None]:
    """Let little be dirty. The kernel sets one of bytes and ratio to zero when the other is written."""
    with place.changes.scope() as changes:
        for name, limit in (("dirty_background", DIRTY_BYTES // 2), ("dirty", DIRTY_BYTES)):
            held = {part: (folder / f"{name}_{part}").read_text().strip() for part in ("ratio", "bytes")}
            part = "ratio" if held["bytes"] == "0" else "bytes"
            path = folder / f"{name}_{part}"
            undo = {"write": [str(path), held[part]]}
            changes.write_and(folder / f"{name}_bytes", str(limit), undo=undo, shared=True)
        yield


@contextmanager
def small_read_ahead(place: Place, _uses: Uses) -> Iterator[None]:
    """Read ahead next to nothing from the disk that the workload reads."""
    with place.changes.scope() as changes:
        changes.write(disk_folder(place.scratch) / "queue" / "read_ahead_kb", str(READ_AHEAD_KB))
        yield


@contextmanager
def caches_dropped(place: Place, _uses: Uses) -> Iterator[None]:
    """Have somebody drop the page cache each second."""
    with running(place, "-c", DROP):
        yield


@contextmanager
def memory_compacted(place: Place, _uses: Uses) -> Iterator[None]:
    """Have somebody compact all memory, over and over."""
    if not (VM / "compact_memory").exists():
        raise ImpossibleError("this kernel compacts no memory")
    with running(place, "-c", COMPACT):
        yield
