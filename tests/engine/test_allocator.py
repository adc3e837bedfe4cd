"""What is asked of the C library is taken."""

from __future__ import annotations

import subprocess
import sys

from unveil.engine.allocator import _filled, _untouched

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


SMAPS = """\
55b01471c000-55b014f21000 rw-p 00000000 00:00 0                          [heap]
Size:               8212 kB
Rss:                8128 kB
7fbfdc78b000-7fbfdcd8b000 rw-p 00000000 00:00 0
Size:               6144 kB
Rss:                 604 kB
7fbfdcfff000-7fbfdd1ff000 rw-p 00000000 00:00 0
Size:               2048 kB
Rss:                2016 kB
7fbfde000000-7fbfde400000 rw-p 00000000 fe:00 77                         /usr/lib/libpython3.11.so
Size:               4096 kB
Rss:                4096 kB
7fbfe4a00000-7fbfe4c00000 rw-p 00000000 00:00 0
Size:               2048 kB
Rss:                2048 kB
7ffc00000000-7ffc00400000 rw-p 00000000 00:00 0                          [stack]
Size:               4096 kB
Rss:                4096 kB
"""


def test_only_filled_ranges_of_our_own_hold_what_is_moved() -> None:
    assert [hex(start) for start in _filled(SMAPS)] == [
        "0x55b014800000", "0x55b014a00000", "0x55b014c00000", "0x7fbfe4a00000",
    ]  # fmt: skip


def test_what_is_moved_is_the_same_afterwards_and_takes_no_more_memory() -> None:
    program = (
        "from pathlib import Path\n"
        "from unveil.engine.allocator import keep_together\n"
        "kept = [str(number) * 3 for number in range(300_000)]\n"
        "pages = lambda: int(Path('/proc/self/statm').read_text().split()[1])\n"
        "before = pages()\n"
        "moved = keep_together()\n"
        "assert all(text == str(number) * 3 for number, text in enumerate(kept))\n"
        "print(moved, (pages() - before) * 4096)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.split()
    assert int(said[0]) >= 0
    assert int(said[1]) < 3_000_000


FILES = """\
7f0000001000-7f0000002000 r--p 00000000 fe:00 77                         /usr/lib/libpython3.11.so
Size:                  4 kB
Anonymous:             0 kB
7f0000002000-7f0000004000 r-xp 00001000 fe:00 77                         /usr/lib/libpython3.11.so
Anonymous:             0 kB
7f0000004000-7f0000005000 r--p 00003000 fe:00 77                         /usr/lib/libpython3.11.so
Anonymous:             4 kB
7f0000005000-7f0000006000 rw-p 00004000 fe:00 77                         /usr/lib/libpython3.11.so
Anonymous:             0 kB
7f0000006000-7f0000007000 r--p 00000000 00:00 0                          [vvar]
Anonymous:             0 kB
"""


def test_holes_in_the_heap_are_given_back() -> None:
    program = (
        "import ctypes\n"
        "from pathlib import Path\n"
        "from unveil.engine.allocator import give_back\n"
        "resident = lambda: int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]\n"
        "libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"
        "blocks = [libc.malloc(20_000) for _ in range(1000)]\n"
        "[libc.memset(block, 1, 20_000) for block in blocks]\n"
        "[libc.free(block) for number, block in enumerate(blocks) if number % 10]\n"
        "before = resident()\n"
        "give_back()\n"
        "print(before - resident())\n"
    )
    given = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    assert given > 10_000_000


def test_only_what_stands_in_the_file_as_well_is_let_go_of() -> None:
    assert _untouched(FILES) == [(0x7F0000001000, 0x7F0000002000), (0x7F0000002000, 0x7F0000004000)]


def test_code_that_is_let_go_of_is_no_longer_resident_and_still_runs() -> None:
    program = (
        "import json, re, sys\n"
        "from pathlib import Path\n"
        "from unveil.engine.allocator import Code\n"
        "def code():\n"
        "    parts = re.split(r'\\n(?=[0-9a-f]+-[0-9a-f]+ )', Path('/proc/self/smaps').read_text())\n"
        "    parts = [part for part in parts if ' r-xp ' in part.splitlines()[0]]\n"
        "    return sum(int(re.search(r'Rss: +(\\d+)', part)[1]) for part in parts)\n"
        "import numpy\n"
        "before = code()\n"
        "mapped = Code()\n"
        "libraries = mapped.let_go()\n"
        "after = code()\n"
        "assert numpy.linalg.eigvalsh(numpy.eye(3)).sum() == 3\n"
        "assert json.loads('[1]') == [1]\n"
        "assert mapped.let_go() == libraries, 'the same, without looking for them anew'\n"
        "print(libraries, before, after)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.split()
    libraries, before, after = map(int, said)
    assert libraries > 3
    assert after < before
