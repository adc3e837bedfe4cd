from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import UnreadableError
from unveil.execution.request import RESULT, Status, extravars, inert, load_request, load_result, request_of
from unveil.records.codec import decode, encode
from unveil.remediation.lifecycle import STEPS

if TYPE_CHECKING:
    from pathlib import Path


def test_every_text_is_marked_as_data_wherever_it_stands(kit: Any, tmp_path: Path) -> None:
    hostile = "{{ lookup('pipe', 'id') }}"
    plan = kit.plan(
        tmp_path / "apply.yml",
        settings={"sysctl:vm.dirty_ratio": ("1", hostile), "sysctl:vm.dirty_bytes": ("1", None)},
        variables={"name": hostile, "irqs": (hostile, "24"), "share": 0.5, "node": 1, "on": True},
    )
    request = request_of(
        plan,
        run="r1",
        mark="m",
        playbook=tmp_path / "apply.yml",
        modules=tmp_path,
        check=False,
        host_root="/",
        strict=False,
    )
    values = extravars(request)
    assert values["name"] == {"__ansible_unsafe": hostile}
    assert values["irqs"] == [{"__ansible_unsafe": hostile}, {"__ansible_unsafe": "24"}]
    assert (values["share"], values["node"], values["on"]) == (0.5, 1, True)
    assert values["unveil_settings"] == [
        {"address": {"__ansible_unsafe": "sysctl:vm.dirty_ratio"}, "value": {"__ansible_unsafe": hostile}}
    ], "what only the playbook knows, and what is coupled, is not written"
    assert decode(type(request), json.loads(json.dumps(encode(request)))) == request


@settings(max_examples=40)
@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_bare_text_is_left(value: Any) -> None:
    def bare(found: Any) -> bool:
        if isinstance(found, dict):
            return set(found) != {"__ansible_unsafe"} and any(map(bare, found.values()))
        return any(map(bare, found)) if isinstance(found, list) else isinstance(found, str)

    assert not bare(inert(value))


def test_every_end_is_a_cause_that_the_lifecycle_knows() -> None:
    causes = {cause for ways in STEPS.values() for each in ways.values() for cause in each}
    assert {status.cause for status in Status} <= causes


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    assert load_result(tmp_path) is None
    with pytest.raises(UnreadableError):
        load_request(tmp_path)
    (tmp_path / RESULT).write_text('{"status": "splendid"}')
    with pytest.raises(UnreadableError):
        load_result(tmp_path)
