"""Who reviews a file: the CODEOWNERS of the repository in which a knowledge base lies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.knowledge.checks import file_finding
from unveil.knowledge.content import FINGERPRINTS, PLAYBOOKS
from unveil.knowledge.pack import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.pack import Pack
    from unveil.records.problem import Problem

_WILD = re.compile(r"(\*\*/|\*\*|\*|\?)")
_MEANS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def check_owners(pack: Pack, text: str, below: str) -> Iterator[Problem]:
    """Yield fingerprints and remediations for which CODEOWNERS names nobody (K705).

    Args:
        text: of CODEOWNERS. The last pattern that fits a path counts, with the owners on its line, or none.
        below: path of the knowledge base in its repository, empty when it is the repository.
    """
    lines = [line.partition(" #")[0].split() for line in text.splitlines()]
    owned = [(_pattern(words[0]), bool(words[1:])) for words in lines if words and words[0][0] not in "#[^"]
    for path in (*pack.under(FINGERPRINTS, ".yml"), *pack.under(PLAYBOOKS, "/remediation.yml")):
        whole = f"{below}/{path}" if below else path
        if not path.endswith(".test.yml") and not next(
            (to for fits, to in reversed(owned) if fits.match(whole)), False
        ):
            yield file_finding("K705", shown(pack.root, path), "CODEOWNERS names nobody for it", f"/{whole} @team")


def _pattern(text: str) -> re.Pattern[str]:
    """Return what a pattern of CODEOWNERS means; they are gitignore's, without negation and ranges."""
    anchored = "/" in text.rstrip("/")
    body = "".join(_MEANS.get(part) or re.escape(part) for part in _WILD.split(text.strip("/")))
    end = "/.*" if text.endswith("/") else "" if anchored and text.endswith("/*") else "(?:/.*)?"
    return re.compile(f"{'' if anchored else '(?:.*/)?'}{body}{end}\\Z")
