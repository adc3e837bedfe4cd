from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.cgroup_names import identify, unescape_unit

A = "a1" * 32
KINDS = {"container", "vm", "service", "slice", "job", "other"}


@pytest.mark.parametrize(
    ("key", "kind", "runtime", "name"),
    [
        (f"/docker/{A}", "container", "docker", A[:12]),
        (f"/system.slice/docker-{A}.scope", "container", "docker", A[:12]),
        (f"/system.slice/nerdctl-{A}.scope", "container", "containerd", A[:12]),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f_1.slice/cri-containerd-{A}.scope",
            "container",
            "containerd",
            A[:12],
        ),
        (f"/kubepods.slice/kubepods-pod12345678_90ab.slice/crio-{A}.scope", "container", "cri-o", A[:12]),
        (f"/kubepods/burstable/pod11112222-3333-4444-5555-666677778888/{A}", "container", "kubernetes", A[:12]),
        (
            "/kubepods/burstable/pod11112222-3333-4444-5555-666677778888",
            "slice",
            "kubernetes",
            "11112222-3333-4444-5555-666677778888",
        ),
        (
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12345678_90ab.slice",
            "slice",
            "kubernetes",
            "12345678-90ab",
        ),
        ("/kubepods.slice", "slice", "kubernetes", "kubepods.slice"),
        (f"/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{A}", "container", "containerd", A[:12]),
        (f"/machine.slice/libpod-{A}.scope", "container", "podman", A[:12]),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{A}.scope", "container", "podman", A[:12]),
        (f"/machine.slice/libpod-conmon-{A}.scope", "other", "podman", f"libpod-conmon-{A}.scope"),
        (f"/kubepods.slice/crio-conmon-{A}.scope", "other", "cri-o", f"crio-conmon-{A}.scope"),
        (f"/ecs/0123/{A}", "container", "ecs", A[:12]),
        (f"/actions_job/{A}", "container", None, A[:12]),
        (r"/machine.slice/machine-qemu\x2d3\x2dtrain\x2dvm.scope", "vm", "libvirt", "train-vm"),
        ("/machine/train.libvirt-qemu", "vm", "libvirt", "train"),
        ("/machine/qemu-2-train.libvirt-qemu", "vm", "libvirt", "train"),
        (r"/machine.slice/machine-lxc\x2d1\x2dweb.scope", "container", "libvirt-lxc", "web"),
        ("/qemu.slice/101.scope", "vm", "qemu", "101"),
        ("/lxc/102", "container", "lxc", "102"),
        ("/lxc.payload.web", "container", "lxc", "web"),
        ("/machine.slice/machine-fedora.scope", "container", "systemd-nspawn", "fedora"),
        ("/slurm/uid_1000/job_4711", "job", "slurm", "4711"),
        ("/system.slice/slurmstepd.scope/job_4711", "job", "slurm", "4711"),
        ("/pbs_jobs.service/jobid/12.server", "job", "pbs", "12.server"),
        ("/system.slice/nvidia-powerd.service", "service", "systemd", "nvidia-powerd.service"),
        (r"/system.slice/dev-disk-by\x2dlabel.mount", "other", "systemd", "dev-disk-by-label.mount"),
        ("/user.slice/user-1000.slice", "slice", "systemd", "user-1000.slice"),
        ("/user.slice/user-1000.slice/session-3.scope", "other", "systemd", "session-3.scope"),
        ("/pod1", "other", None, "pod1"),
        ("/job_1", "other", None, "job_1"),
    ],
)
def test_the_conventions_of_engines_are_known(key: str, kind: str, runtime: str | None, name: str) -> None:
    identity = identify(key)
    assert (identity.kind, identity.runtime, identity.name) == (kind, runtime, name)


@given(st.text(max_size=80))
def test_any_text_that_a_tenant_chooses_has_an_identity(key: str) -> None:
    identity = identify(key)
    assert identity.kind in KINDS
    assert 0 <= identity.rank <= 3


@given(st.text(st.characters(exclude_characters="/\\", codec="utf-8"), min_size=1, max_size=40))
def test_a_virtual_machine_keeps_the_name_that_was_chosen(name: str) -> None:
    escaped = "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}" for byte in name.encode())
    identity = identify(f"/machine.slice/machine-qemu\\x2d1\\x2d{escaped}.scope")
    assert (identity.kind, identity.name) == ("vm", name)


def test_escapes_that_are_no_text_stay_as_bytes() -> None:
    assert unescape_unit(r"a\xffb") == "a\xffb"
    assert unescape_unit(r"caf\xc3\xa9") == "café"
    assert unescape_unit(r"a\xZZ") == r"a\xZZ"
