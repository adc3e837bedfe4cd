"""Read one YAML file strictly, and know line and column of every key and value.

PyYAML reads YAML 1.1, where ``on`` is true, ``012`` is ten and ``1:30`` is ninety; editors and other validators read
YAML 1.2. So the C parser only builds its node graph here, the scalars are resolved by the core schema of YAML 1.2.2
(section 10.3.2), and whatever the two versions read differently is a finding. Refused, each with its place: duplicate
keys, tags, tabs, control and direction-changing characters, floods of aliases, files over one megabyte.

The caller hands over bytes: nothing here touches the file system.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from sys import intern
from typing import TYPE_CHECKING, Any

import yaml

from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 1_000_000
MAX_VALUES = 50_000  # after aliases are followed; the largest honest file has a few hundred
MAX_DEPTH = 40

Key = str | int
Path = tuple[Key, ...]
Position = tuple[int, int]

_START: Position = (1, 1)

# Tab; C0 and C1 controls but line feed; zero-width and direction marks; U+2028/9, which editors show as a line break.
_FORBIDDEN = re.compile(
    "[\t\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\r(?!\n)"
)
_NAMED = {"\t": "tab", "\r": "carriage return", "\x1b": "escape character"}

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"(?:[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")

_ORDINARY = frozenset("abcdeghijklmpqrsuvwxzABCDEGHIJKLMPQRSUVWXZ/_$*{[(<>=")  # no scalar that is not text begins so

_SHORT = 40  # texts up to here are names and words that stand in many files: one of each is kept

_SWITCH = re.compile(r"(?:yes|no|on|off|y|n)\Z", re.IGNORECASE)
_OCTAL = re.compile(r"[-+]?0[0-9_]+\Z")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?\Z")
_GROUPED = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)\Z")

_IGNORE = re.compile(r"(?:^|(?<=\s))#\s*unveil-ignore:[ ]*(?P<id>\S*)(?P<reason>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """An inline ``# unveil-ignore: K301 reason``.

    Attributes:
        line: line of the comment.
        lines: what it silences: its own line, the next one when it stands alone, the whole file (0) at its head.
    """

    check: str
    reason: str
    line: int
    column: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file, read.

    Thousands of them are kept between two reloads, so places are numbers in a row, and become a dictionary only while
    somebody asks for one.

    Attributes:
        data: plain dictionaries, lists and scalars; None when the file could not be read.
        text: as it stands in the file.
        places: line and column of each value as they come in ``data``, and of each key before its value.
        problems: what is wrong with the file as YAML.
    """

    file: str
    data: Any = None
    text: str = ""
    places: array[int] = field(default_factory=lambda: array("I"))
    ignores: tuple[Ignore, ...] = ()
    problems: tuple[Problem, ...] = ()
    _values: dict[Path, Position] = field(default_factory=dict, compare=False, repr=False)
    _keys: dict[Path, Position] = field(default_factory=dict, compare=False, repr=False)

    def paths(self) -> Iterator[Path]:
        """Yield the path of each value (``("signature", "for")``), the whole first."""
        return _paths(self.data, ())

    def at(self, path: Path) -> Position:
        """Return the place of a value, or of the nearest enclosing value that the file has."""
        self._find()
        while path:
            if (found := self._values.get(path)) is not None:
                return found
            path = path[:-1]
        return self._values.get((), _START)

    def at_key(self, path: Path) -> Position:
        """Return the place of a key, or of the value where there is no key (elements of lists)."""
        self._find()
        return self._keys.get(path) or self.at(path)

    def forget(self) -> None:
        """Let go of what was only made to answer faster."""
        self._values.clear()
        self._keys.clear()

    def _find(self) -> None:
        if self._values or self.data is None:
            return
        numbers = iter(self.places)
        places = zip(numbers, numbers, strict=True)
        for path in self.paths():
            if path and isinstance(path[-1], str):
                self._keys[path] = next(places)
            self._values[path] = next(places)


def _paths(data: Any, path: Path) -> Iterator[Path]:
    yield path
    items: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _paths(value, (*path, key))


_TAGS = {
    yaml.ScalarNode: "tag:yaml.org,2002:str",
    yaml.SequenceNode: "tag:yaml.org,2002:seq",
    yaml.MappingNode: "tag:yaml.org,2002:map",
}


class _Loader(yaml.CSafeLoader):
    """The C parser without implicit resolution: every plain scalar keeps its text and its style."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ARG002  # by the text: never
        """Return the tag of a node that names none."""
        return _TAGS[kind]

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Keep no path: nothing is resolved by it."""

    def ascend_resolver(self) -> None:
        """Keep no path."""


def read_yaml(file: str, content: bytes, *, ours: bool = True) -> Document:
    """Read one document.

    Args:
        file: name for messages.
        ours: whether the file is in our own format. Playbooks are not: Ansible reads them as YAML 1.1, so scalars
            that look different in 1.1 and Ansible's own tags are no findings there.
    """
    reading = _Reading(file, ours=ours)
    if len(content) > MAX_BYTES:
        return reading.stop("K008", _START, f"the file has {len(content):,} bytes", f"at most {MAX_BYTES:,} are read")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        return reading.stop("K001", place, f"byte 0x{content[error.start]:02x} is not UTF-8", "save the file as UTF-8")
    reading.text = text
    return reading.read()


class _Reading:
    """The state of reading one file."""

    def __init__(self, file: str, *, ours: bool) -> None:
        self.file = file
        self.ours = ours
        self.text = ""
        self.problems: list[Problem] = []
        self.places = array("I")
        self.first_key = 0
        self.scalars: list[tuple[int, int]] = []
        self.visited = 0
        self.ancestors: list[int] = []

    def stop(self, check: str, place: Position, what: str, hint: str = "") -> Document:
        self.add(check, place, what, hint)
        return Document(file=self.file, problems=tuple(self.problems))

    def add(self, check: str, place: Position, what: str, hint: str = "", gravity: Gravity = Gravity.ERROR) -> None:
        line, column = place
        self.problems.append(
            Problem(file=self.file, line=line, column=column, check=check, what=what, hint=hint, gravity=gravity)
        )

    def read(self) -> Document:
        if found := self._forbidden_characters():
            return found
        try:
            node = yaml.compose(self.text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line + 1, mark.column + 1) if mark is not None else _START
            parts = [part for part in (error.problem, error.context) if part]
            return self.stop("K001", place, ", ".join(parts) or "not YAML")
        except yaml.YAMLError as error:  # the reader's own errors carry no mark
            return self.stop("K001", _START, str(error).replace("\n", " "))
        if node is None:
            return self.stop("K001", _START, "the file is empty")
        try:
            data = self._value(node, ())
        except _Flood as flood:
            return self.stop("K007", flood.place, flood.what, "write the values out")
        if any(problem.gravity is Gravity.ERROR and problem.check in {"K001", "K002"} for problem in self.problems):
            data = None
        return Document(
            file=self.file,
            data=data,
            text=self.text,
            places=self.places,
            ignores=self._ignores(),
            problems=tuple(self.problems),
        )

    def _forbidden_characters(self) -> Document | None:
        lines = _line_starts(self.text)
        for count, found in enumerate(_FORBIDDEN.finditer(self.text)):
            if count == 20:
                break
            self.add("K006", _place(lines, found.start()), _describe(found.group()), "remove it; indent with spaces")
        return Document(file=self.file, problems=tuple(self.problems)) if self.problems else None

    def _value(self, node: yaml.Node, path: Path) -> Any:
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.visited += 1
        if self.visited > MAX_VALUES:
            raise _Flood(place, f"more than {MAX_VALUES:,} values once aliases are followed")
        if id(node) in self.ancestors:
            raise _Flood(place, "an alias refers to the value that it is part of")
        if len(path) > MAX_DEPTH:
            raise _Flood(place, f"nested deeper than {MAX_DEPTH} levels")
        self.places.extend(place)
        if self.ours and self.text[node.start_mark.index : node.start_mark.index + 1] == "!":
            self.add(
                "K001", place, "tags such as !!str are not part of the format", "quote text, write numbers plainly"
            )
        if isinstance(node, yaml.ScalarNode):
            self.scalars.append((node.start_mark.index, node.end_mark.index))
            return self._scalar(node, place)
        self.ancestors.append(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self.ancestors.pop()

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if not isinstance(key_node, yaml.ScalarNode):
                self.add("K001", place, "a key must be plain text", "")
                continue
            key = intern(key_node.value)  # the same few in thousands of files
            self.first_key = self.first_key or place[0]
            if self.ours and not key_node.style and key[:1] not in _ORDINARY:
                self._look_alike(key, place, "key")
            if key in result:
                first = next(each for each, _ in node.value if each.value == key)
                self.add("K002", place, f"duplicate key {key!r}", f"first written at line {first.start_mark.line + 1}")
                continue
            self.places.extend(place)
            result[key] = self._value(value_node, (*path, key))
        return result

    def _scalar(self, node: yaml.ScalarNode, place: Position) -> Any:
        text: str = node.value
        if len(text) <= _SHORT:
            text = intern(text)
        if node.style:
            if node.style == '"' and (found := _FORBIDDEN.search(text)):
                self.add("K006", place, f"an escape sequence for {_describe(found.group())}", "remove it")
            return text
        if text[:1] in _ORDINARY:
            return text
        if _NULL.match(text):
            return None
        if _BOOL.match(text):
            return text.lower() == "true"
        if self.ours and self._look_alike(text, place, "value"):
            return text
        if _INT.match(text):
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        if _FLOAT.match(text) or _NOT_FINITE.match(text):
            number = float(text.replace(".inf", "inf").replace(".nan", "nan")) if _FLOAT.match(text) else math.nan
            if not math.isfinite(number):
                self.add("K003", place, f"{text} is not a finite number", "write a number, or leave the key out")
                return 0.0
            return number
        return text

    def _look_alike(self, text: str, place: Position, what: str) -> bool:
        """Report a plain scalar that YAML 1.1 and 1.2 read differently; return whether it is one."""
        if _SWITCH.match(text):
            said = f"{text!r} is true or false in YAML 1.1 and text in 1.2"
            hint = "quote it, or write true or false" if what == "value" else "quote it, or choose another name"
        elif _OCTAL.match(text):
            said, hint = f"{text} is octal in YAML 1.1 and decimal in 1.2", "drop the zero, or quote it"
        elif _SEXAGESIMAL.match(text):
            said, hint = f"{text} is a number to base 60 in YAML 1.1 and text in 1.2", "quote it"
        elif ("_" in text and _GROUPED.match(text)) or (text.startswith(("0b", "0B")) and _GROUPED.match(text)):
            said, hint = f"{text} is a number in YAML 1.1 and text in 1.2", "write the digits alone, or quote it"
        elif _DATE.match(text):
            self.add("K003", place, f"{text} is a date in YAML 1.1 and text in 1.2", "quote it", Gravity.WARNING)
            return True
        else:
            return False
        self.add("K003", place, f"{said}", hint)
        return True

    def _ignores(self) -> tuple[Ignore, ...]:
        if "unveil-ignore" not in self.text:
            return ()
        lines = _line_starts(self.text)
        first_key = self.first_key or 1
        found = []
        for comment in _IGNORE.finditer(self.text):
            if any(start <= comment.start() < end for start, end in self.scalars):
                continue  # text, not a comment
            line, column = _place(lines, comment.start())
            alone = not self.text[lines[line - 1] : comment.start()].strip()
            covered = (0,) if line < first_key else (line, line + 1) if alone else (line,)
            reason = comment["reason"].strip()
            found.append(Ignore(check=comment["id"], reason=reason, line=line, column=column, lines=covered))
        return tuple(found)


class _Flood(Exception):  # noqa: N818 - never leaves this module
    """More structure than an honest file has."""

    def __init__(self, place: Position, what: str) -> None:
        super().__init__(what)
        self.place = place
        self.what = what


def _describe(character: str) -> str:
    return f"{_NAMED.get(character, 'invisible character')} (U+{ord(character):04X})"


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _place(line_starts: list[int], offset: int) -> Position:
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1] + 1
