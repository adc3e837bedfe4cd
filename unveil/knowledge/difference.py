"""``kb diff``: what a change of the knowledge base means, for whoever reviews it.

Things are matched by id and then by name, so a rename is one. A file that differs while nothing that is evaluated,
done or told does is a change of its comments or layout, and said to be that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.errors import UnreadableError
from unveil.knowledge.change import Change, Effect
from unveil.knowledge.content import FINGERPRINTS, PLAYBOOKS
from unveil.knowledge.fingerprint_changes import correlation_changes, fingerprint_changes
from unveil.knowledge.loading import MODULES, load
from unveil.knowledge.pack import read_pack
from unveil.knowledge.remediation_changes import remediation_changes
from unveil.knowledge.site_changes import site_changes
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from unveil.knowledge.change import Told
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.knowledge.pack import Pack
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.remediation import Remediation
    from unveil.records.site import Filter

_ORDER = tuple(Effect)
_TEST = ".test.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: what was loaded, and the files that it is of."""

    knowledge: KnowledgeBase
    pack: Pack


def read_side(folder: Path, label: str) -> Side:
    """Return one side.

    Args:
        label: its name for a message, as the person gave it.

    Raises:
        UnreadableError: it cannot be loaded.
    """
    loaded = load(folder)
    if loaded.knowledge is None:
        first = f"{loaded.errors[0]}".removeprefix(f"{folder}/")
        raise UnreadableError(f"{label} cannot be loaded: {first}", hint="only what lints without errors is compared")
    return Side(knowledge=loaded.knowledge, pack=read_pack(folder))


def compare(old: Side, new: Side) -> tuple[Change, ...]:
    """Return every difference, what a reviewer should see first at the head."""
    before, after = old.knowledge, new.knowledge
    changes = [
        *_things("fingerprint", before.fingerprints, after.fingerprints, fingerprint_changes),
        *_things("correlation", before.correlations, after.correlations, correlation_changes),
        *_things("remediation", before.remediations, after.remediations, _remediation(old, new)),
        *_things("filter", before.filters, after.filters, _filter),
        *_tests(old, new),
        *_modules(old, new),
        *site_changes(before, after),
    ]
    changes += _layout(old, new, changes)
    return tuple(sorted(changes, key=lambda each: (_ORDER.index(each.effect), each.kind, each.name)))


def _things(
    kind: str, old: Sequence[Any], new: Sequence[Any], differ: Callable[[Any, Any], Iterator[Told]]
) -> Iterator[Change]:
    by_id, by_name = {each.id: each for each in new}, {each.name: each for each in new}
    met = set()
    for thing in old:
        other = by_id.get(thing.id) or by_name.get(thing.name)
        if other is None:
            # A filter that goes lets things through that it held.
            effect = Effect.LOOSENED if kind == "filter" else Effect.REMOVED
            yield Change(kind=kind, name=thing.name, effect=effect, what="is gone")
            continue
        met.add(other.name)
        for effect, what in differ(thing, other):
            yield Change(kind=kind, name=other.name, effect=effect, what=what)
    for thing in new:
        if thing.name not in met:
            effect, what = _newcomer(kind, thing)
            yield Change(kind=kind, name=thing.name, effect=effect, what=what)


def _newcomer(kind: str, thing: Any) -> Told:
    if kind == "fingerprint":
        fingerprint: Fingerprint = thing
        fixes = f", leads to {', '.join(fingerprint.remediations)}" if fingerprint.remediations else ""
        return Effect.ADDED, f"is new: status {fingerprint.status}, per {fingerprint.group_by}{fixes}"
    if kind == "remediation":
        remediation: Remediation = thing
        addresses = ", ".join(setting.address for setting in remediation.settings) or "nothing that is listed"
        return Effect.RISK, f"is new: status {remediation.status}, mode {remediation.mode}, changes {addresses}"
    if kind == "correlation":
        return Effect.ADDED, f"is new: status {thing.status}, {thing.type} of {', '.join(thing.fingerprints)}"
    return Effect.TIGHTENED, f"is new: {thing.effect} until {thing.expires}"


def _remediation(old: Side, new: Side) -> Callable[[Remediation, Remediation], Iterator[Told]]:
    def differ(before: Remediation, after: Remediation) -> Iterator[Told]:
        yield from remediation_changes(before, after)
        was, now = _beside(old.pack, before.path), _beside(new.pack, after.path)
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                done = "is new" if name not in was else "is gone" if name not in now else "was edited"
                yield Effect.CHANGED, f"{name} {done}"

    return differ


def _beside(pack: Pack, path: str) -> dict[str, str]:
    """Return the digests of what lies in the folder of a remediation, by name."""
    folder = path.rpartition("/")[0]
    return {
        file.removeprefix(f"{folder}/"): pack.digests[file] for file in pack.under(folder, "") if file != path
    }  # fmt: skip


def _filter(old: Filter, new: Filter) -> Iterator[Told]:
    for field in ("name", "id", "fingerprints", "hosts", "entities", "effect", "expires"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield Effect.CHANGED, f"{field} {_words(before)} → {_words(after)}"
    edited = [field for field in ("title", "owner", "reason") if getattr(old, field) != getattr(new, field)]
    if edited:
        yield Effect.TEXT, f"{', '.join(edited)} edited"


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _tests(old: Side, new: Side) -> Iterator[Change]:
    before, after = _cases(old.pack), _cases(new.pack)
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, {}), after.get(name, {})
        if not was or not now:
            effect, done = (Effect.REMOVED, "gone") if was else (Effect.ADDED, "new")
            yield Change(kind="tests", name=name, effect=effect, what=f"{len(was or now)} cases are {done}")
            continue
        for case in dict.fromkeys((*was, *now)):
            effect = Effect.ADDED if case not in was else Effect.REMOVED if case not in now else Effect.CHANGED
            if was.get(case) != now.get(case):
                yield Change(kind="tests", name=name, effect=effect, what=f"case: {case}")


def _cases(pack: Pack) -> dict[str, dict[str, Any]]:
    """Return the cases of each fingerprint by their name."""
    found: dict[str, dict[str, Any]] = {}
    for file in pack.under(FINGERPRINTS, _TEST):
        data = read_yaml(pack.shown(file), pack.files[file]).data
        found[data.get("fingerprint") or data["correlation"]] = {
            case["name"]: {**case, "interval": data.get("interval", "1s")} for case in data["cases"]
        }
    return found


def _modules(old: Side, new: Side) -> Iterator[Change]:
    was, now = ({file: side.pack.digests[file] for file in side.pack.under(MODULES, "")} for side in (old, new))
    for file in sorted(was.keys() | now.keys()):
        if was.get(file) != now.get(file):
            done = "is new" if file not in was else "is gone" if file not in now else "was edited"
            what = f"{done}: it runs in every fix that uses it"
            yield Change(kind="module", name=Path(file).stem, effect=Effect.CHANGED, what=what)


def _layout(old: Side, new: Side, changes: Sequence[Change]) -> Iterator[Change]:
    """Yield files that differ though nothing in them does."""
    told = {(each.kind, each.name) for each in changes}
    for kind, files in _files(new).items():
        for name, file in files.items():
            other = _files(old)[kind].get(name)
            edited = other is not None and old.pack.digests[other] != new.pack.digests[file]
            if edited and (kind, name) not in told:
                yield Change(kind=kind, name=name, effect=Effect.TEXT, what="comments or layout")


def _files(side: Side) -> dict[str, dict[str, str]]:
    tests = side.pack.under(FINGERPRINTS, _TEST)
    return {
        "fingerprint": {each.name: each.path for each in side.knowledge.fingerprints},
        "correlation": {each.name: each.path for each in side.knowledge.correlations},
        "tests": {Path(file).name.removesuffix(_TEST): file for file in tests},
        "remediation": {each.name: f"{PLAYBOOKS}/{each.name}/remediation.yml" for each in side.knowledge.remediations},
        "filter": {each.name: each.path for each in side.knowledge.filters},
    }
