"""Allocator: how memory is kept by a process that lives for months, mostly sleeps and mostly does small things."""

from __future__ import annotations

import contextlib
import ctypes
import re
from pathlib import Path

# From malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 64 * 1024  # what a refit takes for a moment is larger, what is kept of a window smaller

_DONT_NEED = 4  # MADV_DONTNEED
_COLLAPSE = 25  # MADV_COLLAPSE of <linux/mman.h>, since Linux 6.1
_HUGE = 2 << 20
_FILLED = 0.9  # of a range, or collapsing it would make memory of what is only reserved
_POLICY = "/sys/kernel/mm/transparent_hugepage/enabled"
_FILE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d*\s+/.*")  # code, or what it only reads
_RANGE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0\s*(\[heap\])?")


def keep_little() -> None:
    """Have large blocks given back to the system as soon as they are free, and one arena for all threads.

    Once a minute the reference is made anew and for that takes some megabytes. By default the C library raises its
    threshold when such a block is freed, keeps the next ones, and the holes between them. Where there is no glibc this
    changes nothing.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
            mallopt(parameter, value)


def give_back() -> None:
    """Give back the pages of the heap on which nothing is any more.

    Each refit leaves holes between what is kept, some kilobytes a minute; in hours they are megabytes.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_together() -> int:
    """Move what this process has in memory now to huge pages; return how many there are of it.

    A loop that wakes after a second looks up thousands of small pages, which are in no cache any more. Nothing
    grows: only ranges that are filled are moved. Nothing is done where the host's policy is *never*, or the kernel does
    not know how.
    """
    with contextlib.suppress(OSError, AttributeError):
        if "[never]" in Path(_POLICY).read_text():
            return 0
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        return sum(madvise(start, _HUGE, _COLLAPSE) == 0 for start in _filled(Path("/proc/self/smaps").read_text()))
    return 0


class Code:
    """The pages of machine code and its constants that are mapped from files."""

    def __init__(self) -> None:
        self._maps: list[str] = []
        self._ranges: list[tuple[int, int]] = []

    def let_go(self) -> int:
        """Give back the pages that are mapped now; return how many ranges of files.

        Once a minute: what a start or a refit runs through, of the interpreter, numpy and OpenBLAS, the loop never
        runs. What it does run comes back at the next step, from the page cache, 64 kB at a time. Only what is as it
        stands in the file: where the loader wrote something, it would be lost. To find that out has the kernel walk all
        pages, so it is looked for anew only when other files are mapped: it is the loader alone that writes there.
        """
        with contextlib.suppress(OSError, AttributeError):
            madvise = ctypes.CDLL(None).madvise
            madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if _FILE.fullmatch(line)]
            if maps != self._maps:
                self._maps, self._ranges = maps, _untouched(Path("/proc/self/smaps").read_text())
            return sum(madvise(start, stop - start, _DONT_NEED) == 0 for start, stop in self._ranges)
        return 0


def _untouched(smaps: str) -> list[tuple[int, int]]:
    """Return the ranges of files that may not be written, and of which no page is another than in the file."""
    found: list[tuple[int, int]] = []
    at: tuple[int, int] | None = None
    for line in smaps.splitlines():
        if header := _FILE.fullmatch(line):
            at = int(header[1], 16), int(header[2], 16)
        elif line.startswith("Anonymous:"):
            if at is not None and line.split()[1] == "0":
                found.append(at)
            at = None
    return found


def _filled(smaps: str) -> list[int]:
    """Return the start of each stretch the size of a huge page within the filled ranges of a process's own memory."""
    found: list[int] = []
    first = stop = 0
    for line in smaps.splitlines():
        if header := _RANGE.fullmatch(line):
            first, stop = int(header[1], 16), int(header[2], 16)
        elif line.startswith("Rss:"):
            if stop and int(line.split()[1]) * 1024 >= _FILLED * (stop - first):
                found += range(-(-first // _HUGE) * _HUGE, stop - _HUGE + 1, _HUGE)
            first = stop = 0  # of the next range nothing is known yet
    return found
