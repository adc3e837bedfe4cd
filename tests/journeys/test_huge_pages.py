"""The first journey, on this machine's own kernel: from counters to a fix that is kept, and undone byte for byte."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.ansible,
    pytest.mark.timeout(240),
    pytest.mark.skipif(os.geteuid() != 0, reason="changes kernel settings: needs root"),
]


def test_found_planned_applied_verified_kept_and_rolled_back(
    host: Callable[..., Any], patient: Callable[..., Any], thp_madvise: bytes
) -> None:
    watcher = host("--profile", "manual")
    watcher.wait("windows come", lambda: watcher.client.call("windows"), seconds=60)
    workload = patient("--megabytes", "320", "--seconds", "200", "--step", "0.05", "--activations", "8")
    watcher.wait("it works", workload.output.read_text, seconds=60)
    started = time.monotonic()
    episode = watcher.episode("reduced_huge_page_coverage", f"cgroup:{workload.cgroup}", seconds=60)
    assert time.monotonic() - started <= 10
    assert workload.anon_huge_kb() < 16_000

    planned = watcher.unveil("runs", "plan", episode["id"], "--json")
    assert planned.returncode == 0, planned.stderr
    run = json.loads(planned.stdout)
    assert THP.read_bytes() == thp_madvise, "a plan changes nothing"
    diff = {change["address"]: (change["before"], change["after"]) for change in run["plan"]["changes"]}
    before, after = diff[f"file:{THP}"]
    assert before.encode() == thp_madvise.strip()
    assert after == "always"

    refused = watcher.unveil("runs", "apply", run["id"], "--yes")
    assert refused.returncode == 1, "an unapproved plan is not applied"
    assert "not approved" in refused.stderr
    approved = watcher.unveil("runs", "approve", run["id"], "--yes")
    assert approved.returncode == 0, approved.stderr + watcher.log()
    applied = watcher.unveil("runs", "apply", run["id"], "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr + watcher.log()
    assert "kept" in applied.stdout
    assert "[always]" in THP.read_text()
    assert workload.process.poll() is None, "the workload lives through it"
    assert workload.anon_huge_kb() > 300_000

    told = json.loads(watcher.unveil("runs", "show", run["id"], "--json").stdout)
    assert [step["state"] for step in told["run"]["steps"]] == ["planned", "approved", "applying", "verifying", "kept"]
    watcher.wait("the episode clears", lambda: not watcher.client.call("episodes", open_only=True), seconds=90)

    assert watcher.again(run["id"]) == 0, "a second apply changes nothing"
    late = [json.loads(line)["late_ms"] for line in workload.output.read_text().splitlines()]
    assert max(late) < 500, "no pause of more than half a second"

    rolled_back = watcher.unveil("runs", "rollback", run["id"], "--yes")
    assert rolled_back.returncode == 0, rolled_back.stdout + rolled_back.stderr
    assert THP.read_bytes() == thp_madvise
    assert watcher.ended(run["id"], seconds=60) == "rolled_back"


def test_a_fix_whose_verification_fails_undoes_itself(
    host: Callable[..., Any], patient: Callable[..., Any], thp_madvise: bytes, knowledge_base: Path
) -> None:
    remediation = knowledge_base / "playbooks/enable_huge_pages/remediation.yml"
    text = remediation.read_text()
    wanted = "{feature: memory.cgroup_huge_share.last, direction: up, effect: 0.2}"
    assert wanted in text
    # The same fix, asked for what it cannot give: a share that rises by more than all there is.
    remediation.write_text(text.replace(wanted, wanted.replace("0.2", "99")))
    watcher = host("--profile", "manual", "--kb", str(knowledge_base))
    workload = patient("--megabytes", "256", "--seconds", "200", "--step", "0.05", "--activations", "8")
    episode = watcher.episode("reduced_huge_page_coverage", f"cgroup:{workload.cgroup}", seconds=60)
    run = watcher.client.call("plan", episode=episode["id"], remediation=None)
    watcher.client.call("approve", id=run["id"], hash=run["plan"]["hash"])
    watcher.client.call("apply", id=run["id"], hash=run["plan"]["hash"])
    assert watcher.ended(run["id"], seconds=120) == "rolled_back", watcher.log()
    assert THP.read_bytes() == thp_madvise
    states = [step["state"] for step in watcher.run(run["id"])["steps"]]
    assert states == ["planned", "approved", "applying", "verifying", "rolling_back", "rolled_back"]
    assert (
        "memory.cgroup_huge_share.last"
        in watcher.run(run["id"])["steps"][-2]["cause"] + watcher.run(run["id"])["steps"][-2]["detail"]
    )


def test_a_watcher_killed_between_apply_and_verify_finds_its_place_again(
    host: Callable[..., Any], patient: Callable[..., Any], thp_madvise: bytes
) -> None:
    watcher = host("--profile", "manual")
    workload = patient("--megabytes", "256", "--seconds", "200", "--step", "0.05", "--activations", "8")
    episode = watcher.episode("reduced_huge_page_coverage", f"cgroup:{workload.cgroup}", seconds=60)
    run = watcher.client.call("plan", episode=episode["id"], remediation=None)
    watcher.client.call("approve", id=run["id"], hash=run["plan"]["hash"])
    watcher.client.call("apply", id=run["id"], hash=run["plan"]["hash"])
    watcher.wait(
        "the run is applying",
        lambda: watcher.run(run["id"])["steps"][-1]["state"] in {"applying", "verifying"},
        seconds=30,
    )
    before = watcher.client.call("audit")["watches"]
    count = len(watcher.client.call("windows", limit=5000))
    watcher.kill()
    watcher.start()
    assert watcher.ended(run["id"], seconds=120) == "kept", watcher.log()
    audit = watcher.client.call("audit")
    assert audit["broken_link"] is None
    assert len(audit["watches"]) == len(before) + 1
    assert audit["watches"][0]["ended_s"] is None, "the killed watch did not end in good order"
    windows = watcher.client.call("windows", limit=5000)
    first = [window["index"] for window in windows if window["watch"] == before[-1]["watch"]]
    assert len(first) >= count
    assert first == list(range(len(first) - 1, -1, -1)), "no window of the killed watch is missing"
    watcher.client.call("rollback", id=run["id"])
    assert watcher.ended(run["id"], seconds=60) == "rolled_back"
    assert THP.read_bytes() == thp_madvise
