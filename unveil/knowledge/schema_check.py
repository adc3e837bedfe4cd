"""JSON Schema errors as problems: at the line that is wrong, in words, with the nearest right name.

A failed ``oneOf`` says nothing by itself. So the alternative that the author meant is found first (the one whose
distinguishing keys are there, else the one that comes furthest), and its errors are told instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import finding, nearest
from unveil.knowledge.formats.fragments import (
    DATE_PATTERN,
    DURATION_PATTERN,
    NAME_PATTERN,
    TAG_PATTERN,
    UUID4_PATTERN,
)
from unveil.knowledge.formats.remediation import ADDRESS_PATTERN, ORIGIN_PATTERN
from unveil.knowledge.schema_export import KINDS, schemas
from unveil.knowledge.schema_match import compile_schema
from unveil.remediation.calendar import WINDOW_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema import Draft202012Validator, ValidationError

    from unveil.knowledge.schema_match import Match
    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem

_JSON_NAMES = {str: "text", bool: "true or false", int: "a number", float: "a number", dict: "a mapping",
               list: "a list", type(None): "nothing"}  # fmt: skip
_TYPE_NAMES = {"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number",
               "object": "a mapping", "array": "a list", "null": "nothing"}  # fmt: skip
_PATTERNS = {
    DURATION_PATTERN: ("is not a duration", "write a number and a unit: 6s, 15m, 24h, 7d"),
    NAME_PATTERN: ("is not a name", "lower case letters, digits and _, at least three, a letter first"),
    WINDOW_PATTERN: ("is not a window", "write Sat-Sun 02:00-06:00, or 22:00-04:00; times are UTC"),
    DATE_PATTERN: ("is not a day", 'write it as "2026-11-29"'),
    TAG_PATTERN: ("is not a tag", "e.g. subsystem.cpu, cause.cfs_quota; also impact, vendor, platform, site"),
    ADDRESS_PATTERN: ("is not an address", "file:/sys/…, sysctl:NAME, irq:N/…, cgroup:PATH/FILE, nvml:UUID/…"),
    ORIGIN_PATTERN: ("is not an origin", "match.KEY, fact.NAME, setting.NAME or site.NAME"),
    r"^https?://": ("is not a web address", "it begins with https://"),
}
_BOUNDS = {
    "minimum": "less than {0}", "maximum": "more than {0}", "exclusiveMinimum": "not more than {0}",
    "minLength": "shorter than {0} characters", "maxLength": "longer than {0} characters",
    "minItems": "fewer than {0} entries", "maxItems": "more than {0} entries",
    "minProperties": "fewer than {0} entries", "maxProperties": "more than {0} entries",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """What a validation error says, by our names.

    Attributes:
        keyword: of the schema, e.g. ``required``; wanted: its value; schema: the mapping it stands in.
        of_key: whether the key is wrong, not the value.
        context: of an alternative that failed: (its number, why).
    """

    path: Path
    keyword: str
    wanted: Any
    instance: Any
    schema: Mapping[str, Any]
    message: str
    of_key: bool
    context: tuple[tuple[int, _Failure], ...]


def _failure(error: ValidationError) -> _Failure:
    return _Failure(
        path=tuple(error.absolute_path),
        keyword=str(error.validator),
        wanted=error.validator_value,
        instance=error.instance,
        schema=error.schema if isinstance(error.schema, Mapping) else {},
        message=error.message,
        of_key="propertyNames" in error.absolute_schema_path,
        context=tuple((int(each.relative_schema_path[0]), _failure(each)) for each in error.context or ()),
    )


@cache
def _matches() -> dict[str, Match]:
    """Return for each kind the question whether a document has its form."""
    return {kind: compile_schema(schema) for kind, schema in schemas().items()}


@cache
def _validators() -> dict[str, Draft202012Validator]:
    """Return one validator for each kind, which says what is wrong."""
    from jsonschema import Draft202012Validator  # 0.1 s, and only what is wrong needs it

    built = schemas()
    for schema in built.values():
        Draft202012Validator.check_schema(schema)
    return {kind: Draft202012Validator(schema) for kind, schema in built.items()}


def check_schema(document: Document, expected: tuple[str, ...]) -> tuple[Problem, ...]:
    """Return everything in which a document departs from the format of its kind.

    Args:
        expected: kinds that may stand at the document's place.
    """
    if not isinstance(document.data, dict):
        return (finding("K005", document, (), f"{_JSON_NAMES[type(document.data)]} where a mapping belongs"),)
    kind = document.data.get("kind")
    if kind not in expected:
        known = kind in KINDS
        if kind is None:
            return (finding("K005", document, (), f"kind is missing, here {' or '.join(expected)}"),)
        what = f"a {kind} does not belong here" if known else f"unknown kind {kind!r}"
        hint = f"here: {' or '.join(expected)}" if known else nearest(kind, expected) or f"here: {expected[0]}"
        return (finding("K005", document, ("kind",), what, hint),)
    if _matches()[kind](document.data):
        return ()
    errors = _validators()[kind].iter_errors(document.data)
    return tuple(problem for error in errors for problem in _problems(document, _failure(error)))


def _problems(document: Document, error: _Failure) -> Iterator[Problem]:
    path = error.path
    match error.keyword:
        case "additionalProperties":
            known = sorted(error.schema.get("properties", ()))
            for key in error.instance:
                if key not in known:
                    hint = nearest(key, known) or (f"known: {', '.join(known)}" if len(known) < 12 else "")
                    yield finding("K004", document, (*path, key), f"unknown key {key!r}", hint, on_key=True)
        case "required":
            missing = [key for key in error.wanted if key not in error.instance]
            if not error.message.startswith(repr(missing[0])):
                return  # jsonschema reports one error per missing key; tell them together
            check = "K301" if missing == ["falsepositives"] else "K101" if missing == ["id"] else "K005"
            yield finding(check, document, path, f"{_and(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        case "enum" | "const":
            yield _choice(document, path, error)
        case "type":
            wanted = error.wanted if isinstance(error.wanted, list) else [error.wanted]
            names = " or ".join(dict.fromkeys(_TYPE_NAMES[name] for name in wanted))
            hint = "leave the quotes out" if _quoted_number(error.instance, wanted) else ""
            hint = hint or ("quote it" if names == "text" and not isinstance(error.instance, dict | list) else "")
            yield finding("K005", document, path, _misplaced(error.instance, names), hint)
        case "pattern":
            yield _pattern(document, path, error)
        case "oneOf" | "anyOf":
            yield from _alternatives(document, path, error)
        case "uniqueItems":
            twice = next(index for index, item in enumerate(error.instance) if item in error.instance[:index])
            yield finding("K005", document, (*path, twice), f"{_shown(error.instance[twice])} stands twice in the list")
        case str(keyword) if keyword in _BOUNDS:
            said = _BOUNDS[keyword].format(error.wanted)
            yield finding("K005", document, path, f"{_shown(error.instance)} is {said}")
        case _:
            yield finding("K005", document, path, error.message)


def _choice(document: Document, path: Path, error: _Failure) -> Problem:
    values = [error.wanted] if error.keyword == "const" else list(error.wanted)
    shown = ", ".join(map(str, values)) if len(values) <= 12 else f"one of {len(values)} names"
    hint = nearest(error.instance, map(str, values)) or f"known: {shown}"
    on_key = error.of_key
    target = (*path, error.instance) if on_key else path
    return finding("K005", document, target, f"{_shown(error.instance)} is not known here", hint, on_key=on_key)


def _pattern(document: Document, path: Path, error: _Failure) -> Problem:
    what, hint = _PATTERNS.get(error.wanted, ("does not have the right form", f"{error.wanted}"))
    check = "K005"
    if error.wanted == UUID4_PATTERN:
        check, what, hint = "K101", "is not a UUIDv4", "python3 -c 'import uuid; print(uuid.uuid4())'"
    on_key = error.of_key
    target = (*path, error.instance) if on_key else path
    return finding(check, document, target, f"{_shown(error.instance)} {what}", hint, on_key=on_key)


def _alternatives(document: Document, path: Path, error: _Failure) -> Iterator[Problem]:
    branches: dict[int, list[_Failure]] = {}
    for index, each in error.context:
        branches.setdefault(index, []).append(each)
    options: list[dict[str, Any]] = error.wanted
    if all(set(option) == {"required"} for option in options):
        yield _required_choice(document, path, error.instance, options)
    elif not branches:
        yield finding("K005", document, path, f"{_shown(error.instance)} is more than one thing at once")
    elif all(_own_type(each, error) for each in (branch[0] for branch in branches.values())):
        wanted = [name for branch in branches.values() for name in _types(branch[0].wanted)]
        names = " or ".join(dict.fromkeys(_TYPE_NAMES[name] for name in wanted))
        yield finding("K005", document, path, _misplaced(error.instance, names))
    elif isinstance(error.instance, dict) and not any(map(error.instance.__contains__, _heads(options))):
        yield finding("K005", document, path, f"exactly one of {_and(_heads(options), 'or')} is needed", on_key=True)
    else:
        for each in _meant(error.instance, options, branches):
            yield from _problems(document, each)


def _required_choice(document: Document, path: Path, instance: Any, options: list[dict[str, Any]]) -> Problem:
    groups: list[list[str]] = [option["required"] for option in options]
    there = [group for group in groups if all(key in instance for key in group)]
    begun = [group for group in groups if len(group) > 1 and any(key in instance for key in group)]
    if len(there) > 1:
        # The one that was written last is the one too many.
        last = max((group[0] for group in there), key=lambda key: document.at_key((*path, key)))
        what = f"{_and([' and '.join(group) for group in there])} stand together: exactly one is needed"
        return finding("K005", document, (*path, last), what, "make two clauses of it", on_key=True)
    if begun and not there:
        missing = dict.fromkeys(key for group in begun for key in group if key not in instance)
        written = [key for key in begun[0] if key in instance]
        what = f"{_and(written)} {'needs' if len(written) == 1 else 'need'} {_and(list(missing), 'or')}"
        return finding("K005", document, path, what, on_key=True)
    names = [" with ".join(group) for group in groups]
    return finding("K005", document, path, f"exactly one of {_and(names, 'or')} is needed", on_key=True)


def _own_type(each: _Failure, parent: _Failure) -> bool:
    return each.keyword == "type" and each.path == parent.path


def _heads(options: list[dict[str, Any]]) -> list[str]:
    """Return the keys that tell the alternatives apart: the first that each of them requires."""
    return [option["required"][0] for option in options if option.get("required")]


def _meant(instance: Any, options: list[dict[str, Any]], branches: dict[int, list[_Failure]]) -> list[_Failure]:
    """Return the errors of the alternative that the author meant."""
    if isinstance(instance, dict):
        for index, option in enumerate(options):
            heads = option.get("required", ())
            if heads and heads[0] in instance and index in branches:
                return branches[index]
    furthest = max(branches.values(), key=lambda errors: (max(len(each.path) for each in errors), -len(errors)))
    return [each for each in furthest if each.keyword != "type" or len(furthest) == 1] or furthest


def _quoted_number(instance: Any, wanted: Iterable[str]) -> bool:
    if not isinstance(instance, str) or not {"number", "integer"} & set(wanted):
        return False
    try:
        float(instance)
    except ValueError:
        return False
    return True


def _types(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _and(names: list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _misplaced(value: Any, wanted: str) -> str:
    kind = _JSON_NAMES[type(value)]
    return (
        f"{kind} where {wanted} belongs"
        if value is None or isinstance(value, dict | list)
        else (f"{_shown(value)} is {kind} where {wanted} belongs")
    )


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else "true" if value is True else "false" if value is False else (
        "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"
        if isinstance(value, list) else str(value)
    )  # fmt: skip
    return text if len(text) <= 60 else f"{text[:57]}…"
