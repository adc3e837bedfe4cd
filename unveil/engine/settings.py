"""How one unveil is set up: flags over ``UNVEIL_*`` variables over ``unveil.toml`` (user's, then system's).

A setting has one name everywhere: ``false_alarms_per_day`` in the file, ``UNVEIL_FALSE_ALARMS_PER_DAY`` in the
environment, ``--false-alarms-per-day`` as a flag. The file is read once, at the edge; rooms receive values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.detection.rule import DEFAULT_RULE
from unveil.engine.state_dir import default_state_dir
from unveil.errors import BadInputError, RefusedError
from unveil.execution.played import refuse_open_to_others

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM_FILE = Path("/etc/unveil/unveil.toml")
PREFIX = "UNVEIL_"
NOT_SETTINGS = frozenset({"UNVEIL_NVML_LIBRARY", "UNVEIL_NVML_STATE", "UNVEIL_FIXTURES", "UNVEIL_RUN"})
MODES = ("observe", "manual", "approve", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One unveil's settings.

    Attributes:
        kb: knowledge-base root; empty for the shipped one.
        host_root: where procfs and sysfs of the host are mounted.
        profile: how far automation may go at most on this host; a remediation's own mode only lowers it. ``site``
            takes what the knowledge base's inventory/profiles.yml says, which is to observe where it is silent.
        rule: which detectors decide, e.g. ``shift``, ``zscore|mahalanobis`` or ``2of3``.
        false_alarms_per_day: anomalous stretches a day to expect on an ordinary host. An anomaly only says where to
            look; episodes and fixes come from fingerprints, whether or not a window is anomalous.
        train_always: train detectors that need it also where the rule asks none of them, so that they vote beside.
        ordinary_hours, notable_days, journal_mb: how long the journal keeps ordinary windows; anomalous and matching
            ones; and its size.
        gpu: read NVML (in a child process).
        metrics: ``[ADDRESS:]PORT`` on the loopback where metrics are served; empty for nowhere.
        metrics_file: path of a file for node_exporter's textfile collector; empty for none.
    """

    state_dir: Path
    kb: str = ""
    host_root: Path = Path("/")
    profile: str = "site"
    rule: str = DEFAULT_RULE
    false_alarms_per_day: float = 24.0
    train_always: bool = False
    ordinary_hours: float = 24.0
    notable_days: float = 30.0
    journal_mb: float = 256.0
    gpu: bool = True
    metrics: str = ""
    metrics_file: str = ""


def load_settings(
    flags: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    files: tuple[Path, ...] | None = None,
) -> Settings:
    """Return the settings that hold.

    Args:
        flags: values from the command line; those that are None were not given.
        files: settings files, strongest first; absent ones are skipped.

    Raises:
        BadInputError: an unknown name (with the nearest known one) or a value of the wrong kind, with its place.
    """
    env = os.environ if environment is None else environment
    settings = Settings(state_dir=default_state_dir(dict(env)))
    for file in reversed(_default_files(env) if files is None else files):
        settings = _apply(settings, _read(file), place=str(file))
    variables = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in env.items()
        if name.startswith(PREFIX) and name not in NOT_SETTINGS
    }
    settings = _apply(settings, variables, place="the environment")
    known = {field.name for field in fields(Settings)}
    given = {name: value for name, value in flags.items() if value is not None and name in known}
    return _apply(settings, given, place="the command line")


def _default_files(env: Mapping[str, str]) -> tuple[Path, ...]:
    home = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "/root")) / ".config")
    return (home / "unveil" / "unveil.toml", SYSTEM_FILE)


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error
    try:
        refuse_open_to_others(file)  # e.g. of a user in whose $HOME root was started
    except RefusedError as error:
        raise BadInputError(
            error.what, hint=f"it says how far automation may go, and with which knowledge base: {error.hint}"
        ) from error
    import tomllib  # mostly there is no such file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> BadInputError:
    return BadInputError(f"{file}: {error}", hint="see docs/OPERATING.md for the settings")


def _apply(settings: Settings, values: Mapping[str, Any], *, place: str) -> Settings:
    known = {field.name: field for field in fields(Settings)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            import difflib  # only for what is misspelt

            near = difflib.get_close_matches(name, known, n=1)
            raise BadInputError(
                f"{place}: unknown setting {name!r}", hint=f"did you mean {near[0]!r}?" if near else None
            )
        changes[name] = _convert(name, value, current=getattr(settings, name), place=place)
    return replace(settings, **changes)


def _convert(name: str, value: Any, *, current: Any, place: str) -> Any:
    wrong = BadInputError(f"{place}: {name} cannot be {value!r}")
    if isinstance(current, bool):
        truth = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if isinstance(value, bool):
            return value
        if str(value).lower() in truth:
            return truth[str(value).lower()]
        raise wrong
    try:
        converted = type(current)(value) if not isinstance(current, Path) else Path(value).absolute()
    except (TypeError, ValueError) as error:
        raise wrong from error
    if isinstance(converted, float) and not 0 < converted < inf:
        raise BadInputError(f"{place}: {name} must be a positive number, not {value!r}")
    if name == "profile" and converted not in {"site", *MODES}:
        raise BadInputError(f"{place}: profile cannot be {value!r}", hint=f"one of site, {', '.join(MODES)}")
    return converted
