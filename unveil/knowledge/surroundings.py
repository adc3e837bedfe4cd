"""What stands around a knowledge base and says something about its files: a pack's manifest, and CODEOWNERS.

Both are for whoever lints, not for a watcher: what they say keeps nothing from being used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_MANIFEST = "kb.json"  # as unveil.knowledge.archive has it, which is only imported when there is one
_OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")  # the first one counts
_MOST_BYTES = 8_000_000


class Surroundings(NamedTuple):
    """What was found.

    Attributes:
        manifest: content of ``kb.json`` beside the folders, None without.
        owners: content of the repository's CODEOWNERS, None without.
        below: path of the knowledge base in the repository, empty when it is the repository.
    """

    manifest: bytes | None
    owners: bytes | None
    below: str


def look_around(real: Path) -> Surroundings:
    """Return what stands around a folder.

    Args:
        real: the knowledge base, without symbolic links.
    """
    repository = next((each for each in (real, *real.parents) if os.path.lexists(each / ".git")), None)
    owners = None
    if repository is not None:
        owners = next((text for name in _OWNERS if (text := _content(repository / name)) is not None), None)
    below = "" if repository is None or repository == real else real.relative_to(repository).as_posix()
    return Surroundings(manifest=_content(real / _MANIFEST), owners=owners, below=below)


def _content(path: Path) -> bytes | None:
    """Return a file of a size that can be meant, None where there is no such."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
