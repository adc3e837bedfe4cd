"""What is asked of the C library is taken."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import ctypes
from pathlib import Path
from unveil.engine.allocator import keep_little

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

keep_little()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
before = resident()
blocks = [libc.malloc(4_000_000) for _ in range(8)]
for block in blocks:
    libc.memset(block, 1, 4_000_000)
small = libc.malloc(1000)  # above the large ones, where the heap could not shrink
for block in blocks:
    libc.free(block)
print(resident() - before)
"""


def test_large_blocks_are_given_back_as_soon_as_they_are_free() -> None:
    left = int(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True).stdout)
    assert left < 2_000_000
