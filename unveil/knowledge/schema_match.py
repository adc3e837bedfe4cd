"""Whether a value has the form of a JSON Schema: yes or no, much faster than a validator that says why.

Files are right far more often than wrong. So our schemas are compiled into closures that answer *no* at the first
departure, and only then `jsonschema` is imported and asked what is wrong. A keyword that is not known here is refused
when the schema is compiled: a form that is only half looked at is never taken for right. Source: JSON Schema 2020-12
(validation vocabulary), of which this is the part that `unveil.knowledge.formats` uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Match = Callable[[Any], bool]

_ANNOTATIONS = frozenset(("$schema", "$id", "title", "description", "default", "$defs", "examples"))
_OF_MAPPINGS = frozenset(("properties", "additionalProperties", "propertyNames"))  # answered together


def compile_schema(schema: Mapping[str, Any]) -> Match:
    """Return the question whether a value has this form.

    Raises:
        ValueError: the schema has a keyword that is not known here.
    """
    parts: list[Match] = []
    for keyword, wanted in schema.items():
        if keyword in _ANNOTATIONS or keyword in _OF_MAPPINGS:
            continue
        make = _KEYWORDS.get(keyword)
        if make is None:
            raise ValueError(f"the keyword {keyword!r} is not known here")
        parts.append(make(wanted))
    if not _OF_MAPPINGS.isdisjoint(schema):
        parts.append(_mapping(schema))
    if len(parts) == 1:
        return parts[0]
    together = tuple(parts)

    return lambda value: all(part(value) for part in together)


def _type(wanted: Any) -> Match:
    names = wanted if isinstance(wanted, list) else [wanted]
    kinds = frozenset(kind for name in names for kind in _TYPES[name])
    whole = "integer" in names and "number" not in names

    def of_type(value: Any) -> bool:
        return type(value) in kinds or (whole and type(value) is float and value.is_integer())

    return of_type


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float), "object": (dict,),
    "array": (list,), "null": (type(None),),
}  # fmt: skip


def _same(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, where true is not one."""
    return bool(value == other) and (isinstance(value, bool) is isinstance(other, bool))


def _enum(wanted: Any) -> Match:
    if all(isinstance(each, str) for each in wanted):
        known = frozenset(wanted)
        return lambda value: isinstance(value, str) and value in known
    return lambda value: any(_same(value, each) for each in wanted)


def _pattern(wanted: Any) -> Match:
    search = re.compile(wanted).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _required(wanted: Any) -> Match:
    keys = tuple(wanted)

    def has(value: Any) -> bool:
        if isinstance(value, dict):
            for key in keys:
                if key not in value:
                    return False
        return True

    return has


def _mapping(schema: Mapping[str, Any]) -> Match:
    properties = {name: compile_schema(each) for name, each in schema.get("properties", {}).items()}
    others = schema.get("additionalProperties", True)
    other: Match | None = compile_schema(others) if isinstance(others, Mapping) else None
    named = compile_schema(schema["propertyNames"]) if "propertyNames" in schema else None

    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        for key, each in value.items():
            if named is not None and not named(key):
                return False
            own = properties.get(key)
            if own is not None:
                if not own(each):
                    return False
            elif others is False or (other is not None and not other(each)):
                return False
        return True

    return fits


def _items(wanted: Any) -> Match:
    match = compile_schema(wanted)
    return lambda value: not isinstance(value, list) or all(map(match, value))


def _unique(wanted: Any) -> Match:
    if not wanted:
        return lambda _: True

    def unique(value: Any) -> bool:
        if not isinstance(value, list):
            return True
        if all(isinstance(each, str) for each in value):
            return len(set(value)) == len(value)
        return not any(_same(each, other) for index, each in enumerate(value) for other in value[:index])

    return unique


def _one_of(wanted: Any) -> Match:
    matches = tuple(compile_schema(each) for each in wanted)
    return lambda value: sum(match(value) for match in matches) == 1


def _any_of(wanted: Any) -> Match:
    matches = tuple(compile_schema(each) for each in wanted)
    return lambda value: any(match(value) for match in matches)


def _all_of(wanted: Any) -> Match:
    matches = tuple(compile_schema(each) for each in wanted)
    return lambda value: all(match(value) for match in matches)


def _number(holds: Callable[[float, float], bool]) -> Callable[[Any], Match]:
    def make(wanted: Any) -> Match:
        def of_number(value: Any) -> bool:
            return not isinstance(value, int | float) or isinstance(value, bool) or holds(value, wanted)

        return of_number

    return make


def _length(kind: type[str | list[Any] | dict[str, Any]], holds: Callable[[int, int], bool]) -> Callable[[Any], Match]:
    return lambda wanted: lambda value: not isinstance(value, kind) or holds(len(value), wanted)


_KEYWORDS: Mapping[str, Callable[[Any], Match]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda wanted: _enum([wanted]),
    "pattern": _pattern,
    "required": _required,
    "items": _items,
    "uniqueItems": _unique,
    "oneOf": _one_of,
    "anyOf": _any_of,
    "allOf": _all_of,
    "minimum": _number(lambda value, bound: value >= bound),
    "maximum": _number(lambda value, bound: value <= bound),
    "exclusiveMinimum": _number(lambda value, bound: value > bound),
    "exclusiveMaximum": _number(lambda value, bound: value < bound),
    "minLength": _length(str, lambda length, bound: length >= bound),
    "maxLength": _length(str, lambda length, bound: length <= bound),
    "minItems": _length(list, lambda length, bound: length >= bound),
    "maxItems": _length(list, lambda length, bound: length <= bound),
    "minProperties": _length(dict, lambda length, bound: length >= bound),
    "maxProperties": _length(dict, lambda length, bound: length <= bound),
}
