"""As installed, unveil does nothing to a host: it sees, says and plans."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a cgroup: needs root")
def test_the_default_profile_plans_when_asked_and_applies_nothing(
    host: Callable[..., Any], patient: Callable[..., Any], thp_madvise: bytes
) -> None:
    watcher = host("--no-gpu")
    workload = patient("--megabytes", "256", "--seconds", "100", "--step", "0.05", "--activations", "8")
    episode = watcher.episode("reduced_huge_page_coverage", f"cgroup:{workload.cgroup}", seconds=60)
    run = watcher.client.call("plan", episode=episode["id"])
    assert run["plan"]["mode"] == "observe"
    assert run["plan"]["risk"].startswith("The setting holds for the whole host")
    for order, says in (("approve", "cannot be approved"), ("apply", "not approved")):
        with pytest.raises(RefusedError, match=says):
            watcher.client.call(order, id=run["id"], hash=run["plan"]["hash"])
    assert THP.read_bytes() == thp_madvise
    assert watcher.run(run["id"])["steps"][-1]["state"] == "planned"
    assert watcher.unveil("runs", "list").returncode == 0
    watcher.stop()
    offline = watcher.unveil("episodes", "--json")
    assert offline.returncode == 0, "the journal answers when nobody watches"
    assert episode["id"] in offline.stdout
