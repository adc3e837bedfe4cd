"""The way from one revision of a knowledge base to the next: what is proven step by step is not skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.checks import finding
from unveil.knowledge.formats.fragments import STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem

_SAME = ("name", "title", "description", "signature", "correlation", "settings")  # one of these stays in every edit


def check_history(before: Mapping[str, Document], after: Mapping[str, Document]) -> Iterator[Problem]:
    """Yield ids that changed hands (K104), and statuses that went back or skipped a step (K108).

    Args:
        before, after: what has an id, by its id. Whatever may be deprecated at any time.
    """
    for id_, document in after.items():
        was = before.get(id_)
        if was is not None and not _is_the_same(was, document):
            what = f"this id was {was.data.get('name')!r}, of which nothing is left"
            yield finding("K104", document, ("id",), what, "a new one gets an id of its own")
        else:
            yield from _status(was, document)


def _is_the_same(was: Document, now: Document) -> bool:
    alike = any(key in was.data and was.data[key] == now.data.get(key) for key in _SAME)
    return was.data.get("kind") == now.data.get("kind") and alike


def _status(was: Document | None, now: Document) -> Iterator[Problem]:
    old, status = None if was is None else was.data.get("status"), now.data.get("status")
    if old is None and status == "stable":
        yield finding("K108", now, ("status",), "it is new, and called stable", "begin with test")
    if old not in STATUSES or status not in STATUSES or status in (old, "deprecated"):
        return
    if STATUSES.index(status) - STATUSES.index(old) != 1:
        what = f"status {old} → {status} is not the next step"
        yield finding("K108", now, ("status",), what, " → ".join(STATUSES))
