"""Checks of one remediation that has the right form: may it act by itself, can it be judged, is its text tame."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError
from unveil.knowledge.checks import finding, nearest
from unveil.knowledge.parse import duration_s
from unveil.knowledge.rules.patterns import takes_for_ever
from unveil.records.entity import EntityKind
from unveil.remediation.setting import parse_address
from unveil.remediation.templates import names as names_in_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem

_TEXT_TYPES = ("string", "list")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_SWITCHES = ("-1", "0", "1")
_PROGRESS_S = 80  # the minute that a step time is taken from, and two more looks that agree


def check_remediation(document: Document, relative: str) -> Iterator[Problem]:
    """Yield what is wrong with a remediation that the schema admits.

    Args:
        relative: its path below the knowledge base, ``playbooks/NAME/remediation.yml``.
    """
    data = document.data
    folder = relative.split("/")[1]
    if data["name"] != folder:
        yield finding("K103", document, ("name",), f"name {data['name']!r} differs from the folder's {folder!r}")
    if not data.get("owner"):
        yield finding("K110", document, ("name",), "nobody owns it", "owner: the team that answers for it")
    if data["mode"] == "auto":
        yield from _automatic(document)
    yield from _verification(document)
    for name, variable in data.get("variables", {}).items():
        yield from _variable(document, name, variable)
    yield from _settings(document)


def _automatic(document: Document) -> Iterator[Problem]:
    """K501: what mode auto demands. Each unmet demand is told where it is unmet."""
    data = document.data
    demands: tuple[tuple[Path, bool, str], ...] = (
        (("status",), data["status"] == "stable", f"mode auto needs status stable, not {data['status']}"),
        (("risk", "reversible"), data["risk"]["reversible"], "mode auto needs a change that can be undone"),
        (("risk", "interrupts_workload"), not data["risk"]["interrupts_workload"],
         "mode auto must not interrupt the workload"),
        (("risk", "requires_reboot"), not data["risk"]["requires_reboot"], "mode auto must not need a reboot"),
        (("rollback", "triggers"), {"apply_failed", "verify_failed"} <= set(data["rollback"]["triggers"]),
         "mode auto needs rollback after apply_failed and verify_failed"),
        (("limits",), "max_hosts" in data["limits"], "mode auto needs limits.max_hosts"),
    )  # fmt: skip
    for path, met, what in demands:
        if not met:
            yield finding("K501", document, path, what, "or lower the mode to approve", on_key=True)


def _verification(document: Document) -> Iterator[Problem]:
    verify, limits = document.data["verify"], document.data["limits"]
    within = duration_s(verify["within"])
    for key, default in (("settings_hold_for", "3s"), ("fingerprint_clear_for", "6s")):
        if duration_s(verify.get(key, default)) > within:
            what = f"verify.within {verify['within']} ends before {key} {verify.get(key, default)}"
            yield finding("K502", document, ("verify", "within"), what)
    for group in ("improve", "must_not_worsen"):
        for place, each in enumerate(verify.get(group, ())):
            after = duration_s(each.get("after", "0s"))
            if after >= within:
                what = f"verify.within {verify['within']} ends before values of {each['feature']} count"
                yield finding("K502", document, ("verify", group, place), what)
            elif each["feature"].startswith("cpu.progress_") and after < _PROGRESS_S:
                what = f"{each['feature']} looks a minute back, so it would be compared with itself"
                yield finding("K502", document, ("verify", group, place), what, f"say after: {_PROGRESS_S}s")
    if duration_s(verify.get("fingerprint_clear_for", "6s")) == 0 and not verify.get("improve"):
        what = "nothing is verified: the fingerprint need not clear and nothing need improve"
        yield finding("K502", document, ("verify",), what, on_key=True)
    if duration_s(limits["cooldown"]) < within:
        what = f"cooldown {limits['cooldown']} ends before verification, {verify['within']}"
        yield finding("K506", document, ("limits", "cooldown"), what)


def _variable(document: Document, name: str, variable: dict[str, Any]) -> Iterator[Problem]:
    path: Path = ("variables", name)
    pattern = variable.get("pattern")
    compiled = None
    if pattern is not None:
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            yield finding("K509", document, (*path, "pattern"), f"the pattern cannot be read: {error}")
        if compiled is not None and takes_for_ever(pattern):
            what = "the pattern takes for ever over a name that a tenant can choose: it repeats a repetition"
            yield finding(
                "K509", document, (*path, "pattern"), what, "demand a character between two, as (/[a-z]+)+ does"
            )
    if variable.get("from", "").startswith("match."):
        key = variable["from"].removeprefix("match.")
        if key not in tuple(EntityKind) or key == EntityKind.HOST:
            what = f"a match binds no {key!r}"
            known = [str(kind) for kind in EntityKind if kind is not EntityKind.HOST]
            hint = nearest(key, known) or f"it binds {', '.join(known)}"
            yield finding("K402", document, (*path, "from"), what, hint)
    if "default" in variable:
        if wrong := _wrong_default(variable, compiled):
            yield finding("K510", document, (*path, "default"), f"the default {wrong}")
    elif "from" not in variable:
        yield finding("K510", document, path, "it has neither from nor default, so never a value", on_key=True)


def _wrong_default(variable: dict[str, Any], pattern: re.Pattern[str] | None) -> str:
    value, kind = variable["default"], variable["type"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "string": isinstance(value, str),
        "integer": number and float(value).is_integer(),
        "number": number,
        "boolean": isinstance(value, bool),
        "list": isinstance(value, list),
    }[kind]
    if not fits:
        return f"{value!r} is not of type {kind}"
    if number and value < variable.get("min", value):
        return f"{value} is less than min {variable['min']}"
    if number and value > variable.get("max", value):
        return f"{value} is more than max {variable['max']}"
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if pattern is not None and (odd := [text for text in texts if not pattern.fullmatch(text)]):
        return f"{odd[0]!r} does not match the pattern"
    if odd := [text for text in texts if len(text) > variable.get("max_length", 4096)]:
        return f"is longer than max_length ({len(odd[0])} characters)"
    return ""


def _settings(document: Document) -> Iterator[Problem]:
    variables: dict[str, dict[str, Any]] = document.data.get("variables", {})
    for index, setting in enumerate(document.data["settings"]):
        path: Path = ("settings", index)
        each = setting.get("for_each")
        if each is not None and variables.get(each, {}).get("type") != "list":
            what = f"for_each names {each!r}, which is no list variable"
            lists = [name for name, variable in variables.items() if variable["type"] == "list"]
            yield finding("K511", document, (*path, "for_each"), what, nearest(each, lists))
        places = [((*path, "address"), setting["address"])]
        places += [((*path, "coupled", at), text) for at, text in enumerate(setting.get("coupled", ()))]
        for place, text in places:
            yield from _template(document, place, text, each)
            yield from _address(document, place, text)
        if _NUMBER.fullmatch(str(setting.get("value"))) and str(setting["value"]) not in _SWITCHES:
            what = f"{setting['value']} for {setting['address']} is a number that a site would choose"
            yield finding("K214", document, (*path, "value"), what, "a variable from site.NAME, with it as the default")
        if isinstance(setting.get("value"), str):
            yield from _template(document, (*path, "value"), setting["value"], each)


def _template(document: Document, path: Path, text: str, each: str | None) -> Iterator[Problem]:
    variables: dict[str, dict[str, Any]] = document.data.get("variables", {})
    try:
        used = names_in_template(text)
    except BadInputError as error:
        yield finding("K511", document, path, error.what, error.hint or "")
        return
    for name in sorted(used):
        if name == "index" and each is not None:
            continue  # a number of ours
        source = each if name == "item" and each is not None else name
        variable = variables.get(source)
        if variable is None:
            hint = nearest(name, variables) or "declare it under variables"
            yield finding("K511", document, path, f"{name!r} is no variable", hint)
        elif variable.get("untrusted", False):
            what = f"{source!r} is text that a tenant chose: it must not reach a setting"
            yield finding("K508", document, path, what)
        elif variable["type"] in _TEXT_TYPES and "pattern" not in variable:
            what = f"{source!r} is {variable['type']} without a pattern and reaches a setting"
            yield finding("K507", document, ("variables", source), what, "pattern: what its text may be", on_key=True)


def _address(document: Document, path: Path, text: str) -> Iterator[Problem]:
    if "{{" in text:
        return  # known only when it is planned
    try:
        parse_address(text)
    except BadInputError as error:
        yield finding("K005", document, path, error.what, error.hint or "")
