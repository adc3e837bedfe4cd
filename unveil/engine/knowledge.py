"""Knowledge in use: the generation that the pipeline matches with, and what is known of the files beside it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from unveil.knowledge.content import knowledge_root
from unveil.knowledge.knowledge_base import KnowledgeBase, state_of
from unveil.knowledge.reload import Reloader

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.knowledge import KnowledgeState
    from unveil.records.remediation import Mode, Remediation

_LOG = logging.getLogger(__name__)


class KnowledgeInUse:
    """Starts with the folder's knowledge base, or with none when it cannot be used; follows it from then on."""

    def __init__(self, folder: str, *, now_s: float) -> None:
        self.root: Path = knowledge_root(folder or None)
        self._reloader = Reloader(self.root)
        loaded = self._reloader.start(now_s)
        empty = KnowledgeBase(generation=0, digest="", root=str(self.root))
        self.current = loaded.knowledge or empty
        self.state = self._reloader.state or state_of(
            empty, now_s, stale_since_s=now_s, problems=tuple(map(str, loaded.errors))
        )
        self._log()

    def poll(self, now_s: float) -> tuple[KnowledgeState | None, bool]:
        """Return (the new state when something changed, whether another generation is in use now). Never blocks."""
        outcome = self._reloader.poll(now_s)
        if outcome is None:
            return None, False
        self.state = outcome.state
        if outcome.knowledge is not None:
            self.current = outcome.knowledge
        self._log()
        return outcome.state, outcome.knowledge is not None

    def rescan(self) -> None:
        """Look at the files again now."""
        self._reloader.rescan()

    def close(self) -> None:
        """Stop following the files."""
        self._reloader.close()

    def mode(self, remediation: Remediation, *, profile: str, host: str) -> Mode:
        """Return how far automation may go with a remediation on this host.

        Args:
            profile: the watcher's own setting; ``site`` leaves it to the knowledge base's profiles.
        """
        from unveil.records.remediation import Mode

        if profile == "site":
            return self.current.profiles.mode(remediation.name, remediation.mode, host=host)
        modes = tuple(Mode)
        return min(Mode(profile), remediation.mode, key=modes.index)

    def _log(self) -> None:
        if self.state.stale_since_s is not None:
            _LOG.warning("the knowledge base on disk is not used: %s", "; ".join(self.state.problems[:3]))
        else:
            _LOG.info(
                "knowledge base generation %d: %d fingerprints, %d remediations",
                self.state.generation, self.state.fingerprints, self.state.remediations,
            )  # fmt: skip
