from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unveil.benchmarks.kill_matrix import example_episode
from unveil.cli.ticket import DRAIN, written
from unveil.knowledge.formats.fragments import API_VERSION
from unveil.records.codec import encode

REPORTS = Path(__file__).parents[2] / "fingerprints"
CORRECTED = {
    "title": "A GPU corrects memory errors by the dozen", "level": "medium", "remediations": [],
    "description": "ECC keeps correcting errors.\n\nDrain ticket: GPU and serial number,\nerrors a second.",
    "fields": ["gpu.ecc_corrected.rate"],
}  # fmt: skip


@pytest.fixture
def episode() -> dict[str, Any]:
    """Give an episode as the watcher tells it."""
    told: dict[str, Any] = encode(example_episode())
    return told


def test_a_ticket_says_what_was_seen_what_to_do_and_on_which_evidence(episode: dict[str, Any]) -> None:
    features = [
        {"name": "gpu.ecc_corrected.rate", "value": 4.25},
        {"name": "gpu.util.mean", "value": 1.0},
    ]
    facts = [
        {"name": "gpu.pci", "entity": episode["entity"], "value": "0000:3b:00.0"},
        {"name": "gpu.pci", "entity": {"kind": "gpu", "key": "another"}, "value": "0000:4b:00.0"},
    ]
    text = written(episode, host="gpu-a-01", fingerprint=CORRECTED, features=features, facts=facts)
    assert text.startswith("A GPU corrects memory errors by the dozen: host on gpu-a-01\n")
    assert "What to do\n  GPU and serial number, errors a second.\n" in text
    assert "ECC keeps correcting errors." in text
    assert DRAIN not in text
    assert "gpu.ecc_corrected.rate = 4.25" in text
    assert "gpu.util" not in text
    assert "gpu.pci = 0000:3b:00.0" in text
    assert "4b:00" not in text
    assert "runs plan" not in text
    assert "UTC" in text


def test_a_ticket_for_what_is_no_longer_known_still_says_what_was_seen(episode: dict[str, Any]) -> None:
    text = written(episode, host="here", fingerprint=None)
    assert text.startswith(f"{episode['fingerprint']}: host on here\n")
    assert "A person has to judge." in text


def test_no_name_in_a_ticket_draws_anything_else(episode: dict[str, Any]) -> None:
    episode["entity"] = {"kind": "cgroup", "key": "/a\x1b[31m\u202eb\nc"}
    text = written(episode, host="\x1b]0;x\x07", fingerprint=CORRECTED | {"remediations": ["fix"]})
    assert not any(character in text for character in "\x1b\x07\u202e")
    assert "unveil runs plan" in text


def test_every_shipped_fingerprint_without_a_fix_says_what_to_write_into_the_ticket() -> None:
    import yaml

    silent = []
    for path in sorted(REPORTS.rglob("*.yml")):
        data = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        if data.get("kind") == "Fingerprint" and data["apiVersion"] == API_VERSION and not data.get("remediations"):
            asked = " ".join(data["description"].split()).partition(DRAIN)[2]
            if any(tag in data["tags"] for tag in TO_DRAIN) and len(asked) < 20:
                silent.append(path.stem)
    assert silent == []


TO_DRAIN = ("cause.pcie", "cause.pcie_link", "cause.acs", "cause.iommu", "cause.fabric", "cause.memory_errors")
