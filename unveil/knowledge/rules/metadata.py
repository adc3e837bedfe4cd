"""Checks of what a fingerprint or correlation says about itself: to the person who is woken up by it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.knowledge.checks import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem

_NO_REASON = frozenset(("none", "n/a", "na", "unknown", "tbd", "-", "nothing"))
_MOVING = re.compile(
    r"^https?://(?:www\.)?git(?:hub|lab)\.com/.+/(?:blob|tree|raw)/(?:main|master|HEAD|trunk|develop)\b"
)


def check_metadata(document: Document) -> Iterator[Problem]:
    """Yield what a fingerprint, or a correlation, should say about itself and does not."""
    data = document.data
    if not [text for text in data["falsepositives"] if text.strip().lower().rstrip(".") not in _NO_REASON]:
        yield finding("K301", document, ("falsepositives",), "no false positives are named", on_key=True)
    if data["level"] == "critical" and data["status"] != "stable":
        yield finding("K304", document, ("level",), f"level critical with status {data['status']}")
    if not data.get("owner"):
        yield finding("K110", document, ("name",), "nobody owns it", "owner: the team that answers for false alarms")
    if data["status"] == "deprecated" and not data.get("metadata", {}).get("replaced_by"):
        what = "it is deprecated, and nobody is told what to use instead"
        yield finding("K109", document, ("status",), what, "metadata: {replaced_by: NAME}, or none")
    for index, link in enumerate(data.get("references", ())):
        if _MOVING.match(link):
            what = "this link shows another text after the next commit"
            yield finding("K302", document, ("references", index), what, "name a commit or a tag (key y on GitHub)")
    if _words(data["description"]) == _words(data["title"]):
        yield finding("K303", document, ("description",), "the description is the title", "what is wrong, why it costs")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
