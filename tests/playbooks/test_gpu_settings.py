"""The remediations of GPUs, over the stand-in for the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.nvml_backend import NvmlBackend
from unveil.execution import snapshot
from unveil.execution.settings import Outcome, Settings
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan


@pytest.mark.gcc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "facts", "keys", "before", "after"),
    [
        (
            "reset_gpu_clocks",
            {"gpu.applications_clocks_default": "2619,1980"},
            {"applications_memory": 2619, "applications_sm": 1410},
            "2619,1410",
            "2619,1980",
        ),
        ("turn_on_gpu_persistence", {}, {"persistence_mode": 0}, "off", "on"),
    ],
)
def test_a_gpu_is_set_and_put_back(
    name: str,
    facts: dict[str, Any],
    keys: dict[str, int],
    before: str,
    after: str,
    plan_of: Callable[..., Plan],
    wanted: Callable[..., list[dict[str, str]]],
    module: Callable[..., dict[str, Any]],
    nvml: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml.state.set_gpu(0, **keys)
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", nvml.env["UNVEIL_NVML_LIBRARY"])
    gpu, host = Entity(EntityKind.GPU, nvml.uuid(0)), Settings(backends={"nvml": NvmlBackend()})
    plan = plan_of(name, gpu, facts, host.peek)
    ((address, was),) = [(each.address, each.before) for each in plan.changes if each.after is not None]
    asked, saved = wanted(plan), snapshot.take(plan, host.peek)
    assert was == before
    assert module("unveil_setting", check=True, settings=asked)["changed"] is True
    assert host.read(address) == before
    assert module("unveil_setting", settings=asked)["changed"] is True
    assert host.read(address) == after
    assert module("unveil_setting", settings=asked)["changed"] is False
    undone = host.restore(saved, snapshot.written(plan, saved, host.peek))
    assert all(each.outcome is Outcome.RESTORED for each in undone)
    assert host.read(address) == before
