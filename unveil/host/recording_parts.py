"""Names of a recording's files: ``NAME``, its parts ``NAME.part-0001`` and on, ``….writing`` while one is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def part_path(path: Path, number: int) -> Path:
    """Return the path of a part of a recording, counted from 1."""
    return path.with_name(f"{path.name}.part-{number:04d}")


def part_number(part: Path) -> int:
    """Return the number of a part, 0 for a path that is none."""
    digits = part.name.rpartition(".part-")[2]
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def parts_of(path: Path) -> tuple[Path, ...]:
    """Return the parts of a recording that are there, in the order in which they were written."""
    found = [part for part in path.parent.glob(f"{_escaped(path.name)}.part-*") if part_number(part) > 0]
    return tuple(sorted(found, key=part_number))


def writing_path(path: Path) -> Path:
    """Return where a file of a recording is written before it appears under its name."""
    return path.with_name(f"{path.name}.writing")


def half_written(path: Path) -> tuple[Path, ...]:
    """Return what a crash left of files that were being written."""
    name = _escaped(path.name)
    return (*path.parent.glob(f"{name}.writing"), *path.parent.glob(f"{name}.part-*.writing"))


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
