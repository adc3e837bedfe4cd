#!/usr/bin/python
# ruff: noqa: E402, PTH110, PTH112, PTH118, PTH123 -- documentation comes first; plain paths: it reads in bulk
"""Move the memory of running processes to one NUMA node, without stopping them (migrate_pages)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: unveil_migrate_memory
short_description: Move a cgroup's memory to its home node
description:
  - Moves the pages of every process of a cgroup, and of those below it, from all other nodes to one, with
    C(migrate_pages(2)). The processes go on running; where later memory is taken from is not changed.
  - Pages that the kernel cannot move (locked, shared with others, no room) stay, and are counted.
  - Needs CAP_SYS_NICE. The node must be among those that the cgroup may use.
options:
  cgroup:
    description: Path of the cgroup below the memory controller's hierarchy. Its descendants are included.
    type: str
    required: true
  node:
    description: The node to move to.
    type: int
    required: true
  tolerance:
    description: Share of remote pages that is left alone.
    type: float
    default: 0.02
  max_seconds:
    description: No further process is begun after this time. One process is one call, which is not cut short.
    type: float
    default: 30
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
- name: Bring the pod's memory to the node of its GPU
  unveil_migrate_memory:
    cgroup: /kubepods/pod1
    node: 1
"""

RETURN = r"""
pages_before: {description: Anonymous pages by node before., type: dict, returned: always}
pages_after: {description: Anonymous pages by node after; in check mode as before., type: dict, returned: always}
remote_pages: {description: Pages that are not on the node at the end., type: int, returned: always}
not_moved: {description: Pages that the kernel said it could not move., type: int, returned: always}
processes: {description: Processes that were moved., type: int, returned: always}
out_of_time: {description: Whether the time was up before all were begun., type: bool, returned: always}
"""

import ctypes
import errno
import os
import platform
import re
import time

from ansible.module_utils.basic import AnsibleModule

MIGRATE_PAGES = {"x86_64": 256, "aarch64": 238, "riscv64": 238, "ppc64le": 258, "s390x": 287}
NODES = re.compile(r" N(\d+)=(\d+)")
MAX_NODE = 1024  # MAX_NUMNODES of no kernel is larger
WORD = ctypes.sizeof(ctypes.c_ulong) * 8


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
                continue
    return sorted(found - {0})


def parse_numa_maps(text):
    """Return anonymous pages by node, in pages of the base size, huge ones counted as what they hold."""
    pages = {}
    base = os.sysconf("SC_PAGE_SIZE") // 1024
    for line in text.splitlines():
        if " anon=" not in line:
            continue
        size = re.search(r" kernelpagesize_kB=(\d+)", line)
        weight = int(size.group(1)) // base if size else 1
        for node, count in NODES.findall(line):
            pages[int(node)] = pages.get(int(node), 0) + int(count) * max(1, weight)
    return pages


def pages_of(root, pid):
    """Return anonymous pages of a process by node, nothing when it has ended."""
    try:
        with open(os.path.join(root, "proc", str(pid), "numa_maps"), encoding="utf-8", errors="replace") as file:
            return parse_numa_maps(file.read())
    except OSError:
        return {}


def total(counts):
    """Return the sum of several counts by node."""
    summed = {}
    for pages in counts:
        for node, count in pages.items():
            summed[node] = summed.get(node, 0) + count
    return summed


def share_remote(pages, node):
    """Return the share of pages that are not on a node."""
    everything = sum(pages.values())
    return (everything - pages.get(node, 0)) / everything if everything else 0.0


def nodemask(nodes):
    """Return a mask of nodes as the kernel takes it."""
    words = (ctypes.c_ulong * (MAX_NODE // WORD))()
    for node in nodes:
        words[node // WORD] |= 1 << (node % WORD)
    return words


def migrate(pid, sources, node):
    """Move a process's pages and return how many the kernel could not move.

    Raises:
        OSError: the kernel's reason.
    """
    library = ctypes.CDLL(None, use_errno=True)
    left = library.syscall(
        ctypes.c_long(MIGRATE_PAGES[platform.machine()]),
        ctypes.c_long(pid),
        ctypes.c_ulong(MAX_NODE + 1),  # the kernel takes one off
        ctypes.byref(nodemask(sources)),
        ctypes.byref(nodemask([node])),
    )
    if left < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return left


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cgroup": {"type": "str", "required": True},
            "node": {"type": "int", "required": True},
            "tolerance": {"type": "float", "default": 0.02},
            "max_seconds": {"type": "float", "default": 30},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root, node = os.path.realpath(module.params["root"]), module.params["node"]
    directory = memory_directory(root, module.params["cgroup"])
    if directory is None:
        module.fail_json(msg="there is no cgroup %s" % ascii(module.params["cgroup"][:200]))
    if not 0 <= node < MAX_NODE or not os.path.isdir(os.path.join(root, "sys/devices/system/node", "node%d" % node)):
        module.fail_json(msg="this host has no node %d" % node)
    if platform.machine() not in MIGRATE_PAGES:
        module.fail_json(msg="migrate_pages has no known number on %s" % platform.machine())
    counts = {pid: pages_of(root, pid) for pid in pids_of(directory)}
    before = total(counts.values())
    changed = share_remote(before, node) > module.params["tolerance"]
    told = {"not_moved": 0, "processes": 0, "out_of_time": False}
    after = before
    if changed and not module.check_mode:
        until = time.monotonic() + module.params["max_seconds"]
        for pid, pages in counts.items():
            sources = [each for each, count in pages.items() if each != node and count]
            if not sources:
                continue
            if time.monotonic() >= until:
                told["out_of_time"] = True
                break
            try:
                told["not_moved"] += migrate(pid, sources, node)
                told["processes"] += 1
            except OSError as error:
                if error.errno == errno.ESRCH:
                    continue
                module.fail_json(
                    msg="process %d cannot be moved to node %d: %s (it needs CAP_SYS_NICE and a node that is allowed)"
                    % (pid, node, error.strerror),
                    **told,
                )
        after = total(pages_of(root, pid) for pid in pids_of(directory))
        changed = share_remote(after, node) < share_remote(before, node)
    wanted = {node: sum(before.values())} if module.check_mode and changed else after
    header = "anonymous pages of %s by node" % ascii(module.params["cgroup"])
    module.exit_json(
        changed=changed,
        pages_before={str(each): count for each, count in sorted(before.items())},
        pages_after={str(each): count for each, count in sorted(after.items())},
        remote_pages=sum(count for each, count in after.items() if each != node),
        diff={
            "before_header": header,
            "after_header": header,
            "before": "%s\n" % dict(sorted(before.items())),
            "after": "%s\n" % dict(sorted(wanted.items())),
        },
        **told,
    )


if __name__ == "__main__":
    main()
