"""Question: what a person is asked before the host changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that only ``y`` answers with yes.

    Attributes:
        title: what would be done, as a question.
        lines: everything that would change, and what it is about. All of it must have been on the screen.
        started_by: the key that led here; it never confirms.
        word: text that has to be typed before ``y`` counts, e.g. the host's name; empty for none.
        word_is: what the word is, e.g. ``the host's name``.
    """

    title: str
    lines: tuple[str, ...]
    started_by: str
    word: str = ""
    word_is: str = ""
