"""Load a knowledge base: the one way for the watcher's start and reload, for ``kb lint`` and for tests.

Files → snapshot (`pack`) → YAML with positions → schema → checks of one file → records → checks over files. What is
found about one content is remembered, so that a loader that is asked again pays for the files that changed
(`unveil.benchmarks.knowledge` measures both).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import file_finding, nearest, silence
from unveil.knowledge.content import FINGERPRINTS, INVENTORY, PLAYBOOKS
from unveil.knowledge.inventory import groups_of_hosts
from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded
from unveil.knowledge.pack import Pack, read_pack
from unveil.knowledge.parse import (
    parse_correlation,
    parse_filter,
    parse_fingerprint,
    parse_profiles,
    parse_remediation,
    parse_site_values,
)
from unveil.knowledge.rules.correlation import FOLDER, check_correlation, check_correlation_tests
from unveil.knowledge.rules.fingerprint import check_fingerprint
from unveil.knowledge.rules.links import Shelf, check_links, check_unique
from unveil.knowledge.rules.names import check_names
from unveil.knowledge.rules.overlap import check_overlap
from unveil.knowledge.rules.playbook import check_playbook, playbook_path
from unveil.knowledge.rules.remediation import check_remediation
from unveil.knowledge.rules.tests import check_tests
from unveil.knowledge.schema_check import check_schema
from unveil.knowledge.yaml_positions import Document, read_yaml
from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from unveil.records.site import Profiles

MODULES = f"{PLAYBOOKS}/modules"
_TEST = ".test.yml"
_CORRELATIONS = f"{FINGERPRINTS}/{FOLDER}/"
_IDENTIFIED = ("Fingerprint", "Correlation", "Remediation", "Filter")
_VALUES = f"{INVENTORY}/values.yml"
_PROFILES = f"{INVENTORY}/profiles.yml"
_HOSTS = f"{INVENTORY}/hosts.yml"
_FILTERS = f"{INVENTORY}/filters"
_ANSIBLE = tuple(f"{INVENTORY}/{name}" for name in ("hosts", "group_vars/", "host_vars/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One file of ours, read and judged by itself.

    Attributes:
        sound: whether the file has the right form, so that others may be judged against it.
    """

    relative: str
    document: Document
    problems: tuple[Problem, ...]
    sound: bool


def load(root: str | Path, *, generation: int = 1, now_s: float | None = None) -> Loaded:
    """Return the knowledge base below a folder, or why there is none.

    Args:
        now_s: seconds since the epoch, for filters that expire; the clock when None.
    """
    return Loader(root).load(generation=generation, now_s=now_s)


class Loader:
    """Loads one folder again and again, and remembers what it found about contents that it met in the last load."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._remembered: dict[tuple[Hashable, ...], Any] = {}
        self._met: dict[tuple[Hashable, ...], Any] = {}

    def load(self, *, generation: int, now_s: float | None = None, pack: Pack | None = None) -> Loaded:
        """Return the folder as it is now, or as it was read a moment ago; see `load`."""
        pack = read_pack(self._root) if pack is None else pack
        self._met = {}  # of a load that broke half-way
        loading = _Loading(pack, self._once)
        loaded = loading.load(generation=generation, now_s=time.time() if now_s is None else now_s)
        # Records of a folder that is broken for a while are wanted again when it is mended.
        good = {} if loaded.knowledge else {key: found for key, found in self._remembered.items() if key[0] == "record"}
        self._remembered, self._met = good | self._met, {}
        for judged in chain.from_iterable(loading.judged.values()):
            judged.document.forget()
        return loaded

    def _once(self, key: tuple[Hashable, ...], compute: Callable[[], Any]) -> Any:
        if key not in self._met:
            self._met[key] = self._remembered[key] if key in self._remembered else compute()
        return self._met[key]


class _Loading:
    """The state of loading one snapshot."""

    def __init__(self, pack: Pack, once: Callable[[tuple[Hashable, ...], Callable[[], Any]], Any]) -> None:
        self.pack = pack
        self.once = once
        self.judged: dict[str, list[Judged]] = {}
        self.problems: list[Problem] = list(pack.problems)

    def load(self, *, generation: int, now_s: float) -> Loaded:
        self._judge_all()
        for relative in self._unread():
            self.problems.append(file_finding("K012", self.pack.shown(relative), "nobody reads this file"))
        playbooks = {judged.relative: self._playbook(judged) for judged in self._sound("Remediation")}
        shelf = self._shelf()
        self.problems += check_links(shelf, now_s=now_s)
        self.problems += check_overlap(shelf.fingerprints, shelf.remediations)
        self.problems += check_unique([judged.document for judged in self._identified()])
        problems = self._silenced()
        if not self.judged.get("Fingerprint"):
            problems.append(file_finding("K011", str(self.pack.root), "there is no fingerprint"))
        problems.sort()
        errors = any(problem.gravity is Gravity.ERROR for problem in problems)
        knowledge = None if errors else self._knowledge(generation, playbooks)
        return Loaded(knowledge=knowledge, problems=tuple(dict.fromkeys(problems)), digest=self.pack.digest)

    def _judge_all(self) -> None:
        for relative in self.pack.under(FINGERPRINTS, ".yml"):
            kind = "Correlation" if relative.startswith(_CORRELATIONS) else "Fingerprint"
            self._judge(relative, f"{kind}Test" if relative.endswith(_TEST) else kind)
        for relative in self.pack.under(PLAYBOOKS, "/remediation.yml"):
            if relative.count("/") == 2:
                self._judge(relative, "Remediation")
        for relative in self.pack.under(_FILTERS, ".yml"):
            self._judge(relative, "Filter")
        for relative, kind in ((_VALUES, "SiteValues"), (_PROFILES, "Profiles")):
            if relative in self.pack.files:
                self._judge(relative, kind)
        folders = {relative.split("/")[1] for relative in self.pack.under(PLAYBOOKS, "") if relative.count("/") >= 2}
        for folder in sorted(folders - {"modules"}):
            if f"{PLAYBOOKS}/{folder}/remediation.yml" not in self.pack.files:
                name = self.pack.shown(f"{PLAYBOOKS}/{folder}")
                self.problems.append(file_finding("K405", name, "the folder has no remediation.yml"))

    def _judge(self, relative: str, kind: str) -> None:
        shown, content = self.pack.shown(relative), self.pack.files[relative]
        key = ("file", kind, shown, relative, self.pack.digests[relative])
        judged: Judged = self.once(key, lambda: judge(shown, relative, content, kind))
        self.judged.setdefault(kind, []).append(judged)
        self.problems += judged.problems

    def _unread(self) -> Iterable[str]:
        """Return files that look as if they should count: YAML by another suffix, or in the wrong place."""
        read = {judged.relative for each in self.judged.values() for judged in each}
        for relative in self.pack.files:
            folder, _, name = relative.rpartition("/")
            if relative in read or not name.endswith((".yml", ".yaml")):
                continue
            # What is beside a remediation is its own affair, and hosts and their variables are Ansible's.
            ansible = relative.startswith(_ANSIBLE) or (folder.startswith(f"{PLAYBOOKS}/") and folder.count("/") == 1)
            if not ansible or name == "remediation.yaml":
                yield relative

    def _sound(self, kind: str) -> list[Judged]:
        return [judged for judged in self.judged.get(kind, ()) if judged.sound]

    def _identified(self) -> list[Judged]:
        return [judged for kind in _IDENTIFIED for judged in self._sound(kind)]

    def _playbook(self, remediation: Judged) -> str:
        """Judge the playbook of a remediation, and return its path below the root, empty when there is none."""
        path = playbook_path(remediation.document, remediation.relative)
        if path is None or path not in self.pack.files:
            apply = remediation.document.data["ansible"]["apply"]
            what = f"{apply!r} leads out of the folder" if path is None else f"there is no file {apply!r} here"
            line, column = remediation.document.at(("ansible", "apply"))
            problem = file_finding("K504", remediation.document.file, what, "the playbook lies beside remediation.yml")
            self.problems.append(replace(problem, line=line, column=column))
            return ""
        modules = frozenset(Path(each).stem for each in self.pack.under(MODULES, ".py"))
        shown, content = self.pack.shown(path), self.pack.files[path]
        key = ("playbook", shown, self.pack.digests[path], self.pack.digests[remediation.relative], modules)
        document, problems = self.once(key, lambda: _judge_playbook(shown, content, remediation.document, modules))
        self.judged.setdefault("", []).append(Judged(relative=path, document=document, problems=(), sound=False))
        self.problems += problems
        return path

    def _shelf(self) -> Shelf:
        by_name = {kind: {each.document.data["name"]: each.document for each in self._sound(kind)}
                   for kind in _IDENTIFIED}  # fmt: skip
        profiles = self._sound("Profiles")
        broken = {
            Path(judged.relative).parent.name if judged.relative.endswith("/remediation.yml")
            else Path(judged.relative).name.removesuffix(".yml")
            for judged in chain.from_iterable(self.judged.values()) if not judged.sound
        }  # fmt: skip
        unread = {Path(problem.file).name.removesuffix(".yml") for problem in self.pack.problems}
        return Shelf(
            fingerprints=by_name["Fingerprint"],
            remediations=by_name["Remediation"],
            filters=by_name["Filter"],
            correlations=by_name["Correlation"],
            tests={judged.document.data["fingerprint"]: judged.document for judged in self._sound("FingerprintTest")}
            | {judged.document.data["correlation"]: judged.document for judged in self._sound("CorrelationTest")},
            values={} if not (site := self._sound("SiteValues")) else site[0].document.data["values"],
            profiles=profiles[0].document if profiles else None,
            broken=frozenset(broken | unread),
        )

    def _silenced(self) -> list[Problem]:
        """Return all problems after the ignore comments of each file."""
        documents = {each.document.file: each.document for group in self.judged.values() for each in group}
        by_file: dict[str, list[Problem]] = {}
        for problem in self.problems:
            by_file.setdefault(problem.file, []).append(problem)
        for file, document in documents.items():
            if document.ignores:
                by_file[file] = list(silence(document, by_file.get(file, ())))
        return [problem for problems in by_file.values() for problem in problems]

    def _knowledge(self, generation: int, playbooks: dict[str, str]) -> KnowledgeBase:
        site = self._sound("SiteValues")
        profiles = self._sound("Profiles")
        more: dict[str, Profiles] = {"profiles": parse_profiles(profiles[0].document.data)} if profiles else {}
        return KnowledgeBase(
            generation=generation,
            digest=self.pack.digest,
            root=str(self.pack.real),
            fingerprints=self._records(
                "Fingerprint", lambda each: parse_fingerprint(each.document.data, each.relative)
            ),
            remediations=self._records("Remediation", lambda each: self._remediation(each, playbooks[each.relative])),
            correlations=self._records(
                "Correlation", lambda each: parse_correlation(each.document.data, each.relative)
            ),
            filters=self._records("Filter", lambda each: parse_filter(each.document.data, each.relative)),
            groups=self._groups(),
            site=parse_site_values(site[0].document.data) if site else {},
            **more,
        )

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """Return the groups of the hosts in Ansible's inventory, none where it is of another form."""
        content = self.pack.files.get(_HOSTS)
        if content is None:
            return {}
        key = ("inventory", self.pack.digests[_HOSTS])
        found: dict[str, tuple[str, ...]] = self.once(
            key, lambda: groups_of_hosts(read_yaml(_HOSTS, content, ours=False).data)
        )
        return found

    def _records(self, kind: str, parse: Callable[[Judged], Any]) -> tuple[Any, ...]:
        records = []
        for judged in self._sound(kind):
            beside = tuple(self._beside(judged.relative).items()) if kind == "Remediation" else ()
            key = ("record", str(self.pack.real), judged.relative, self.pack.digests[judged.relative], beside)
            records.append(self.once(key, lambda judged=judged: parse(judged)))  # type: ignore[misc]  # bound at once
        return tuple(sorted(records, key=lambda record: record.name))

    def _remediation(self, judged: Judged, playbook: str) -> Any:
        path = str(self.pack.real / playbook)
        return parse_remediation(
            judged.document.data, judged.relative, playbook=path, files=self._beside(judged.relative)
        )

    def _beside(self, relative: str) -> dict[str, str]:
        """Return the digests of what runs with a remediation: its folder, and our Ansible modules."""
        folder = relative.rpartition("/")[0]
        wanted = [*self.pack.under(folder, ""), *self.pack.under(MODULES, "")]
        return {path: self.pack.digests[path] for path in wanted if path != relative}


def judge(shown: str, relative: str, content: bytes, kind: str) -> Judged:
    """Judge one file of ours by itself.

    Args:
        shown: its path for messages.
        relative: its path below the knowledge base.
        kind: what belongs at that place.
    """
    document = read_yaml(shown, content)
    problems = list(document.problems)
    if document.data is None:
        return Judged(relative=relative, document=document, problems=tuple(problems), sound=False)
    form = check_schema(document, (kind,))
    problems += form
    problems += check_names(document)
    sound = not any(problem.gravity is Gravity.ERROR and problem.check not in ("K003", "K301") for problem in form)
    if sound and not form:
        match kind:
            case "Fingerprint":
                problems += check_fingerprint(document, relative)
            case "FingerprintTest":
                problems += check_tests(document, relative)
            case "Remediation":
                problems += check_remediation(document, relative)
            case "Correlation":
                problems += check_correlation(document, relative)
            case "CorrelationTest":
                problems += check_correlation_tests(document, relative)
            case "Filter" if document.data["name"] != Path(relative).stem:
                what = f"name {document.data['name']!r} differs from the file's stem {Path(relative).stem!r}"
                hint = nearest(document.data["name"], [Path(relative).stem])
                line, column = document.at(("name",))
                problems.append(replace(file_finding("K103", shown, what, hint), line=line, column=column))
    kept = replace(document, text="", problems=())
    return Judged(relative=relative, document=kept, problems=tuple(problems), sound=sound)


def _judge_playbook(
    shown: str, content: bytes, remediation: Document, modules: frozenset[str]
) -> tuple[Document, tuple[Problem, ...]]:
    document = read_yaml(shown, content, ours=False)
    if document.data is None:
        return document, document.problems
    problems = (*document.problems, *check_playbook(document, remediation, modules))
    return Document(file=shown, ignores=document.ignores), problems  # nobody looks into it again
