"""The child loads, the watcher stays light: same records, only what changed crosses the pipe, any death is survived."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.load_child import LoadChild, LoadFailedError, serve
from unveil.knowledge.loading import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def child() -> Iterator[LoadChild]:
    child = LoadChild(deadline_s=30)
    yield child
    child.close()


def test_a_generation_crosses_the_pipe_unchanged(kb: Path, child: LoadChild) -> None:
    assert child.load(kb, generation=3) == load(kb, generation=3)


def test_problems_cross_the_pipe_with_their_places(kb: Path, child: LoadChild) -> None:
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    path.write_text(path.read_text().replace("level: low", "level: lo"))
    loaded = child.load(kb, generation=1)
    assert loaded.knowledge is None
    assert loaded == load(kb)


def test_what_did_not_change_is_the_same_object_and_does_not_cross_again(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1).knowledge
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    path.write_text(path.read_text().replace("gte: 0.6", "gte: 0.7"))
    second = child.load(kb, generation=2).knowledge
    assert first is not None
    assert second is not None
    assert second.fingerprint("quota_throttling") is first.fingerprint("quota_throttling")
    assert second.remediations[0] is first.remediations[0]
    assert second.fingerprint("power_limit_low") != first.fingerprint("power_limit_low")


def test_a_child_that_died_is_replaced(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1)
    assert child._process is not None
    child._process.kill()
    child._process.wait()
    assert child.load(kb, generation=1) == first


def test_a_child_that_takes_too_long_is_ended_and_told_of(kb: Path) -> None:
    child = LoadChild(deadline_s=0.0)
    with pytest.raises(LoadFailedError, match="took longer"):
        child.load(kb, generation=1)
    assert child._process is None


def test_a_child_goes_when_nobody_asks() -> None:
    serving = "serve(sys.stdin.buffer, sys.stdout.buffer, linger_s=0.1)"
    program = f"import sys\nfrom unveil.knowledge.load_child import serve\n{serving}"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.wait(timeout=30) == 0


def test_what_breaks_in_the_loader_is_told_and_the_next_request_is_served(kb: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as requests, os.fdopen(write, "wb") as asking:
        asking.write(b"nonsense\n")
        asking.write(json.dumps({"root": str(kb), "generation": 1, "known": []}).encode() + b"\n")
        asking.flush()
        answers = io.BytesIO()
        serve(requests, answers, linger_s=0.1)
    lines = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert lines[0]["failed"].startswith("JSONDecodeError")
    assert lines[-1]["loaded"]["usable"]


def test_the_watcher_s_end_brings_neither_yaml_nor_json_schema() -> None:
    heavy = ["yaml", "jsonschema", "jinja2", "numpy"]
    program = f"import sys, unveil.knowledge.reload; print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


def test_it_is_heard_above_the_descriptors_that_select_knows(kb: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("no more than 1024 descriptors may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    child = LoadChild(deadline_s=30)
    try:
        assert child.load(kb, generation=1).knowledge is not None
    finally:
        child.close()
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
