"""How far a change of the knowledge base reaches: where recordings get another answer, and which fixes could newly run.

Pure. A fix could newly run when a fingerprint leads to it that did not, when its own bound of automation rose, or when
a fingerprint that leads to it matches somewhere it did not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.plain_text import several
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.behaviour import Behaviour
    from unveil.knowledge.knowledge_base import KnowledgeBase

_MODES = tuple(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A fix that could newly run, and for whom.

    Attributes:
        mode: its own bound; a site's profile may only lower it.
    """

    remediation: str
    mode: str
    fingerprints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """How far a change reaches, of all that was watched.

    Attributes:
        recordings, windows, hosts: that get another answer; of_… how many there are.
    """

    recordings: int
    of_recordings: int
    windows: int
    of_windows: int
    hosts: int
    of_hosts: int
    fixes: tuple[Reach, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Return it in words, one line for recordings and one for each fix; nothing where nothing is reached."""
        said = []
        if self.recordings:
            said.append(
                f"another answer in {self.recordings} of {several(self.of_recordings, 'recording')}, "
                f"{self.windows} of {several(self.of_windows, 'window')}, on {self.hosts} of "
                f"{several(self.of_hosts, 'host')}"
            )
        said += [f"{each.remediation} could newly run ({each.mode}) for {', '.join(each.fingerprints)}"
                 for each in self.fixes]  # fmt: skip
        return tuple(said)


def blast_radius(
    old: KnowledgeBase, new: KnowledgeBase, behaviour: Sequence[Behaviour], watched: Sequence[Trace]
) -> BlastRadius:
    """Return how far a change reaches.

    Args:
        behaviour: where the two sides differ.
        watched: what the newer side said of the recordings.
    """
    moved = {(each.recording, start) for each in behaviour for start in (*each.gained, *each.lost)}
    touched = {each.recording for each in behaviour}
    more = {each.fingerprint for each in behaviour if each.gained or each.fires_after > each.fires_before}
    return BlastRadius(
        recordings=len(touched),
        of_recordings=len(watched),
        windows=len(moved),
        of_windows=sum(len(trace.windows) for trace in watched),
        hosts=len({trace.host for trace in watched if trace.recording in touched}),
        of_hosts=len({trace.host for trace in watched}),
        fixes=tuple(_newly(old, new, more)),
    )


def _newly(old: KnowledgeBase, new: KnowledgeBase, more: set[str]) -> list[Reach]:
    before, after = _led_to(old), _led_to(new)
    found = []
    for name, (mode, fingerprints) in sorted(after.items()):
        was = before.get(name)
        rose = was is None or _MODES.index(mode) > _MODES.index(was[0])
        newly = {each for each in fingerprints if rose or each in more or (was is not None and each not in was[1])}
        if newly and mode is not Mode.OBSERVE:
            found.append(Reach(remediation=name, mode=str(mode), fingerprints=tuple(sorted(newly))))
    return found


def _led_to(knowledge: KnowledgeBase) -> Mapping[str, tuple[Mode, frozenset[str]]]:
    """Return each fix that a fingerprint leads to, with its bound and those fingerprints."""
    return {
        fix.name: (fix.mode, frozenset(each.name for each in knowledge.fingerprints if fix.name in each.remediations))
        for fix in knowledge.remediations
        if any(fix.name in each.remediations for each in knowledge.fingerprints)
    }
