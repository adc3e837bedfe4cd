#!/usr/bin/python
# ruff: noqa: E402, PTH110, PTH118, PTH123 -- documentation comes first; plain paths: it reads in bulk
"""Back the memory of running processes with huge pages, without stopping them (MADV_COLLAPSE)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: unveil_huge_pages
short_description: Collapse a cgroup's anonymous memory into huge pages
description:
  - Allowing huge pages helps new memory only; what a process holds already stays in small pages as long as it runs.
    This asks the kernel to collapse it, with C(process_madvise(MADV_COLLAPSE)), a slice at a time so that no process
    is held up for long.
  - Only what is mostly in use is collapsed, and only while the cgroup stays clear of its memory limit, because
    filling up a huge page takes memory.
  - Slices that the kernel refuses (C(EINVAL), C(EAGAIN), C(EBUSY), C(ENOMEM)) are counted and skipped.
  - Needs Linux 6.1 and CAP_SYS_NICE. On an older kernel nothing is done, and a warning says so.
options:
  cgroup:
    description: Path of the cgroup below the memory controller's hierarchy. Its descendants are included.
    type: str
    required: true
  max_seconds:
    description: Stop after this time, whatever is left; what is done is done.
    type: float
    default: 30
  slice_mib:
    description: Most memory in one call.
    type: int
    default: 16
  pause_ms:
    description: Rest between two calls on one process.
    type: float
    default: 1
  least_used:
    description: Share of a huge page's small pages that must be in use.
    type: float
    default: 0.5
  root:
    description: Where C(proc) and C(sys) are.
    type: path
    default: /
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: unveil maintainers
"""

EXAMPLES = r"""
- name: Collapse the memory that the pod holds already
  unveil_huge_pages:
    cgroup: /kubepods/pod1
"""

RETURN = r"""
candidate_bytes: {description: Memory in small pages that may be collapsed., type: int, returned: always}
collapsed_bytes: {description: What the kernel has collapsed, as the cgroup counts it., type: int, returned: always}
processes: {description: Processes that were looked at., type: int, returned: always}
refused: {description: Slices that were refused, by reason., type: dict, returned: always}
out_of_time: {description: Whether the time was up before the work was done., type: bool, returned: always}
longest_call_s: {description: The longest call; no process was held up for longer., type: float, returned: always}
"""

import ctypes
import errno
import os
import re
import time

from ansible.module_utils.basic import AnsibleModule

MADV_COLLAPSE = 25
PROCESS_MADVISE = 440  # one number on all architectures
MEMORY_RESERVE = 64 << 20  # of the cgroup's limit, never filled up
TOLERATED = (errno.EINVAL, errno.EAGAIN, errno.EBUSY, errno.ENOMEM)
GONE = (errno.ESRCH, errno.ENOENT)
NOT_PRESENT = bytes(range(128))  # top bytes of pagemap entries whose bit 63 (present) is off
ADDRESS_BITS = 64 if ctypes.sizeof(ctypes.c_void_p) == 8 else 32


class IoVector(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def memory_directory(root, cgroup):
    """Return the directory of a cgroup in the memory controller's hierarchy, or None."""
    if not cgroup.startswith("/") or ".." in cgroup.split("/") or not cgroup.isprintable():
        return None
    candidates = []
    for process in ("self",) if root == "/" else ("1", "self"):
        try:
            with open(
                os.path.join(root, "proc", process, "mountinfo"), encoding="utf-8", errors="surrogateescape"
            ) as file:
                for line in file:
                    left, _dash, right = line.rstrip("\n").partition(" - ")
                    kind, options = right.split(" ")[0], right.split(" ")[-1].split(",")
                    place = left.split(" ")[4].replace("\\040", " ")
                    if kind == "cgroup" and "memory" in options:
                        candidates.insert(0, place)
                    elif kind == "cgroup2":
                        candidates.append(place)
        except (OSError, IndexError):
            continue
        break
    candidates += ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"]
    for place in candidates:
        base = os.path.realpath(os.path.join(root, place.lstrip("/")))
        path = os.path.realpath(os.path.join(base, cgroup.lstrip("/")))
        if (path == base or path.startswith(base + "/")) and os.path.exists(os.path.join(path, "cgroup.procs")):
            return path
    return None


def pids_of(directory):
    """Return the processes of a cgroup and of those below it."""
    found = set()
    for folder, _folders, files in os.walk(directory):
        if "cgroup.procs" in files:
            try:
                with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                    found.update(int(line) for line in file)
            except (OSError, ValueError):
                continue  # a cgroup that goes away, or a threaded one, whose processes stand above
    return sorted(found - {0})


def number(path):
    """Return the number in a file, None for max, for none and for no file."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def statistics(directory):
    """Return (anonymous, of that in huge pages) in bytes, of the cgroup and those below it, for v1 and v2."""
    values = {}
    try:
        with open(os.path.join(directory, "memory.stat"), encoding="ascii") as file:
            values = dict(line.split() for line in file)
    except (OSError, ValueError):
        return 0, 0
    if "anon" in values:
        return int(values["anon"]), int(values.get("anon_thp", 0))
    return int(values.get("total_rss", values.get("rss", 0))), int(
        values.get("total_rss_huge", values.get("rss_huge", 0))
    )


def headroom(directory):
    """Return the bytes that the cgroup may still take; no limit is a very large number."""
    for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        most, used = number(os.path.join(directory, limit)), number(os.path.join(directory, usage))
        if most is not None and used is not None:
            return most - used - MEMORY_RESERVE
    return 1 << 62


def regions(root, pid, huge):
    """Yield (start, end) of private anonymous, writable regions, cut to whole huge pages."""
    with open(os.path.join(root, "proc", str(pid), "maps"), encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split(None, 5)
            name = fields[5].strip() if len(fields) > 5 else ""
            anonymous = not name or name == "[heap]" or name.startswith("[anon:")
            if fields[1][:2] != "rw" or fields[1][3] != "p" or fields[4] != "0" or not anonymous:
                continue
            first, last = (int(each, 16) for each in fields[0].split("-"))
            start, end = -(-first // huge) * huge, last // huge * huge
            if start < end:
                yield start, end


def used_pages(pagemap, start, huge, page):
    """Return how many small pages of a huge page's range are present."""
    count = huge // page
    entries = os.pread(pagemap, count * 8, start // page * 8)
    return len(entries[7::8].translate(None, NOT_PRESENT))


def slices(root, pid, options):
    """Yield (start, length, bytes it may fill up) of what is worth collapsing, each at most a slice long."""
    huge, page, most = options["huge"], options["page"], options["slice"]
    pagemap = os.open(os.path.join(root, "proc", str(pid), "pagemap"), os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start, end in regions(root, pid, huge):
            begin = fill = None
            for at in range(start, end, huge):
                used = used_pages(pagemap, at, huge, page)
                worth = used * page >= huge * options["least_used"]
                if begin is not None and (not worth or at - begin >= most):
                    yield begin, at - begin, fill
                    begin = None
                if worth:
                    fill = (0 if begin is None else fill) + huge - used * page
                    begin = at if begin is None else begin
            if begin is not None:
                yield begin, end - begin, fill
    finally:
        os.close(pagemap)


class Collapse:
    """The work on one cgroup, and its count."""

    def __init__(self, root, directory, options):
        self.root, self.directory, self.options = root, directory, options
        self.library = ctypes.CDLL(None, use_errno=True)
        self.until = time.monotonic() + options["max_seconds"]
        self.refused, self.longest, self.processes, self.calls = {}, 0.0, 0, 0
        self.out_of_time, self.not_permitted, self.done = False, False, 0

    def run(self):
        """Go through all processes; those that end meanwhile are no error."""
        for pid in pids_of(self.directory):
            if time.monotonic() >= self.until:
                self.out_of_time = True
                return
            try:
                descriptor = os.pidfd_open(pid)
            except OSError as error:
                self._count(error.errno)
                continue
            try:
                self.processes += 1
                self._process(pid, descriptor)
            except OSError as error:
                self._count(error.errno)
            finally:
                os.close(descriptor)

    def _process(self, pid, descriptor):
        room, seen = headroom(self.directory), 0
        for start, length, fill in slices(self.root, pid, self.options):
            if time.monotonic() >= self.until:
                self.out_of_time = True
                return
            seen += 1
            if seen % 64 == 0:
                room = headroom(self.directory)
            if fill > room:
                self._count("memory limit")
                continue
            room -= fill
            if not self._advise(descriptor, start, length):
                return
            time.sleep(self.options["pause_s"])

    def _advise(self, descriptor, start, length):
        """Collapse one slice; False when the process is not to be gone on with."""
        vector = IoVector(start, length)
        begun = time.monotonic()
        done = self.library.syscall(
            ctypes.c_long(PROCESS_MADVISE),
            ctypes.c_long(descriptor),
            ctypes.byref(vector),
            ctypes.c_size_t(1),
            ctypes.c_long(MADV_COLLAPSE),
            ctypes.c_ulong(0),
        )
        code = ctypes.get_errno()
        self.longest = max(self.longest, time.monotonic() - begun)
        self.calls += 1
        if done >= 0:
            self.done += 1
            return True
        self._count(code)
        self.not_permitted = self.not_permitted or code == errno.EPERM
        return code in TOLERATED

    def _count(self, reason):
        if reason in GONE:
            return
        name = errno.errorcode.get(reason, str(reason)) if isinstance(reason, int) else reason
        self.refused[name] = self.refused.get(name, 0) + 1


def supported():
    """Tell whether the kernel knows MADV_COLLAPSE (Linux 6.1)."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= (6, 1) and hasattr(os, "pidfd_open")


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cgroup": {"type": "str", "required": True},
            "max_seconds": {"type": "float", "default": 30},
            "slice_mib": {"type": "int", "default": 16},
            "pause_ms": {"type": "float", "default": 1},
            "least_used": {"type": "float", "default": 0.5},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root = os.path.realpath(module.params["root"])
    directory = memory_directory(root, module.params["cgroup"])
    if directory is None:
        module.fail_json(msg="there is no cgroup %s" % ascii(module.params["cgroup"][:200]))
    if not 2 <= module.params["slice_mib"] <= 32:
        module.fail_json(msg="slice_mib is 2 to 32: a longer call may hold a process up")
    huge = number(os.path.join(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size"))
    anonymous, before = statistics(directory)
    told = {
        "candidate_bytes": 0,
        "collapsed_bytes": 0,
        "processes": 0,
        "refused": {},
        "out_of_time": False,
        "longest_call_s": 0.0,
    }
    if huge is None or not supported() or ADDRESS_BITS != 64:
        module.exit_json(
            changed=False, warnings=["this kernel cannot collapse memory: only new memory will be huge"], **told
        )
    options = {
        "huge": huge,
        "page": os.sysconf("SC_PAGE_SIZE"),
        "slice": max(huge, module.params["slice_mib"] << 20),
        "pause_s": max(0.0, module.params["pause_ms"]) / 1000,
        "least_used": module.params["least_used"],
        "max_seconds": module.params["max_seconds"],
    }
    told["candidate_bytes"] = max(0, anonymous - before)
    # Less than a tenth, or than one huge page, in small pages is the rest that no alignment avoids.
    worth = told["candidate_bytes"] > max(huge, anonymous // 10)
    after = anonymous if worth else before
    if worth and not module.check_mode:
        work = Collapse(root, directory, options)
        work.run()
        if work.not_permitted and not work.done:
            module.fail_json(msg="collapsing another process's memory needs CAP_SYS_NICE and CAP_SYS_PTRACE", **told)
        after = statistics(directory)[1]
        told.update(
            collapsed_bytes=max(0, after - before),
            processes=work.processes,
            refused=work.refused,
            out_of_time=work.out_of_time,
            longest_call_s=round(work.longest, 4),
        )
        worth = after > before
    header = "memory of %s in huge pages" % ascii(module.params["cgroup"])
    module.exit_json(
        changed=worth,
        diff={"before_header": header, "after_header": header, "before": "%d\n" % before, "after": "%d\n" % after},
        **told,
    )


if __name__ == "__main__":
    main()
