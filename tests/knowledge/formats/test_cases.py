"""The format FingerprintTest: a case has an answer and a time."""

from __future__ import annotations

from jsonschema import Draft202012Validator

from unveil.knowledge.schema_export import schemas

TEST = Draft202012Validator(schemas()["FingerprintTest"])


def test_a_test_needs_a_case_with_an_answer_and_a_time() -> None:
    frame = {"apiVersion": "unveil/v1", "kind": "FingerprintTest", "fingerprint": "abc"}
    assert not TEST.is_valid({**frame, "cases": []})
    assert not TEST.is_valid({**frame, "cases": [{"name": "x", "expect": "match"}]})
    assert TEST.is_valid({**frame, "cases": [{"name": "x", "expect": "match", "at": "3s"}]})
    features = {"cpu.busy.rate[host]": "0.5x3", "gpu.util.mean[gpu:GPU-1]": 0.5}
    assert TEST.is_valid({**frame, "cases": [{"name": "x", "expect": "match", "at": "3s", "features": features}]})
