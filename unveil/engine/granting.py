"""Whether what a site's inventory grants may be believed: who can write it can make themselves an operator.

Looked at when a generation is taken up, after its files were read, and again every few seconds. What others wrote
cannot be told from what its owner wrote: what was read while they could write stays in doubt when the file is closed to
them, until it says something else, or the watcher's owner says that it is right.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.errors import RefusedError
from unveil.execution.played import refuse_open_to_others
from unveil.knowledge.content import INVENTORY

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.site import Profiles

_PROFILES = "profiles.yml"
_HOSTS = "hosts.yml"
_VALUES = "values.yml"
_WITHHELD = "roles and modes of inventory/profiles.yml do not hold, only root and the watcher's user may order"


def refuse_open_knowledge(root: Path, *paths: str) -> None:
    """Refuse to act upon files of the knowledge base that others may write, whatever they say now.

    Args:
        paths: below the root; an empty one is none.

    Raises:
        RefusedError: one of them, or the site's values, may be written by others.
    """
    values = f"{INVENTORY}/{_VALUES}"
    for path in filter(None, (*paths, values if os.path.lexists(root / values) else "")):
        refuse_open_to_others(root / path)


def why_withheld(root: Path, profiles: Profiles, *, doubtful: bool = False) -> str:
    """Return why nothing of what a site grants (roles, modes above observe) may hold, and the cure; empty where it may.

    Args:
        root: the knowledge base as it was named; every folder and link on the way to its inventory counts.
        doubtful: whether it was read while others could write it, and nobody has said since that it is right.
    """
    if not profiles.grants:
        return ""
    names = [_PROFILES]
    if any(each.groups for each in profiles.profiles) and os.path.lexists(root / INVENTORY / _HOSTS):
        names.append(_HOSTS)  # it says which hosts are in the groups
    for name in names:
        try:
            refuse_open_to_others(root / INVENTORY / name)
        except RefusedError as error:
            cure = ", ".join(filter(None, ("read what it says now, write it anew", error.hint)))
            return f"{_WITHHELD}: {error.what} ({cure})"
        except OSError as error:  # replaced while it was looked at
            return f"{_WITHHELD}: who may write {root / INVENTORY / name} cannot be told ({error.strerror})"
    if doubtful:
        cure = "read what it says now; if that is right, send the watcher SIGHUP, or start it anew"
        return f"{_WITHHELD}: others could write {root / INVENTORY / _PROFILES} when it was read ({cure})"
    return ""
