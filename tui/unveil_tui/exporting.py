"""Exporting: text that leaves the cockpit, into a file or a clipboard."""

from __future__ import annotations

from pathlib import Path

TRIES = 100


def write_new(text: str, name: str, folder: Path | None = None) -> Path:
    """Write text to a file of its own beside what is there already: ``x.md``, ``x-1.md``; return its path.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder = folder or Path.cwd()
    stem, dot, suffix = name.rpartition(".")
    for number in range(TRIES):
        path = folder / (name if number == 0 else f"{stem}-{number}{dot}{suffix}")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return path
    raise OSError(f"{folder / name} and {TRIES - 1} more are there already")
