"""``kb lint``: every finding below a folder. What was found last time is taken from the cache where nothing changed.

Importing this costs little: the loader, with YAML and numpy, is imported only when there is something to judge.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.knowledge.lint_cache import cache_folder, keep, recall, result_key
from unveil.knowledge.pack import read_pack
from unveil.records.digest import sha256

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


def lint_playbooks(root: str | Path, *, cached: bool = True) -> tuple[tuple[Problem, ...], str]:
    """Return what ansible-lint finds in the playbooks, and why it could say nothing, empty when it could.

    It takes most of a second a playbook: what it said of these files is kept, too.
    """
    from unveil.knowledge.ansible_lint import find, judge_playbooks
    from unveil.knowledge.content import PLAYBOOKS

    program = find()
    if program is None:
        return (), "ansible-lint is not installed"
    pack = read_pack(Path(root))
    files = [path for path in pack.under(PLAYBOOKS, ".yml") if not path.endswith("/remediation.yml")]
    folder = cache_folder() if cached else None
    told = [program, Path(program).stat().st_mtime_ns, *(pack.digests[path] for path in pack.under(PLAYBOOKS, ""))]
    key = sha256(repr((str(root), str(pack.real), told)).encode()).hexdigest()
    found = recall(folder, key)
    if found is not None:
        return found, ""
    found, why = judge_playbooks(program, Path(root), files)
    if not why:
        keep(folder, key, found)
    return found, why


def lint_against(root: str | Path, revision: str) -> tuple[Problem, ...]:
    """Return what is odd about the way from a revision to the files as they are (K108).

    Raises:
        BadInputError: there is no such revision.
    """
    from unveil.knowledge.loading import load
    from unveil.knowledge.revisions import knowledge_at
    from unveil.knowledge.rules.history import check_history

    with knowledge_at(revision, Path(root)) as folder:
        before = load(folder).knowledge
    after = load(root).knowledge
    return () if before is None or after is None else tuple(check_history(before, after, Path(root)))


def _found(root: Path, now_s: float, folder: Path | None) -> tuple[Problem, ...]:
    pack = read_pack(root)
    key = result_key(pack, now_s) if folder is not None else ""
    found = recall(folder, key)
    if found is None:
        from unveil.knowledge.loading import Loader

        found = Loader(root).load(generation=1, now_s=now_s, pack=pack).problems
        keep(folder, key, found)
    return found
