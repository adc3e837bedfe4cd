"""Labelled recordings of NUMA, cgroup v2 and interrupt faults, made in the guest by the project's own recorder.

They go to the folder that ``UNVEIL_GUEST_RECORDINGS`` names, and are kept there. It takes a quarter of an hour of
two CPUs, so without that variable it is left out.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("UNVEIL_GUEST_CACHE") or Path.home() / ".cache/unveil-guest")
FOLDER = os.environ.get("UNVEIL_GUEST_RECORDINGS", "")
WHOLE_S = 40 * 60
SILENCE_S = 400
NAMES = ("memory_on_wrong_node", "irqs_on_wrong_node", "huge_pages_off", "cpu_quota")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.longest,
    pytest.mark.timeout(WHOLE_S + 600),
    pytest.mark.xdist_group("guest"),
    pytest.mark.skipif(not FOLDER, reason="takes a quarter of an hour: asked for by UNVEIL_GUEST_RECORDINGS=FOLDER"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a disk with root's files: needs root"),
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="the guest is x86_64"),
    *(
        pytest.mark.skipif(
            shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None, reason=f"no {name}"
        )
        for name in ("qemu-system-x86_64", "mke2fs", "apt-get", "dpkg-deb")
    ),
]


def record_in_guest(scratch: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Boot the guest, put what it hands out into a folder, and return what it says of each fault."""
    sys.path.insert(0, str(HERE))
    try:
        import guest_image
        import guest_machine
    finally:
        sys.path.remove(str(HERE))
    begun = time.monotonic()
    try:
        kernel, busybox = guest_image.parts(CACHE)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no kernel for the guest: {error}")
    guest_image.initramfs(kernel, busybox, scratch / "initrd")
    guest_image.disk(busybox, scratch / "disk", scratch, program="recorded.py", packages=("pyarrow",))
    recorded: dict[str, dict[str, Any]] = {}
    machine = guest_machine.Machine(scratch, kernel)
    try:
        for told in machine.lines(until=begun + WHOLE_S, silence_s=SILENCE_S):
            if told["event"] == "file":
                (folder / told["name"]).write_bytes(base64.b64decode(told["content"]))
                told["content"] = f"{len(told['content'])} characters"
            elif told["event"] == "recorded":
                recorded[told["name"]] = told
            print(f"guest {time.monotonic() - begun:5.0f} s  {told}", flush=True)
    finally:
        machine.close()
    assert set(recorded) == set(NAMES), machine.tail()
    return recorded


def knowledge_of_the_guest(folder: Path) -> Path:
    """Return a copy of the knowledge base that asks as little of speed as the one in the guest."""
    sys.path.insert(0, str(HERE))
    try:
        import guest_image
    finally:
        sys.path.remove(str(HERE))
    folder.mkdir(mode=0o700)
    for part in ("fingerprints", "playbooks", "schemas", "inventory"):
        shutil.copytree(HERE.parents[1] / part, folder / part)
    guest_image.be_patient(folder)
    return folder


def unveil(*words: str | Path) -> str:
    """Return what a command says; 1 is an answer, too."""
    done = subprocess.run(
        [sys.executable, "-m", "unveil", *words], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


def test_the_guests_faults_are_recorded_and_found_in_their_time_alone(tmp_path: Path) -> None:
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    recorded = record_in_guest(tmp_path, folder)
    assert {name: told["failed"] for name, told in recorded.items()} == dict.fromkeys(NAMES, "")
    files = [folder / f"{name}.parquet" for name in NAMES]
    backtest = ("kb", "backtest", *files, "--state-dir", tmp_path, "--kb", knowledge_of_the_guest(tmp_path / "kb"))
    print(unveil(*backtest))
    print(unveil("eval", *files))
    told = json.loads(unveil(*backtest, "--json"))
    scores = {each["fingerprint"]: each for each in told["scores"]}
    for each in recorded.values():
        score = scores[each["fingerprint"]]
        assert (score["intervals"], score["found"]) == (1, 1), each["fingerprint"]
        assert score["false_fires"] == 0, "none of these fires in healthy time"
        assert score["other_fires"] == 0, "and none in the time of another of these faults"
