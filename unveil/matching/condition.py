"""The language of ``condition``: clause names, ``and or not``, parentheses, ``2 of clock_*``, ``all of``, ``any of``.

Grammar, loosest binding first::

    either     = both { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | primary
    primary    = "(" either ")" | quantity "of" pattern | clause
    quantity   = integer | "all" | "any"
    pattern    = clause name with "*" for any text

Answers are Kleene's three: no (-1), unknown (0), yes (+1), so that *and* is the minimum, *or* the maximum and *not*
the sign (S. C. Kleene, Introduction to Metamathematics, section 64). All three are one operation more general:
``K of`` is the K-th largest answer; *and* is all of its operands, *or* is one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from unveil.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    Answers = NDArray[np.int8]

NO, UNKNOWN, YES = -1, 0, 1

KEYWORDS = frozenset({"and", "or", "not", "of", "all", "any"})
"""Words that cannot name a clause."""

MAX_DEPTH = 32
"""Deepest nesting of parentheses and ``not``: beyond what a reviewer can read, and far from Python's own limit."""

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<mark>[()])|(?P<number>[0-9]+)(?![A-Za-z_*])|(?P<word>[A-Za-z_*][A-Za-z0-9_*]*)"
)


class ConditionError(BadInputError):
    """A condition that cannot be read, or that its clauses cannot answer.

    Attributes:
        offset: where in the text, counted from zero; the length of the text when something is missing at its end.
    """

    def __init__(self, message: str, offset: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.message = message
        self.offset = offset

    def caret(self, text: str) -> str:
        """Return the line of *text* that is wrong, and below it a caret at the very place."""
        start = text.rfind("\n", 0, self.offset) + 1
        line = text[start:].partition("\n")[0]
        lead = re.sub(r"[^\t]", " ", text[start : self.offset])
        return f"{line}\n{lead}^"


@dataclass(frozen=True, slots=True)
class ClauseName:
    """A clause by its name."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition; unknown stays unknown."""

    operand: Node


@dataclass(frozen=True, slots=True)
class AtLeast:
    """At least *count* of the operands hold: all of them for ``and``, one for ``or``."""

    count: int
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """``COUNT of PATTERN`` as written; ``bind`` turns it into `AtLeast`. *count* is None for ``all``."""

    count: int | None
    pattern: str
    offset: int


Node = ClauseName | Not | AtLeast | Quantity


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed condition."""

    text: str
    root: Node

    @property
    def names(self) -> tuple[str, ...]:
        """Return the clause names that are written out, each once, in order; those of patterns are known to `bind`."""
        return tuple(dict.fromkeys(node.name for node in _walk(self.root) if isinstance(node, ClauseName)))

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns behind ``of``, each once, in order; none after `bind`."""
        return tuple(dict.fromkeys(node.pattern for node in _walk(self.root) if isinstance(node, Quantity)))

    def bind(self, clauses: Collection[str]) -> Expression:
        """Return the condition over these clauses, its patterns replaced by the clauses that they name.

        ``names`` of the result are all clauses that the answer depends on.

        Raises:
            ConditionError: it names a clause that is not there, a pattern that covers none, or more clauses than
                a pattern covers.
        """
        return Expression(self.text, _bind(self.root, tuple(clauses)))

    def evaluate(self, answers: Mapping[str, Answers]) -> Answers:
        """Return the answers, shape as given: int8 of -1 no, 0 unknown, 1 yes.

        Args:
            answers: one array for each clause, all of one shape.

        Raises:
            ConditionError: as `bind`.
        """
        return _evaluate(_bind(self.root, tuple(answers)), answers)


def parse_condition(text: str) -> Expression:
    """Return a condition.

    Raises:
        ConditionError: with the offset at which the text stops making sense.
    """
    return Expression(text, _Parser(text).parse())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # word, number, mark, end
    text: str
    offset: int


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, text: str) -> None:
        self._tokens = tuple(_tokens(text))
        self._next = 0

    def parse(self) -> Node:
        root = self._either(0)
        token = self._peek()
        if token.kind != "end":
            raise ConditionError(f"expected 'and', 'or' or the end, found {token.text!r}", token.offset)
        return root

    def _either(self, depth: int) -> Node:
        operands = [self._both(depth)]
        while self._accept("or"):
            operands.append(self._both(depth))
        return operands[0] if len(operands) == 1 else AtLeast(1, tuple(operands))

    def _both(self, depth: int) -> Node:
        operands = [self._negation(depth)]
        while self._accept("and"):
            operands.append(self._negation(depth))
        return operands[0] if len(operands) == 1 else AtLeast(len(operands), tuple(operands))

    def _negation(self, depth: int) -> Node:
        token = self._peek()
        if depth > MAX_DEPTH:
            raise ConditionError(f"nested deeper than {MAX_DEPTH}", token.offset, hint="name parts of it as clauses")
        if self._accept("not"):
            return Not(self._negation(depth + 1))
        return self._primary(depth)

    def _primary(self, depth: int) -> Node:
        token = self._take()
        if token.text == "(":
            inner = self._either(depth + 1)
            end = self._take()
            if end.text != ")":
                raise ConditionError(f"the parenthesis at offset {token.offset} is not closed", end.offset)
            return inner
        if token.kind == "number" or token.text in ("all", "any"):
            return self._quantity(token)
        if token.kind == "word" and token.text not in KEYWORDS:
            if "*" in token.text:
                raise ConditionError(
                    f"a pattern needs a quantity: {token.text!r}", token.offset, hint=f"write: any of {token.text}"
                )
            return ClauseName(token.text, token.offset)
        found = "the end" if token.kind == "end" else repr(token.text)
        raise ConditionError(f"expected the name of a clause, found {found}", token.offset)

    def _quantity(self, quantity: _Token) -> Quantity:
        word = self._take()
        if word.text != "of":
            raise ConditionError(f"expected 'of' after {quantity.text!r}", word.offset)
        pattern = self._take()
        if pattern.kind != "word" or pattern.text in KEYWORDS:
            raise ConditionError("expected a pattern of clause names after 'of'", pattern.offset, hint="e.g. clock_*")
        count = {"all": None, "any": 1}.get(quantity.text, -1)
        if count == -1:
            count = int(quantity.text[:9])  # more digits than any number of clauses has
        if count == 0:
            raise ConditionError("'0 of' always holds", quantity.offset, hint="write: not any of …")
        return Quantity(count, pattern.text, quantity.offset)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _accept(self, word: str) -> bool:
        if self._peek().text != word:
            return False
        self._next += 1
        return True


def _tokens(text: str) -> Iterator[_Token]:
    offset = 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        if found is None:
            raise ConditionError(
                f"unexpected {text[offset]!r}", offset, hint="clause names are of letters, digits and '_'"
            )
        kind, word = found.lastgroup or "", found.group()
        if kind == "word" and word not in KEYWORDS and word.lower() in KEYWORDS:
            raise ConditionError(f"{word!r} is written in lower case", offset, hint=f"write: {word.lower()}")
        if kind != "space":
            yield _Token(kind, word, offset)
        offset = found.end()
    yield _Token("end", "", len(text))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Not):
        yield from _walk(node.operand)
    elif isinstance(node, AtLeast):
        for operand in node.operands:
            yield from _walk(operand)


def _bind(node: Node, clauses: tuple[str, ...]) -> Node:
    if isinstance(node, Not):
        return Not(_bind(node.operand, clauses))
    if isinstance(node, AtLeast):
        return AtLeast(node.count, tuple(_bind(operand, clauses) for operand in node.operands))
    if isinstance(node, ClauseName):
        if node.name not in clauses:
            from difflib import get_close_matches  # only for what is misspelt

            close = get_close_matches(node.name, clauses, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"clauses: {', '.join(clauses) or 'none'}"
            raise ConditionError(f"no clause is named {node.name!r}", node.offset, hint=hint)
        return node
    covered = tuple(name for name in clauses if fnmatchcase(name, node.pattern))
    if not covered:
        raise ConditionError(f"no clause is covered by {node.pattern!r}", node.offset)
    count = len(covered) if node.count is None else node.count
    if count > len(covered):
        raise ConditionError(f"'{count} of' cannot hold: {node.pattern!r} covers {len(covered)}", node.offset)
    return AtLeast(count, tuple(ClauseName(name, node.offset) for name in covered))


def _evaluate(node: Node, answers: Mapping[str, Answers]) -> Answers:
    if isinstance(node, ClauseName):
        return answers[node.name]
    if isinstance(node, Not):
        return np.negative(_evaluate(node.operand, answers))
    assert isinstance(node, AtLeast)  # bound: no patterns are left
    return at_least(node.count, np.stack([_evaluate(operand, answers) for operand in node.operands]))


def at_least(count: int, operands: Answers) -> Answers:
    """Return whether at least *count* operands hold, along the first axis of int8 answers: the count-th largest."""
    size = operands.shape[0]
    if count == size:
        return np.asarray(np.minimum.reduce(operands, axis=0))
    if count == 1:
        return np.asarray(np.maximum.reduce(operands, axis=0))
    return np.asarray(np.partition(operands, size - count, axis=0)[size - count])
