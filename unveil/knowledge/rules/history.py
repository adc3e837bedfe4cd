"""The way from one revision of a knowledge base to the next: what is proven step by step is not skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.checks import file_finding
from unveil.knowledge.formats.fragments import STATUSES
from unveil.knowledge.pack import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.problem import Problem


def check_history(before: KnowledgeBase, after: KnowledgeBase, root: Path) -> Iterator[Problem]:
    """Yield statuses that went back or skipped a step (K108). Whatever may be deprecated at any time.

    Args:
        root: of the newer one, as messages name it.
    """
    was = {id_: status for id_, status, _ in _statuses(before)}
    for id_, status, path in _statuses(after):
        old = was.get(id_)
        if old is None and status == "stable":
            yield file_finding("K108", shown(root, path), "it is new, and called stable", "begin with test")
        if old is None or status in (old, "deprecated"):
            continue
        if STATUSES.index(status) - STATUSES.index(old) != 1:
            what = f"status {old} → {status} is not the next step"
            yield file_finding("K108", shown(root, path), what, " → ".join(STATUSES))


def _statuses(knowledge: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """Yield id, status and path of everything that has a status."""
    for fingerprint in knowledge.fingerprints:
        yield fingerprint.id, fingerprint.status, fingerprint.path
    for correlation in knowledge.correlations:
        yield correlation.id, correlation.status, correlation.path
    for remediation in knowledge.remediations:
        yield remediation.id, remediation.status, remediation.path
