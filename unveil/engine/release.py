"""Release: which version of unveil is installed, told without what it costs to ask for it."""

from __future__ import annotations

import os
import sys

_PREFIX, _SUFFIX = "unveil-", ".dist-info"


def release() -> str:
    """Return the version of the installed package.

    ``importlib.metadata`` parses the metadata as a mail, and the mail package stays in memory, for a word that stands
    in the name of a folder (``python -m unveil.benchmarks.imports``). It is asked only where there is no such folder.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208  # names, not Paths
        except OSError:
            continue  # a zip file, or gone
        for name in names:
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                return name[len(_PREFIX) : -len(_SUFFIX)]
    from importlib.metadata import version

    return version("unveil")
