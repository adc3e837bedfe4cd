"""What this process may see and change on a host, tried without changing anything."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.facts.home import sees_all_processes

if TYPE_CHECKING:
    from unveil.host.root import HostRoot
    from unveil.records.fact import FactTable

# The same on every architecture: calls since 5.x share their numbers (include/uapi/asm-generic/unistd.h).
_PIDFD_OPEN, _PROCESS_MADVISE, _MADV_COLLAPSE = 434, 440, 25
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Something that unveil can or cannot do here.

    Attributes:
        there: None where it could not be found out.
        detail: what was found.
        hint: what to do about it; empty when it is there.
    """

    name: str
    there: bool | None
    detail: str
    hint: str = ""


def host_capabilities(root: HostRoot, table: FactTable) -> tuple[Capability, ...]:
    """Return what this process may see and change below a root."""
    return (
        _privilege(),
        _writable(root, table),
        _processes(root),
        _namespace(root),
        _collapse(root),
        _cgroups(root),
        _nvml(root),
    )


def _privilege() -> Capability:
    user = os.geteuid()
    return Capability(
        name="root",
        there=user == 0,
        detail=f"running as user {user}",
        hint="" if user == 0 else "watching works; what needs root is listed as absent, and nothing can be changed",
    )


def _writable(root: HostRoot, table: FactTable) -> Capability:
    """Tell whether host-wide settings can be written: root in a container has them read-only."""
    paths = {
        fact.setting: path
        for fact in table.facts
        if fact.setting is not None and (path := _path(fact.setting)) is not None and fact.value is not None
    }
    if not paths:
        return Capability(name="settings", there=None, detail="no setting was read", hint="see the absent facts")
    refused = sorted(address for address, path in paths.items() if not _may_write(root, path))
    return Capability(
        name="settings",
        there=not refused,
        detail=f"{len(paths) - len(refused)} of {len(paths)} settings can be written",
        hint=f"not {', '.join(refused[:3])}{' and more' if len(refused) > 3 else ''}" if refused else "",
    )


def _path(address: str) -> str | None:
    kind, _, rest = address.partition(":")
    if kind == "sysctl":
        return f"proc/sys/{rest.replace('.', '/')}"
    if kind == "file" and rest.startswith("/sys/kernel/mm/"):
        return rest.lstrip("/")
    return None


def _may_write(root: HostRoot, path: str) -> bool:
    try:
        return os.access(root.join(path), os.W_OK, effective_ids=True)
    except OSError:
        return False


def _processes(root: HostRoot) -> Capability:
    hidden = _hidepid(root)
    seen = sees_all_processes(root)
    return Capability(
        name="processes",
        there=seen,
        detail="all processes of the host are seen" if seen else f"processes are hidden ({hidden or 'no kthreadd'})",
        hint="" if seen else "run with the host's PID namespace, or remount /proc without hidepid for unveil's group",
    )


def _hidepid(root: HostRoot) -> str:
    try:
        text = root.read("proc/self/mountinfo").decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    found = re.search(r" /proc .* - proc .*\b(hidepid=\w+)", text)
    return found[1] if found else ""


def _namespace(root: HostRoot) -> Capability:
    try:
        name = root.readlink("proc/self/ns/pid")
    except OSError:
        return Capability(name="pid namespace", there=None, detail="the kernel does not tell")
    first = name == _FIRST_PID_NAMESPACE
    return Capability(
        name="pid namespace",
        there=first,
        detail="the host's own" if first else f"{name}: process numbers differ from the driver's",
        hint="" if first else "GPU processes cannot be traced to their containers: start with the host's PID namespace",
    )


def _collapse(root: HostRoot) -> Capability:
    """Ask the kernel to collapse no memory at all of this very process: it answers whether it would."""
    name = "collapse"
    if not root.live:
        return Capability(name=name, there=None, detail="another root: not tried")
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except OSError as error:
        return Capability(name=name, there=None, detail=f"no C library: {error}")
    descriptor = libc.syscall(_PIDFD_OPEN, os.getpid(), 0)
    if descriptor < 0:
        return Capability(name=name, there=False, detail="no pidfd_open", hint="repairing processes takes Linux 6.1")
    try:
        answer = libc.syscall(_PROCESS_MADVISE, descriptor, None, ctypes.c_size_t(0), _MADV_COLLAPSE, 0)
        number = ctypes.get_errno() if answer < 0 else 0
    finally:
        os.close(descriptor)
    if number == 0 and not _has_rights(root):  # this process may treat itself so; others take more
        number = errno.EPERM
    hints = {
        errno.ENOSYS: "running processes get huge pages only on Linux 6.1 and later",
        errno.EINVAL: "running processes get huge pages only on Linux 6.1 and later",
        errno.EPERM: "collapsing memory of other users' processes takes CAP_SYS_NICE and CAP_SYS_PTRACE",
    }
    return Capability(
        name=name,
        there=number == 0,
        detail="running processes can be given huge pages" if number == 0 else os.strerror(number),
        hint=hints.get(number, "") if number else "",
    )


def _has_rights(root: HostRoot) -> bool:
    """Tell whether this process has CAP_SYS_PTRACE (19) and CAP_SYS_NICE (23), process_madvise(2)'s price."""
    try:
        status = root.read("proc/self/status").decode("ascii", "replace")
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    wanted = 1 << 19 | 1 << 23
    return found is not None and int(found[1], 16) & wanted == wanted


def _cgroups(root: HostRoot) -> Capability:
    mounts = find_cgroup_mounts(root)
    lacking = [name for name in ("cpu", "memory", "cpuset") if name not in mounts.by_controller]
    return Capability(
        name="cgroups",
        there=not lacking,
        detail=f"{mounts.layout}: {', '.join(sorted(mounts.by_controller)) or 'no controller'}",
        hint=f"no {', '.join(lacking)} controller is mounted" if lacking else "",
    )


def _nvml(root: HostRoot) -> Capability:
    try:
        version = root.head("proc/driver/nvidia/version", 200).decode("ascii", "replace").split("\n")[0]
    except OSError:
        return Capability(name="nvidia driver", there=False, detail="not loaded", hint="normal on a host without GPUs")
    return Capability(name="nvidia driver", there=True, detail=version)
