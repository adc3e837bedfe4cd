"""Allocator: how the C library keeps the memory of a process that lives for months and mostly does small things."""

from __future__ import annotations

import contextlib
import ctypes

# From malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 256 * 1024


def keep_little() -> None:
    """Have large blocks given back to the system as soon as they are free, and one arena for all threads.

    Once a minute the reference is made anew and for that takes some megabytes. By default the C library raises its
    threshold when such a block is freed, keeps the next ones, and the holes between them: measured, 3 MB. Where there
    is no glibc this changes nothing.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
            mallopt(parameter, value)
