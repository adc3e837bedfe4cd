"""``kb lint``: every finding below a folder. What was found last time is taken from the cache where nothing changed.

Importing this costs little: the loader, with YAML and numpy, is imported only when there is something to judge.
"""

from __future__ import annotations

import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.knowledge.lint_cache import cache_folder, keep, recall, result_key
from unveil.knowledge.pack import read_pack
from unveil.knowledge.surroundings import look_around
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.knowledge.pack import Pack
    from unveil.knowledge.surroundings import Surroundings
    from unveil.knowledge.yaml_positions import Document
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

    It takes long: what it said of these files is kept, too.
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
    """Return what is odd about the way from a revision to the files as they are (K104, K108).

    Raises:
        BadInputError: there is no such revision.
    """
    from unveil.knowledge.revisions import knowledge_at
    from unveil.knowledge.rules.history import check_history

    with knowledge_at(revision, Path(root)) as folder:
        before = _identified(read_pack(Path(folder)))
    pack = read_pack(Path(root))
    return _unsilenced(pack, check_history(before, _identified(pack)))


def _identified(pack: Pack) -> dict[str, Document]:
    """Return what has an id, by its id; other checks tell of what cannot be read."""
    from unveil.knowledge.content import FINGERPRINTS, PLAYBOOKS
    from unveil.knowledge.yaml_positions import read_yaml

    paths = (*pack.under(FINGERPRINTS, ".yml"), *pack.under(PLAYBOOKS, "/remediation.yml"))
    documents = (read_yaml(pack.shown(path), pack.files[path]) for path in paths if not path.endswith(".test.yml"))
    return {
        each.data["id"]: each
        for each in documents
        if isinstance(each.data, dict) and isinstance(each.data.get("id"), str)
    }


def _unsilenced(pack: Pack, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return what is not silenced in the file that it is about."""
    from unveil.knowledge.checks import unsilenced
    from unveil.knowledge.yaml_positions import read_yaml

    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    for path, content in pack.files.items():
        if path.endswith(".yml") and (file := pack.shown(path)) in by_file:
            by_file[file] = unsilenced(read_yaml(file, content, ours=False), by_file[file])
    return tuple(sorted(chain.from_iterable(by_file.values())))


def _about_surroundings(pack: Pack, around: Surroundings) -> Iterable[Problem]:
    """Yield what stands around the folder and its files do not keep to."""
    if around.manifest is not None:
        from unveil.knowledge.rules.packed import check_packed

        yield from check_packed(pack, around.manifest)
    if around.owners is not None:
        from unveil.knowledge.rules.owners import check_owners

        yield from check_owners(pack, around.owners.decode(errors="replace"), around.below)


def _found(root: Path, now_s: float, folder: Path | None) -> tuple[Problem, ...]:
    pack = read_pack(root)
    around = look_around(pack.real)
    key = result_key(pack, now_s, around) if folder is not None else ""
    found = recall(folder, key)
    if found is None:
        from unveil.knowledge.loading import Loader

        found = Loader(root).load(generation=1, now_s=now_s, pack=pack).problems
        found = tuple(sorted((*found, *_unsilenced(pack, _about_surroundings(pack, around)))))
        keep(folder, key, found)
    return found
