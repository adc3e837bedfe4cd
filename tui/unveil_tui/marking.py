"""Marking: what a person says of an episode, from whichever screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.plain_text import plain
from unveil_tui.asking import Prompt, needs_text

if TYPE_CHECKING:
    from unveil.records.match import Episode
    from unveil_tui.bridge import Bridge

TITLES = {"note": "A note on", "false_positive": "A false alarm:"}
DOES = {"note": "keeps the note", "false_positive": "marks it"}
HINTS = {
    "note": "what the next person should know",
    "false_positive": "why it is none: the fingerprint's owner reads it",
}


def ask_mark(app: Bridge, episode: Episode, kind: str) -> None:
    """Acknowledge at once; ask for the text of anything else."""
    about = f"{plain(episode.fingerprint)} on {plain(episode.entity)}"

    def send(text: str) -> None:
        app.order(
            "mark", {"episode": episode.id, "kind": kind, "text": text}, lambda _: app.say(f"{_DONE[kind]}: {about}")
        )

    if kind == "acknowledged":
        send("")
        return
    app.ask(
        Prompt(
            title=f"{TITLES[kind]} {about}",
            lines=("It is kept in the journal with your name; automation acts as before.",),
            does=DOES[kind],
            hint=HINTS[kind],
            wrong=needs_text,
        ),
        send,
    )


_DONE = {"acknowledged": "acknowledged", "note": "note kept", "false_positive": "marked as a false alarm"}
