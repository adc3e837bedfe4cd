"""Fingerprints that say the same, and fixes that undo each other: what shows when several files are seen at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem


def check_overlap(fingerprints: Mapping[str, Document], remediations: Mapping[str, Document]) -> Iterator[Problem]:
    """Yield fingerprints of one signature (K211), and fixes of one setting that want it differently (K407).

    Args:
        fingerprints, remediations: of the right form, by name.
    """
    yield from _same(fingerprints)
    yield from _opposed(remediations)


def _same(fingerprints: Mapping[str, Document]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, document in fingerprints.items():
        signature = document.data["signature"]
        asked = sorted((key, _evaluated(clause)) for key, clause in signature["clauses"].items())
        told = repr((document.data["group_by"], asked, signature["condition"].split()))
        other = first.setdefault(told, name)
        if other != name:
            what = f"it asks for the same as {other}"
            yield finding("K211", document, ("signature",), what, "one of the two is enough", on_key=True)


def _evaluated(clause: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(each for each in clause.items() if each[0] != "note")


def _opposed(remediations: Mapping[str, Document]) -> Iterator[Problem]:
    """Yield fixes that write one setting differently for faults that can follow each other."""
    wanted: dict[str, list[tuple[str, int, Any]]] = {}
    for name, document in remediations.items():
        for index, setting in enumerate(document.data["settings"]):
            if "{{" not in setting["address"] and setting.get("value") is not None:
                wanted.setdefault(setting["address"], []).append((name, index, str(setting["value"])))
    for address, writers in wanted.items():
        for at, (name, index, value) in enumerate(writers):
            for other, _, before in writers[:at]:
                shared = set(remediations[name].data["remediates"]) & set(remediations[other].data["remediates"])
                if value != before and not shared:  # of one fault, they are alternatives
                    what = f"{address}: {other} wants {before!r}, this one {value!r}: they can undo each other for ever"
                    hint = "let each fingerprint ask that the other does not hold, and say so in an ignore"
                    yield finding("K407", remediations[name], ("settings", index), what, hint)
