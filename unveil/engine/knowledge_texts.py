"""Texts of the knowledge base's files, for who wants to read one on a screen.

A file system may hang, and the watch loop must not: files are read by a thread, the answer is there the next time.
Only files of the knowledge base are told, as they are on the disk now, which may be newer than what is in use. Of the
inventory only what is ours: in Ansible's own files (hosts and their variables) are passwords, and whoever has a role
here may ask.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path, PurePosixPath
from typing import Any

from unveil.errors import BadInputError

FOLDERS = ("fingerprints", "playbooks")
OF_INVENTORY = ("inventory/profiles.yml", "inventory/values.yml", "inventory/filters/")
SUFFIXES = (".yml", ".yaml", ".py", ".j2")
MAX_BYTES = 200_000
FRESH_S = 2.0
MAX_KEPT = 8


class KnowledgeTexts:
    """Reads one file at a time, and keeps the last few."""

    def __init__(self) -> None:
        self._told: dict[Path, tuple[float, dict[str, Any]]] = {}
        self._reader: threading.Thread | None = None

    def ask(self, root: str, relative: str) -> dict[str, Any]:
        """Return ``{"path", "text", "reading", "problem"}``; *text* is None while the file is being read.

        Raises:
            BadInputError: that is no file of a knowledge base.
        """
        parts = PurePosixPath(relative).parts
        if not _told(parts) or not relative.endswith(SUFFIXES):
            raise BadInputError(f"{relative[:80]!a} is no file of a knowledge base", hint="see `unveil kb explain`")
        path = Path(root, *parts)
        at_s, told = self._told.get(path, (0.0, {"path": relative, "text": None, "reading": True, "problem": ""}))
        if time.monotonic() - at_s > FRESH_S and (self._reader is None or not self._reader.is_alive()):
            self._reader = threading.Thread(
                target=self._read, args=(Path(root), path, relative), name="knowledge text", daemon=True
            )
            self._reader.start()
        return told

    def _read(self, root: Path, path: Path, relative: str) -> None:
        told: dict[str, Any] = {"path": relative, "text": None, "reading": False, "problem": ""}
        try:
            base, real = root.resolve(), path.resolve()
            if not real.is_relative_to(base) or not _told(real.relative_to(base).parts) or not path.is_file():
                told["problem"] = "it is not there, or leads out of the knowledge base"
            else:
                with path.open("rb") as file:
                    told["text"] = file.read(MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            told["problem"] = str(error)
        kept = {**self._told, path: (time.monotonic(), told)}
        self._told = dict(list(kept.items())[-MAX_KEPT:])


def _told(parts: tuple[str, ...]) -> bool:
    """Tell whether a path below the knowledge base is of a file that is told."""
    whole = "/".join(parts)
    return bool(parts) and ".." not in parts and (parts[0] in FOLDERS or whole.startswith(OF_INVENTORY))
