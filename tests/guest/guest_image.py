"""The guest's parts: a Debian kernel, a first file system that loads its modules, and a disk made of this Python.

The kernel package is fetched once into a cache folder. The disk holds the interpreter that runs this, the libraries it
is linked with, what Unveil needs of its packages, and the project as it lies in the checkout: no distribution is
installed, so building takes seconds.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from faults import FAULTS

PROJECT = Path(__file__).parents[2]
KERNEL = "linux-image-cloud-amd64"
MODULES = ("virtio_pci", "virtio_blk", "virtio_net")
VENV = "/opt/venv"
CHECKOUT = "/opt/unveil"
PARTS = ("unveil", "fingerprints", "playbooks", "schemas", "inventory", "tests/guest")
PACKAGES = (
    "ansible", "ansible_runner", "ansible_core*", "attr", "attrs", "cryptography", "cffi", "_cffi_backend*",
    "packaging", "jinja2", "markupsafe", "yaml", "_yaml", "resolvelib", "pexpect", "ptyprocess", "lockfile", "daemon",
    "jsonschema", "jsonschema_specifications", "referencing", "rpds", "numpy", "numpy.libs", "psutil", "pynvml*",
    "watchdog", "rich", "pygments", "markdown_it", "mdurl", "typing_extensions*", "importlib_metadata", "pycparser",
    "six*",
)  # fmt: skip
NOT_OF_PYTHON = (
    "*.opt-[12].pyc", "test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo", "site-packages",
    "dist-packages", "*.a",
)  # fmt: skip
NOT_OF_PACKAGES = ("tests", "*.a", "*.pyi")
INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev; $b mount -t proc proc /proc; $b mount -t sysfs sys /sys
while read m; do $b insmod /modules/$m || echo "module $m failed"; done < /modules/order
i=0; while [ ! -b /dev/vda ] && [ $i -lt 100 ]; do $b sleep 0.1; i=$((i+1)); done
$b mount -t ext4 /dev/vda /root || { echo "no disk"; $b poweroff -f; }
for each in dev proc sys; do $b mount --move /$each /root/$each; done
exec $b switch_root /root /sbin/init
"""
SECOND_INIT = f"""#!/bin/sh
export PATH={VENV}/bin:/usr/sbin:/usr/bin LANG=C.UTF-8 HOME=/root
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm; mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
stty -F /dev/ttyS1 raw
cd /root
python {CHECKOUT}/tests/guest/PROGRAM > /dev/ttyS1
poweroff -f
"""


def parts(cache: Path) -> tuple[Path, Path]:
    """Return the kernel's unpacked package and a busybox that needs no libraries, fetched when not in the cache.

    Raises:
        RuntimeError: they cannot be had.
    """
    return _package(cache, KERNEL), _package(cache, "busybox-static") / "bin/busybox"


def _package(cache: Path, name: str) -> Path:
    """Return the folder of an unpacked Debian package; of one that only names the newest kernel, that kernel's."""
    folder = cache / name
    if (folder / "ready").exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    told = subprocess.run(["apt-cache", "depends", name], capture_output=True, text=True, check=False).stdout
    wanted = re.search(r"Depends: (linux-image-\S+)", told)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        fetched = subprocess.run(
            ["apt-get", "download", "-q", wanted[1] if wanted else name],
            cwd=scratch, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        packages = list(Path(scratch).glob("*.deb"))
        if not packages:
            raise RuntimeError(f"{name} cannot be fetched: {fetched.stderr.strip()[-200:]}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", packages[0], folder], check=True, timeout=120)
    (folder / "ready").touch()
    return folder


def modules(folder: Path) -> list[Path]:
    """Return the modules that the guest needs, each after those it depends on."""
    files = {path.stem.replace("-", "_"): path for path in folder.glob("lib/modules/*/kernel/**/*.ko")}
    ordered: list[Path] = []

    def add(name: str) -> None:
        path = files.get(name)
        if path is None or path in ordered:
            return  # built in, or there already
        needed = re.search(rb"\0depends=([^\0]*)\0", b"\0" + path.read_bytes())
        for each in (needed[1].decode() if needed else "").split(","):
            add(each.replace("-", "_"))
        ordered.append(path)

    for name in MODULES:
        add(name)
    return ordered


def initramfs(folder: Path, busybox: Path, target: Path, init: str = INIT) -> None:
    """Write the first file system: busybox and modules, as a compressed cpio archive, and what runs first."""
    files: list[tuple[str, int, bytes]] = [
        (name, stat.S_IFDIR | 0o755, b"") for name in ("bin", "dev", "proc", "sys", "root", "modules")
    ]
    files += [("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes())]
    files += [("init", stat.S_IFREG | 0o755, init.encode())]
    wanted = modules(folder)
    files += [(f"modules/{path.name}", stat.S_IFREG | 0o644, path.read_bytes()) for path in wanted]
    files += [("modules/order", stat.S_IFREG | 0o644, "".join(f"{path.name}\n" for path in wanted).encode())]
    archive = b"".join(_entry(*file) for file in files) + _entry("TRAILER!!!", 0, b"")
    target.write_bytes(gzip.compress(archive, 1))


def _entry(name: str, mode: int, content: bytes) -> bytes:
    """Return one file of a cpio archive (newc)."""
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def disk(
    busybox: Path, target: Path, scratch: Path, *, program: str = "inside.py", packages: tuple[str, ...] = ()
) -> None:
    """Write the guest's disk, with an ext4 file system.

    Args:
        program: what runs in the guest, of the files beside this one.
        packages: what it needs beside ``PACKAGES``.
    """
    base = Path(os.path.realpath(sys.executable))
    root = scratch / "root"
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "dev", "proc", "sys", "tmp", "run", "root", "etc",
                 "var/tmp"):  # fmt: skip
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    site = _python(root, base)
    _packages(site, (*PACKAGES, *packages))
    for part in PARTS:
        _tree(PROJECT / part, root / CHECKOUT.lstrip("/") / part, "__pycache__")
    _only(root / CHECKOUT.lstrip("/"), {fault.fingerprint for fault in FAULTS})
    be_patient(root / CHECKOUT.lstrip("/"))
    values = root / CHECKOUT.lstrip("/") / "inventory/values.yml"
    values.write_text(values.read_text().replace("collapse_seconds: 30", "collapse_seconds: 240"))
    (site / "unveil.pth").write_text(f"{CHECKOUT}\n")
    _libraries(root, base)
    _tree(Path("/usr/lib/locale/C.utf8"), root / "usr/lib/locale/C.utf8")  # Ansible insists on UTF-8
    shutil.copy2(busybox, root / "usr/bin/busybox")
    for name in ("sh", "mount", "mkdir", "ip", "stty", "poweroff", "cat", "ls", "ps", "sleep", "rm", "chmod", "id"):
        (root / "usr/bin" / name).symlink_to("busybox")
    (root / "usr/sbin/init").write_text(SECOND_INIT.replace("PROGRAM", program))
    (root / "usr/sbin/init").chmod(0o755)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\ntty:x:5:\n")
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j0", root / "opt"], check=False, timeout=300)
    megabytes = sum(path.lstat().st_size + 4096 for path in root.rglob("*")) * 5 // 4 >> 20
    command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, target, f"{megabytes + 64}M"]
    subprocess.run(
        command,
        check=True,
        timeout=180,
        capture_output=True,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    shutil.rmtree(root)


def _only(knowledge: Path, fingerprints: set[str]) -> None:
    """Leave of the knowledge base what has to do with some fingerprints: the guest takes 20 s to check all of it."""
    files = {path.stem: path for path in knowledge.glob("fingerprints/*/*.yml")}
    folders = {path.parent.name: path for path in knowledge.glob("playbooks/*/remediation.yml")}
    everything, kept, asked = {**files, **folders}, set[str](), set(fingerprints)
    while asked:
        kept |= asked
        told = "".join(everything[name].read_text() for name in asked)
        named = {
            name for words in re.findall(r"(?m)^remediat(?:es|ions): \[(.*)\]$", told) for name in words.split(", ")
        }
        asked = named - kept
    for name in set(everything) - kept:
        if name in folders:
            shutil.rmtree(folders[name].parent)
        else:
            files[name].unlink()


def be_patient(knowledge: Path) -> None:
    """Ask less of speed in the guest's copy: an emulated CPU takes 20 times longer, and answers fewer packets."""
    for path in knowledge.glob("playbooks/*/remediation.yml"):
        text = re.sub(r"(?<=timeout: )\d+[sm]", "8m", path.read_text())
        path.write_text(re.sub(r"(?m)^  within: \d+s$", "  within: 3m", text))
    # a page fault takes twenty to forty microseconds here, so that nobody has time for many
    for name, asked, here in (("network/nic_irq_away_from_nic", "200", "40"),
                              ("memory/reduced_huge_page_coverage", "50000", "5000")):  # fmt: skip
        path = knowledge / f"fingerprints/{name}.yml"
        text = path.read_text()
        assert f"gte: {asked}\n" in text
        path.write_text(text.replace(f"gte: {asked}\n", f"gte: {here}\n"))


def _tree(source: Path, target: Path, *left_out: str) -> None:
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True)


def _python(root: Path, base: Path) -> Path:
    """Copy the interpreter and its standard library, make an environment beside them, and return its packages."""
    stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    _tree(stdlib, root / str(stdlib).lstrip("/"), *NOT_OF_PYTHON)
    place = root / str(base).lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(base, place)
    venv = root / VENV.lstrip("/")
    site = venv / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    site.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin/python").symlink_to(base)
    (venv / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    playbook = venv / "bin/ansible-playbook"
    playbook.write_text(f"#!{VENV}/bin/python\nfrom ansible.cli.playbook import main\nmain()\n")
    playbook.chmod(0o755)
    return site


def _packages(site: Path, wanted: tuple[str, ...]) -> None:
    own = Path(sysconfig.get_path("platlib"))
    for pattern in (*wanted, *(f"{name}-*.dist-info" for name in ("unveil", *wanted))):
        for path in own.glob(pattern):
            if path.is_dir():
                _tree(path, site / path.name, *NOT_OF_PACKAGES)
            else:
                shutil.copy2(path, site / path.name)


def _libraries(root: Path, base: Path) -> None:
    """Copy every library of the system that something on the disk is linked with."""
    binaries = [base, *(path for path in root.rglob("*.so*") if path.is_file())]
    told = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False, timeout=120).stdout
    for line in set(re.findall(r"(?:=> )?(/\S+) \(0x", told)):
        place = root / line.lstrip("/")
        if line.startswith(str(root)) or place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(line), place)
