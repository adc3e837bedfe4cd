"""``kb lint --fix``: mend what has only one right answer, in place: comments and layout stay as they are.

| check | what is done |
|---|---|
| K003 | a scalar that YAML 1.1 reads differently is quoted; where true or false belongs, it is written so |
| K013 | an ignore comment that silences nothing goes |
| K101 | a missing or wrong id becomes a new UUIDv4 |
| K601 | a play says gather_facts: false |
| K607 | a builtin module is written in full |

Whatever could be meant otherwise (a threshold, a name, an octal number) is left to the person.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnwritableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from unveil.records.problem import Problem

_SWITCHES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_SCALAR = re.compile(r"[^\s,\[\]{}#:]+(?::[^\s,\[\]{}#]+)*")
_AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+\Z|.*_|0[bB]")
_IGNORE = re.compile(r"\s*#\s*unveil-ignore:.*$")
_BUILTINS = frozenset(
    ("assert", "blockinfile", "command", "copy", "debug", "fail", "file", "lineinfile", "meta", "service", "set_fact",
     "slurp", "stat", "systemd", "systemd_service", "template", "wait_for")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What was done about a finding."""

    problem: Problem
    what: str


def fix(problems: Iterable[Problem]) -> tuple[Fix, ...]:
    """Mend what can be mended of some findings, in their files, and return what was done.

    Raises:
        UnwritableError: a file cannot be written. Files before it are mended.
    """
    by_file: dict[str, list[Problem]] = {}
    everything = tuple(problems)
    for problem in everything:
        if problem.check in _MENDERS:
            by_file.setdefault(problem.file, []).append(problem)
    wants_boolean = {(each.file, each.line, each.column) for each in everything if "true or false belongs" in each.what}
    done: list[Fix] = []
    for file, found in by_file.items():
        try:
            with open(file, encoding="utf-8", newline="") as stream:  # noqa: PTH123  # as it is, also its line ends
                lines = stream.read().split("\n")
        except (OSError, UnicodeDecodeError):
            continue  # lint has said so
        mended = []
        for problem in sorted(found, reverse=True):  # from the end, so that places stay right
            boolean = (problem.file, problem.line, problem.column) in wants_boolean
            if what := _MENDERS[problem.check](lines, problem, boolean):
                mended.append(Fix(problem=problem, what=what))
        if mended:
            _write(Path(file), "\n".join(lines))
            done += reversed(mended)
    return tuple(done)


def _look_alike(lines: list[str], problem: Problem, boolean: bool) -> str:
    line, before = _at(lines, problem)
    found = _SCALAR.match(line, before)
    if found is None or line[before - 1 : before] in ("'", '"') or "finite" in problem.what:
        return ""
    text = found.group()
    if boolean and text.lower() in _SWITCHES:
        new = _SWITCHES[text.lower()]
    elif _AMBIGUOUS.match(text):
        return ""
    else:
        new = f'"{text}"'
    lines[problem.line - 1] = line[:before] + new + line[found.end() :]
    return f"{text} is written {new}"


def _idle_ignore(lines: list[str], problem: Problem, _: bool) -> str:
    line, before = _at(lines, problem)
    kept = _IGNORE.sub("", line[:before].rstrip() + line[before:]) if "unveil-ignore" in line[before:] else line
    if kept == line:
        return ""
    if kept.strip():
        lines[problem.line - 1] = kept
    else:
        del lines[problem.line - 1]
    return "the ignore comment is gone"


def _identity(lines: list[str], problem: Problem, _: bool) -> str:
    new = str(uuid.uuid4())
    if "missing" in problem.what:
        at = next((index for index, line in enumerate(lines) if re.match(r"name:\s", line)), None)
        if at is None:
            return ""
        end = "\r" if lines[at].endswith("\r") else ""
        lines.insert(at + 1, f"id: {new}{end}")
        return f"id: {new}"
    line, before = _at(lines, problem)
    found = re.compile(r"""(['"]?)[^\s'"#,{}]+\1""").match(line, before)
    if found is None:
        return ""
    lines[problem.line - 1] = line[:before] + new + line[found.end() :]
    return f"id: {new}"


def _facts(lines: list[str], problem: Problem, _: bool) -> str:
    line, before = _at(lines, problem)
    if re.match(r"gather_facts\s*:", line.lstrip(" -")):
        lines[problem.line - 1] = re.sub(r"(gather_facts\s*:\s*)[^\s#]+", r"\1false", line)
        return "gather_facts: false"
    hosts = next((at for at in range(problem.line - 1, len(lines)) if re.match(r"[\s-]*hosts\s*:", lines[at])), None)
    if hosts is None:
        return ""
    end = "\r" if lines[hosts].endswith("\r") else ""
    lines.insert(hosts + 1, f"{' ' * before}gather_facts: false{end}")
    return "gather_facts: false"


def _full_name(lines: list[str], problem: Problem, _: bool) -> str:
    line, before = _at(lines, problem)
    found = re.compile(r"[a-z_]+(?=\s*:)").match(line, before)
    if found is None or found.group() not in _BUILTINS:
        return ""
    lines[problem.line - 1] = f"{line[:before]}ansible.builtin.{line[before:]}"
    return f"ansible.builtin.{found.group()}"


_MENDERS: Mapping[str, Callable[[list[str], Problem, bool], str]] = {
    "K003": _look_alike, "K013": _idle_ignore, "K101": _identity, "K601": _facts, "K607": _full_name,
}  # fmt: skip
FIXABLE = frozenset(_MENDERS)


def _at(lines: list[str], problem: Problem) -> tuple[str, int]:
    """Return the line that a finding is in, and how many characters stand before its place."""
    line = lines[problem.line - 1] if problem.line <= len(lines) else ""
    return line, problem.column - 1


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all, with the rights that it has; a link stays one."""
    real = Path(os.path.realpath(path))
    try:
        about = real.stat()
        descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            Path(name).chmod(about.st_mode & 0o7777)
            if os.geteuid() == 0:
                os.chown(name, about.st_uid, about.st_gid)
            Path(name).replace(real)
        except OSError:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UnwritableError(f"{path} cannot be written: {error.strerror}") from error
