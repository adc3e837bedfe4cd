"""The variables of a plan: found in the episode, the facts and the site's values, typed, bounded and checked.

Whatever comes from the host may have been chosen by a tenant (a cgroup's path, a container's name), so nothing gets
into a plan unchecked: a text that reaches an address or a playbook's path has a pattern that the whole of it must
match, and a text that is declared *untrusted* is cleaned, cut, and never offered to a template.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, RefusedError
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.errors import UnveilError
    from unveil.records.fact import Fact, FactTable, FactValue
    from unveil.records.match import Episode
    from unveil.records.remediation import Variable

MAX_ELEMENTS = 4096  # more elements than a host has interrupts


def companions(episode: Episode) -> tuple[Entity, ...]:
    """Return where facts and features of an episode are looked for: its entity, what is bound to it, the host."""
    kinds = {str(kind): kind for kind in EntityKind}
    bound = (Entity(kinds[kind], key) for kind, key in episode.last.bindings.items() if kind in kinds)
    return tuple(dict.fromkeys((episode.entity, *bound, HOST)))


def find_fact(facts: FactTable, name: str, places: Iterable[Entity]) -> Fact | None:
    """Return the nearest fact that has a value, else the nearest that says why it has none, else None."""
    found = [fact for entity in places if (fact := facts.find(name, entity)) is not None]
    return next((fact for fact in found if fact.value is not None), found[0] if found else None)


def resolve(
    variables: Iterable[Variable], *, episode: Episode, facts: FactTable, site: Mapping[str, FactValue]
) -> dict[str, FactValue]:
    """Return the value of each variable.

    Raises:
        BadInputError: what a person wrote is wrong: the declaration, a default, a value of the site.
        RefusedError: this host or this episode does not tell the value, or tells one that must not be used.
    """
    return {variable.name: _resolve(variable, episode, facts, site) for variable in variables}


def _resolve(variable: Variable, episode: Episode, facts: FactTable, site: Mapping[str, FactValue]) -> FactValue:
    kind, _, name = variable.origin.partition(".")
    value, missing = _look_up(kind, name, episode=episode, facts=facts, site=site)
    written_by_person = kind in ("site", "") or value is None
    if value is None:
        value = variable.default
    if value is None and variable.untrusted:
        return ""  # it is only shown: a fix is not refused for want of a name
    if value is None:
        hint = "give it a default" if kind != "site" else f"set {name} in inventory/values.yml, or give it a default"
        kind_of_error = BadInputError if kind in ("site", "") else RefusedError
        raise kind_of_error(f"variable {variable.name} has no value: {missing}", hint=hint)
    return _check(variable, value, BadInputError if written_by_person else RefusedError)


def _look_up(
    kind: str, name: str, *, episode: Episode, facts: FactTable, site: Mapping[str, FactValue]
) -> tuple[FactValue | None, str]:
    """Return a value, or None and why there is none."""
    match kind:
        case "":
            return None, "it has neither an origin nor a default"
        case "match":
            return episode.last.bindings.get(name), f"the match binds no {name}"
        case "site":
            return site.get(name), f"the site has no value {name}"
        case "fact" | "setting":
            fact = find_fact(facts, name, companions(episode))
            if fact is None:
                return None, f"this host has no fact {name}"
            because = f"the fact {name} is absent ({fact.reason or 'no reason given'})"
            if kind == "fact":
                return fact.value, because
            return fact.setting, f"the fact {name} has no setting behind it"
        case _:
            raise BadInputError(f"{kind}.{name} is no origin", hint="origins are match., fact., setting. and site.")


def _check(variable: Variable, value: FactValue, error: type[UnveilError]) -> FactValue:
    typed = _typed(variable, value)
    if typed is None:
        raise error(f"variable {variable.name} is no {variable.type}: {_shown(value)}", hint=f"from {variable.origin}")
    match typed:
        case bool():
            return typed
        case int() | float():
            low, high = variable.minimum, variable.maximum
            if (low is not None and typed < low) or (high is not None and typed > high):
                raise error(f"variable {variable.name} is {typed:g}, not within {_bounds(low, high)}")
            return typed
        case str():
            return _text(variable, typed, error)
        case tuple():
            if len(typed) > MAX_ELEMENTS:
                raise error(f"variable {variable.name} has {len(typed)} elements, more than {MAX_ELEMENTS}")
            return tuple(_text(variable, element, error) for element in typed)


def _bounds(low: float | None, high: float | None) -> str:
    return f"{'-∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"


def _typed(variable: Variable, value: FactValue) -> FactValue | None:
    """Return a value in the type of the variable, None when it has another; texts of numbers are numbers."""
    match variable.type:
        case "string":
            if isinstance(value, str):
                return value
            return None if isinstance(value, bool | tuple) else _element(value)
        case "list":
            if not isinstance(value, tuple | list):
                return None
            return tuple(map(_element, value))
        case "boolean":
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value))
        case "integer" | "number":
            return _number(value, whole=variable.type == "integer")
        case _:
            raise BadInputError(
                f"variable {variable.name} has the type {variable.type}, which does not exist",
                hint="types are string, integer, number, boolean and list",
            )


def _element(value: object) -> str:
    """Return a text as it is and a number as a person writes it: facts are floats, and ``1.0`` is no interrupt."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: FactValue, *, whole: bool) -> float | None:
    if isinstance(value, str):
        if not re.fullmatch(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?", value):
            return None
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool | tuple | list) or not math.isfinite(value):
        return None
    if whole:
        return int(value) if float(value).is_integer() else None
    return int(value) if float(value).is_integer() else value  # 700, not 700.0: it becomes text in a setting


def _text(variable: Variable, text: str, error: type[UnveilError]) -> str:
    if variable.untrusted:
        text = clean(text)[: variable.max_length]
    if len(text) > variable.max_length:
        raise error(f"variable {variable.name} has {len(text)} characters, more than {variable.max_length}")
    if variable.pattern and not re.fullmatch(variable.pattern, text):
        raise error(
            f"variable {variable.name} is {_shown(text)}, which does not match {variable.pattern}",
            hint="nothing is planned with a value that its author did not foresee",
        )
    return text


def clean(text: str) -> str:
    """Return a text that a tenant chose without what could steer a terminal or a log: one line, printable."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
