"""What is said over the control socket: one JSON object a line, one answer for each question.

Question ``{"id": 1, "method": "windows", "params": {"limit": 20}}``; answer ``{"id": 1, "result": …}`` or
``{"id": 1, "error": {"kind": "RefusedError", "what": …, "hint": …}}``. The methods are those of
``unveil.engine.commands``.
"""

from __future__ import annotations

import json
from typing import Any

from unveil import errors
from unveil.errors import BadInputError, UnveilError

MAX_QUESTION = 64 * 1024
MAX_ANSWER = 16 * 1024 * 1024

_KINDS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, UnveilError)
}  # fmt: skip


def question(number: int, method: str, params: dict[str, Any]) -> bytes:
    """Return the line that asks."""
    return json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n"


def read_question(line: bytes) -> tuple[int, str, dict[str, Any]]:
    """Return (number, method, parameters) of a line.

    Raises:
        BadInputError: the line is no question.
    """
    try:
        value = json.loads(line)
        number, method, params = value["id"], value["method"], value.get("params") or {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInputError(f"not a question: {error}") from error
    if not (isinstance(number, int) and isinstance(method, str) and isinstance(params, dict)):
        raise BadInputError("not a question: id must be a number, method a text, params an object")
    return number, method, params


def answer(number: int, result: Any) -> bytes:
    """Return the line that answers."""
    return json.dumps({"id": number, "result": result}, separators=(",", ":")).encode() + b"\n"


def refusal(number: int, error: UnveilError) -> bytes:
    """Return the line that answers with an error."""
    body = {"kind": type(error).__name__, "what": error.what, "hint": error.hint}
    return json.dumps({"id": number, "error": body}).encode() + b"\n"


def read_answer(line: bytes) -> Any:
    """Return the result of an answer.

    Raises:
        UnveilError: the very error that the watcher raised; or the line is no answer.
    """
    try:
        value = json.loads(line)
        error = value.get("error")
        if error is None:
            return value["result"]
        kind, what, hint = error["kind"], error["what"], error.get("hint")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise UnveilError(
            f"not an answer of a watcher: {line[:80]!a}", hint="is it another program's socket?"
        ) from wrong
    raise _KINDS.get(kind, UnveilError)(what, hint=hint)
