"""Records to plain JSON values and back: one rule for the journal, the control socket and ``--json``.

Frozen dataclasses become objects keyed by field, tuples become lists, enums their value. ``decode`` is driven by the
type hints of the record, so that a journal written by one version is read by the next as long as new fields have
defaults. Records that hold arrays (blocks, windows, vectors) do not travel as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar, Union

from unveil.records import attribution, entity, fact, feature, match, remediation, run, subsystem, verdict, window

Record = TypeVar("Record")

_PLAIN = frozenset({str, int, bool, type(None)})

# Names that the records import only for type checkers, needed to resolve their hints.
_NAMESPACE: dict[str, Any] = {"Mapping": Mapping}
for _module in (attribution, entity, fact, feature, match, remediation, run, subsystem, verdict, window):
    _NAMESPACE.update({name: value for name, value in vars(_module).items() if not name.startswith("_")})


def encode(value: Any) -> Any:
    """Return the JSON value of a record.

    Raises:
        TypeError: the record holds something that does not travel.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if names := _field_names(kind):  # type: ignore[arg-type]  # a class is hashable
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(encode(key)): encode(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{kind.__name__} does not travel as JSON")


def text(record: Any) -> str:
    """Return a record as JSON text: that of ``encode``, cheaper for the usual record.

    Raises:
        TypeError: the record holds something that does not travel.
    """
    try:
        return _PLAINLY.encode(record)
    except (TypeError, ValueError):  # a NaN, or a key that is no text: for these there are rules
        return json.dumps(encode(record), separators=(",", ":"), ensure_ascii=False)


def _plainly(value: Any) -> Any:
    """Return one record or enum as what ``json`` knows, its fields as they are."""
    if names := _field_names(type(value)):  # type: ignore[arg-type]  # a class is hashable
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


_PLAINLY = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False, default=_plainly
)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a record, nothing for what is none. Once a type: a window is encoded every second."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def decode(record: type[Record], value: Mapping[str, Any]) -> Record:
    """Return the record that ``encode`` wrote; fields that the value lacks keep their defaults.

    Raises:
        TypeError, ValueError, KeyError: the value is none of this record.
    """
    known = _makers(record)  # type: ignore[arg-type]  # a class is hashable
    given = {}
    for name, item in value.items():
        if name in known:
            make = known[name]
            given[name] = item if make is None else make(item)
    return record(**given)


_Maker = Callable[[Any], Any]


@cache
def _makers(record: type) -> dict[str, _Maker | None]:
    """Return what makes each field of a record from a JSON value, None where it is the value as it is. Once a type."""
    hints = typing.get_type_hints(record, localns=_NAMESPACE)
    return {field.name: _maker(hints[field.name]) for field in dataclasses.fields(record) if field.init}


def _maker(hint: Any) -> _Maker | None:
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return partial(_decode_union, [(option, _maker(option)) for option in typing.get_args(hint)])
    if origin is tuple:
        inner, *rest = typing.get_args(hint)
        if rest and rest[0] is not Ellipsis:
            return partial(_decode_each, [_maker(each) or _as_it_is for each in (inner, *rest)])
        return _tuple_maker(_maker(inner))
    if _is_mapping(hint):
        key, item = (_maker(each) or _as_it_is for each in typing.get_args(hint))
        return lambda value: {key(name): item(each) for name, each in value.items()}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return partial(decode, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return _float if hint is float else None


def _as_it_is(value: Any) -> Any:
    return value


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _tuple_maker(make: _Maker | None) -> _Maker:
    return tuple if make is None else lambda value: tuple(make(item) for item in value)


def _decode_each(makers: list[_Maker], value: Any) -> tuple[Any, ...]:
    return tuple(make(item) for make, item in zip(makers, value, strict=True))


def _decode_union(options: list[tuple[Any, _Maker | None]], value: Any) -> Any:
    """Return a value as the first of several kinds that its shape fits."""
    if isinstance(value, list):
        return next(_made(make, value) for option, make in options if typing.get_origin(option) is tuple)
    if isinstance(value, Mapping):
        return next(_made(make, value) for option, make in options if _fits(option, value) or _is_mapping(option))
    return value


def _made(make: _Maker | None, value: Any) -> Any:
    return value if make is None else make(value)


def _is_mapping(option: Any) -> bool:
    origin = typing.get_origin(option)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _fits(option: Any, value: Mapping[str, Any]) -> bool:
    """Tell whether a record can be made of a value: of several (the kinds of clause) the first that can is meant."""
    return dataclasses.is_dataclass(option) and all(
        field.name in value
        for field in dataclasses.fields(option)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
