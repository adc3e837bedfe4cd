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
from collections.abc import Mapping
from enum import Enum
from functools import cache
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
    """Return a record as JSON text: that of ``encode``, at a third of the price for the usual record.

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


@cache
def _hints(record: type) -> dict[str, Any]:
    return typing.get_type_hints(record, localns=_NAMESPACE)


def decode(record: type[Record], value: Mapping[str, Any]) -> Record:
    """Return the record that ``encode`` wrote; fields that the value lacks keep their defaults.

    Raises:
        TypeError, ValueError, KeyError: the value is none of this record.
    """
    hints = _hints(record)  # type: ignore[arg-type]  # a class is hashable
    fields = {field.name for field in dataclasses.fields(record) if field.init}  # type: ignore[arg-type]  # a record
    return record(**{name: _decode(hints[name], item) for name, item in value.items() if name in fields})


def _decode(hint: Any, value: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(typing.get_args(hint), value)
    if origin is tuple:
        inner, *rest = typing.get_args(hint)
        if rest and rest[0] is not Ellipsis:
            return tuple(_decode(each, item) for each, item in zip((inner, *rest), value, strict=True))
        return tuple(_decode(inner, item) for item in value)
    if _is_mapping(hint):
        key, item = typing.get_args(hint)
        return {_decode(key, name): _decode(item, each) for name, each in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return decode(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if hint is float and value is not None:
        return float(value)
    return value


def _decode_union(options: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in options:
        return None
    if isinstance(value, list):
        return next(_decode(option, value) for option in options if typing.get_origin(option) is tuple)
    if isinstance(value, Mapping):
        return next(_decode(option, value) for option in options if _fits(option, value) or _is_mapping(option))
    return value


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
