"""A GPU left at a low power limit: the genuine nvidia-ml-py over a stand-in for the driver, everything else real."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

pytestmark = [pytest.mark.slow, pytest.mark.gcc, pytest.mark.ansible, pytest.mark.timeout(240)]


def busy_board(nvml: Any, *, limit_w: int) -> None:
    """Two GPUs; the first wants 650 W and may have *limit_w* of its 700, the second idles at its default."""
    nvml.state.set(gpus=2)
    nvml.state.set_gpu(0, util=97, power_demand=650_000, power_default=700_000, power_limit=limit_w * 1000)
    nvml.state.set_gpu(1, util=0, power_demand=70_000, power_default=700_000, power_limit=700_000)


def test_a_low_limit_is_found_on_that_gpu_raised_verified_and_put_back(host: Callable[..., Any], nvml: Any) -> None:
    busy_board(nvml, limit_w=350)
    watcher = host("--profile", "manual", **nvml.env)
    episode = watcher.episode("gpu_power_limit_below_default", f"gpu:{nvml.uuid(0)}", seconds=90)
    assert not [e for e in watcher.client.call("episodes") if nvml.uuid(1) in e["entity"]["key"]]

    run = watcher.client.call("plan", episode=episode["id"])
    (change,) = run["plan"]["changes"]
    assert change["address"] == f"nvml:{nvml.uuid(0)}/power_limit"
    assert (change["before"].strip(), change["after"]) == ("350", "700")
    watcher.client.call("approve", id=run["id"], hash=run["plan"]["hash"])
    assert watcher.unveil("runs", "apply", run["id"], "--yes").returncode == 0, watcher.log()
    assert watcher.run(run["id"])["steps"][-1]["state"] == "kept"
    assert nvml.state.get("gpu0.power_limit") == "700000"

    rolled_back = watcher.unveil("runs", "rollback", run["id"], "--yes")
    assert rolled_back.returncode == 0, rolled_back.stdout + rolled_back.stderr
    assert nvml.state.get("gpu0.power_limit") == "350000"
    assert nvml.state.get("gpu1.power_limit") == "700000"


def test_a_card_at_its_rated_limit_does_not_match_though_it_is_power_capped(
    host: Callable[..., Any], nvml: Any
) -> None:
    nvml.state.set(gpus=1)
    nvml.state.set_gpu(0, util=99, power_demand=900_000, power_default=700_000, power_limit=700_000)
    watcher = host("--profile", "manual", **nvml.env)

    def judged() -> Any:
        explained = watcher.client.call("explain", fingerprint="gpu_power_limit_below_default")
        return explained if explained[0]["answer"] != "unknown" else None

    from unveil.errors import UnveilError

    deadline = time.monotonic() + 90
    explained = None
    while explained is None and time.monotonic() < deadline:
        try:
            explained = judged()
        except UnveilError:
            time.sleep(0.3)
    assert explained is not None
    clauses = {clause["name"]: clause for clause in explained[0]["clauses"]}
    assert clauses["busy"]["answer"] == "match"
    assert clauses["capped_by_reason"]["answer"] == "match", "the power-cap bit is set"
    assert clauses["lowered"]["answer"] == "no_match"
    assert explained[0]["answer"] == "no_match"
    now = watcher.client.call("status")["window"]["index"]
    watcher.wait("8 more windows", lambda: watcher.client.call("status")["window"]["index"] >= now + 8, seconds=60)
    assert not [each for each in watcher.client.call("episodes") if each["fingerprint"].startswith("gpu_")]
