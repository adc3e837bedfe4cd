"""The knowledge base that an action works with, loaded, or why it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.errors import BadInputError, UnreadableError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.knowledge.knowledge_base import KnowledgeBase


def usable_knowledge(kb: str | None) -> KnowledgeBase:
    """Return the knowledge base of ``--kb``, or the shipped one.

    Raises:
        UnreadableError: there is none, or it has an error.
    """
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.loading import load

    root = knowledge_root(kb)
    loaded = load(root)
    if loaded.knowledge is None:
        raise UnreadableError(f"{loaded.errors[0]}", hint=f"`unveil kb lint --kb {root}` lists everything")
    return loaded.knowledge


def unknown_fingerprint(name: str, known: Iterable[str]) -> BadInputError:
    """Return the error for a fingerprint that is not there, with the one that may have been meant."""
    hint = did_you_mean(name, known, otherwise="`unveil kb test --verbose` names them all")
    return BadInputError(f"no fingerprint {name!r} in this knowledge base", hint=hint)
