"""What a cgroup is, by its path: which runtime made it, what for, and under what name.

Container engines, libvirt, Slurm and systemd each name their cgroups by a convention, which is all that a host has
without asking their daemons. Tenants choose parts of these names: a name is told, never believed.

Source: the OCI runtime's ``cgroupsPath`` for systemd (``slice:prefix:name``), systemd.unit(5) and
https://systemd.io/CONTROL_GROUP_INTERFACE, https://libvirt.org/cgroups.html, https://slurm.schedmd.com/cgroups.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ID = r"[0-9a-f]{64}"
_PREFIXES = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "libpod": "podman",
}
_SCOPED = re.compile(rf"([a-z][a-z0-9_-]{{0,30}})-({_ID})(?:\.scope)?")
_COLONS = re.compile(rf"[^:]+:([a-z0-9_-]{{1,30}}):({_ID})")
_BARE = re.compile(_ID)
_MACHINE = re.compile(r"machine-(qemu|lxc)-\d+-(.+)\.scope", re.DOTALL)
_NSPAWN = re.compile(r"(?:machine-(.+)\.scope|systemd-nspawn@(.+)\.service)", re.DOTALL)
_LIBVIRT_V1 = re.compile(r"(?:qemu-\d+-)?(.+)\.libvirt-(qemu|lxc)", re.DOTALL)
_PROXMOX = re.compile(r"(\d{1,9})\.scope")
_LXC = re.compile(r"lxc\.payload\.(.+)", re.DOTALL)
_SLURM_JOB = re.compile(r"job_(\d+)")
_POD = re.compile(r"(?:kubepods(?:-[a-z]+)?-)?pod([0-9a-fA-F_-]{8,64})(?:\.slice)?")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")

_RANKS = {"container": 0, "vm": 0, "job": 0, "service": 2, "slice": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupIdentity:
    """What a cgroup is.

    Attributes:
        kind: container, vm, job, service, slice or other.
        runtime: what made it, None where the path does not tell.
        name: the name its maker chose for it: hostile text.
    """

    kind: str
    runtime: str | None
    name: str

    @property
    def is_unit(self) -> bool:
        """Tell whether it is placed and limited as a whole, so that what is inside it is its own affair."""
        return self.kind in ("container", "vm", "job")

    @property
    def rank(self) -> int:
        """Return how early it is watched when there are too many: units, then unnamed ones, services, slices."""
        if self.kind == "other":
            return 1 if self.runtime is None else 2
        return _RANKS[self.kind]


@lru_cache(maxsize=2048)  # names that tenants choose, of any length: enough for those that are there at one time
def identify(key: str) -> CgroupIdentity:
    """Return what the cgroup of a path is; total: any text is at least *other*."""
    parts = key.strip("/").split("/")
    last, above = parts[-1], parts[:-1]
    return (
        _container(last, above)
        or _machine(last, above)
        or _job(last, above)
        or _kubernetes(last, above)
        or _systemd(last)
        or CgroupIdentity(kind="other", runtime=None, name=last)
    )


def unescape_unit(name: str) -> str:
    """Return a unit's name with systemd's escapes undone: ``a\\x2db`` → ``a-b``."""
    raw = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)
    try:  # a byte per escape: letters beyond ASCII take several
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw


def _container(last: str, above: list[str]) -> CgroupIdentity | None:
    parent = above[-1] if above else ""
    if match := _SCOPED.fullmatch(last) or _COLONS.fullmatch(last):
        prefix, identifier = match[1], match[2]
        if prefix.endswith("conmon"):  # the monitor beside the container
            return CgroupIdentity(kind="other", runtime=_PREFIXES.get(prefix.removesuffix("-conmon")), name=last)
        return CgroupIdentity(kind="container", runtime=_PREFIXES.get(prefix), name=identifier[:12])
    if _BARE.fullmatch(last):
        if any(part in ("docker", "buildkit") for part in above):
            runtime: str | None = "docker"
        elif _POD.fullmatch(parent):
            runtime = "kubernetes"  # cgroupfs driver: the engine does not sign
        elif above and above[0] == "ecs":
            runtime = "ecs"
        elif parent.startswith("libpod"):
            runtime = "podman"
        else:
            runtime = None
        return CgroupIdentity(kind="container", runtime=runtime, name=last[:12])
    if match := _LXC.fullmatch(last):
        return CgroupIdentity(kind="container", runtime="lxc", name=match[1])
    if parent == "lxc" and len(above) == 1:
        return CgroupIdentity(kind="container", runtime="lxc", name=last)
    return None


def _machine(last: str, above: list[str]) -> CgroupIdentity | None:
    decoded = unescape_unit(last)
    parent = above[-1] if above else ""
    if match := _MACHINE.fullmatch(decoded):
        vm = match[1] == "qemu"
        return CgroupIdentity(
            kind="vm" if vm else "container", runtime="libvirt" if vm else "libvirt-lxc", name=match[2]
        )
    if match := _LIBVIRT_V1.fullmatch(decoded):
        vm = match[2] == "qemu"
        return CgroupIdentity(
            kind="vm" if vm else "container", runtime="libvirt" if vm else "libvirt-lxc", name=match[1]
        )
    if parent == "qemu.slice" and (match := _PROXMOX.fullmatch(last)):
        return CgroupIdentity(kind="vm", runtime="qemu", name=match[1])
    if (parent == "machine.slice" or last.startswith("systemd-nspawn@")) and (match := _NSPAWN.fullmatch(decoded)):
        return CgroupIdentity(kind="container", runtime="systemd-nspawn", name=match[1] or match[2])
    return None


def _job(last: str, above: list[str]) -> CgroupIdentity | None:
    if (match := _SLURM_JOB.fullmatch(last)) and any("slurm" in part for part in above):
        return CgroupIdentity(kind="job", runtime="slurm", name=match[1])
    if len(above) >= 2 and above[-1] == "jobid" and above[-2].startswith("pbs_jobs"):
        return CgroupIdentity(kind="job", runtime="pbs", name=unescape_unit(last))
    return None


def _kubernetes(last: str, above: list[str]) -> CgroupIdentity | None:
    if not any(part.startswith("kubepods") for part in (*above, last)):
        return None
    if match := _POD.fullmatch(last):
        return CgroupIdentity(kind="slice", runtime="kubernetes", name=match[1].replace("_", "-"))
    if last.startswith("kubepods") or last in ("burstable", "besteffort", "guaranteed"):
        return CgroupIdentity(kind="slice", runtime="kubernetes", name=last)
    return None


def _systemd(last: str) -> CgroupIdentity | None:
    stem, _, suffix = last.rpartition(".")
    kind = {"service": "service", "slice": "slice", "scope": "other", "socket": "service", "mount": "other"}.get(suffix)
    if kind is None or not stem:
        return None
    return CgroupIdentity(kind=kind, runtime="systemd", name=unescape_unit(last))
