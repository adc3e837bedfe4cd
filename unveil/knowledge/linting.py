"""``kb lint``: every finding below a folder. What was found last time is taken from the cache where nothing changed.

Importing this costs little: the loader, with YAML and numpy, is imported only when there is something to judge.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.knowledge.lint_cache import cache_folder, keep, recall, result_key
from unveil.knowledge.pack import read_pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.problem import Problem


def lint(
    root: str | Path,
    paths: Iterable[str | Path] | None = None,
    *,
    now_s: float | None = None,
    cached: bool = True,
) -> tuple[Problem, ...]:
    """Return every finding below a folder, or only those in some files or folders; the whole is always judged.

    Args:
        now_s: seconds since the epoch, for filters that expire; the clock when None.
        cached: whether the cache may answer.
    """
    now_s = time.time() if now_s is None else now_s
    problems = _found(Path(root), now_s, cache_folder() if cached else None)
    if paths is None:
        return problems
    wanted = [Path(path).resolve() for path in paths]
    return tuple(
        problem for problem in problems if any(Path(problem.file).resolve().is_relative_to(path) for path in wanted)
    )


def _found(root: Path, now_s: float, folder: Path | None) -> tuple[Problem, ...]:
    pack = read_pack(root)
    key = result_key(pack, now_s) if folder is not None else ""
    found = recall(folder, key)
    if found is None:
        from unveil.knowledge.loading import Loader

        found = Loader(root).load(generation=1, now_s=now_s, pack=pack).problems
        keep(folder, key, found)
    return found
