"""Knowledge in use: the generation that the pipeline matches with, and what is known of the files beside it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.engine.granting import refuse_open_knowledge, why_withheld
from unveil.errors import RefusedError, UnreadableError
from unveil.knowledge.content import knowledge_root
from unveil.knowledge.inventory import groups_of
from unveil.knowledge.knowledge_base import KnowledgeBase, state_of
from unveil.knowledge.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from unveil.records.knowledge import KnowledgeState
    from unveil.records.remediation import Mode, Remediation
    from unveil.records.run import Plan
    from unveil.records.site import Profiles

_LOG = logging.getLogger(__name__)


class KnowledgeInUse:
    """Starts with the folder's knowledge base, or with none when it has errors; follows it from then on.

    A folder in which there is no knowledge base at all is a mistake of whoever named it, and refused.
    """

    def __init__(self, folder: str, *, now_s: float, ready: Callable[[], None] | None = None) -> None:
        """Load the folder.

        Args:
            ready: called from another thread when `poll` has something to tell.
        """
        self.root: Path = knowledge_root(folder or None)
        self._reloader = Reloader(self.root, ready=ready)
        loaded = self._reloader.start(now_s)
        if loaded.knowledge is None and (nothing := [each for each in loaded.errors if each.check == "K011"]):
            self._reloader.close()
            raise UnreadableError(
                f"{self.root} is no knowledge base: {nothing[0].what}",
                hint="--kb names the folder that holds fingerprints/ and playbooks/",
            )
        empty = KnowledgeBase(generation=0, digest="", root=str(self.root))
        self._loaded = self.current = loaded.knowledge or empty
        self._doubtful: tuple[Profiles, object] | None = None  # what an inventory granted when others could write it
        self.state = self._reloader.state or state_of(
            empty, now_s, stale_since_s=now_s, problems=tuple(map(str, loaded.errors))
        )
        self._take_up()
        self._believe(now_s)
        self._log()

    def poll(self, now_s: float) -> tuple[KnowledgeState | None, bool]:
        """Return (the new state when something changed, whether another generation is in use now). Never blocks."""
        outcome = self._reloader.poll(now_s)
        if outcome is None:
            return None, False
        before = self.state
        self.state = replace(outcome.state, withheld=before.withheld, withheld_at_s=before.withheld_at_s)
        if outcome.knowledge is not None:
            self._loaded = outcome.knowledge
            self._take_up()
        self._believe(now_s)
        self._log()
        return self.state, outcome.knowledge is not None

    def look_at_grants(self, now_s: float) -> KnowledgeState | None:
        """Look anew at who may write what grants something; return the new state when that changed what holds."""
        if self._why_withheld() == self.state.withheld:
            return None
        self._believe(now_s)
        return self.state

    def _take_up(self) -> None:
        """Doubt what a generation grants that was read while others could write it, and the same of a later one."""
        granted = (self._loaded.profiles, self._loaded.groups)
        if why_withheld(self.root, self._loaded.profiles):
            self._doubtful = granted
        elif self._doubtful != granted:
            self._doubtful = None

    def _why_withheld(self) -> str:
        return why_withheld(self.root, self._loaded.profiles, doubtful=self._doubtful is not None)

    def _believe(self, now_s: float) -> None:
        """Let what the inventory grants hold, unless others may write it, or could when it was read."""
        why = self._why_withheld()
        self.current = self._loaded
        if why:
            self.current = replace(self._loaded, profiles=self._loaded.profiles.withheld())
        if why != self.state.withheld:
            _LOG.warning("%s", why or "what the inventory grants holds again")
            self.state = replace(self.state, withheld=why, withheld_at_s=now_s)

    def rescan(self) -> None:
        """Look at the files again now. Whoever owns the watcher says so: what was in doubt has been looked through."""
        if not why_withheld(self.root, self._loaded.profiles):
            self._doubtful = None
        self._reloader.rescan()

    def close(self) -> None:
        """Stop following the files."""
        self._reloader.close()

    def refuse_altered(self, plan: Plan, digests: Mapping[str, str]) -> None:
        """Refuse to play what is not what was judged when the plan was drawn.

        The generation in use may be older than the files: a change is taken up a moment later, and not at all while
        anything in the folder is wrong. So the revision is made anew, of the files that would be played.

        Args:
            digests: absolute path → sha256 of what would be played.

        Raises:
            RefusedError: they are not the files of the revision that was approved; or others may write what says when
                something is done, and to which settings.
        """
        from unveil.knowledge.content import PLAYBOOKS
        from unveil.knowledge.pack import read_pack
        from unveil.knowledge.parse import revision

        remediation = self.current.remediation(plan.remediation)
        files = dict(read_pack(self.root).digests)
        own = f"{self.current.root}/"
        files.update((path.removeprefix(own), digest) for path, digest in digests.items())
        folder = "" if remediation is None else remediation.path.rpartition("/")[0]
        beside = {
            path: digest
            for path, digest in files.items()
            if path.startswith((f"{folder}/", f"{PLAYBOOKS}/modules/", "/")) and path != f"{folder}/remediation.yml"
        }
        if remediation is None or revision(remediation, beside) != plan.remediation_revision:
            raise RefusedError(
                f"the files of {plan.remediation} are not what they were when the plan was made",
                hint="`unveil status` says whether the knowledge base on disk can be used; then plan again",
            )
        said_by = self.current.fingerprint(plan.fingerprint)
        refuse_open_knowledge(self.root, remediation.path, "" if said_by is None else said_by.path)

    def mode(self, remediation: Remediation, *, profile: str, host: str) -> Mode:
        """Return how far automation may go with a remediation on this host.

        Args:
            profile: the watcher's own setting; ``site`` leaves it to the knowledge base's profiles.
        """
        from unveil.records.remediation import Mode

        if profile == "site":
            groups = groups_of(host, self.current.groups)
            return self.current.profiles.mode(remediation.name, remediation.mode, host=host, groups=groups)
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
