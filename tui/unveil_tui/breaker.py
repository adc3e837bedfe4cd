"""Breaker: keep automation away from everything on this host, with a reason, for a while; and let it act again.

It is a silence that covers everything, so the watcher, and not this cockpit, holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.plain_text import plain
from unveil_tui.asking import Prompt, needs_text
from unveil_tui.confirming import Question
from unveil_tui.drawing import words

if TYPE_CHECKING:
    from unveil_tui.bridge import Bridge

STOP_S = 8 * 3600


def ask_to_stop(app: Bridge) -> None:
    """Ask for the reason and stop; where it is stopped already, ask whether it may act again."""
    if not app.seen.status:
        app.say("the watcher has not answered yet")
        return
    if reason := app.rights.why_not("silence"):
        app.say(f"X: {reason}")
        return
    stopped = app.seen.stopped
    host = plain(app.seen.host)
    if app.seen.status.get("breaker", {}).get("open"):
        _ask_to_close(app, host)
        return
    if stopped is None:
        app.ask(
            Prompt(
                title=f"Stop all automation on {host}?",
                lines=(
                    f"For {STOP_S // 3600} hours nothing is applied there, neither by the watcher nor by a person.",
                    "Everything is still seen and journalled; what was applied can still be undone. X again ends it.",
                ),
                does="stops it",
                hint="why: the next person on call reads it",
                wrong=needs_text,
            ),
            lambda text: app.order(
                "silence",
                {"fingerprint": "*", "entity": "*", "seconds": STOP_S, "reason": text},
                lambda _: app.say(f"automation on {host} is stopped"),
            ),
        )
        return
    until = words.moment(stopped.until_s, app.seen.now_s)
    app.confirm(
        Question(
            title="Let automation act again?",
            lines=(
                f"host     {host}",
                f"stopped  until {until} by {plain(stopped.actor)}: {plain(stopped.reason, 400)}",
            ),
            started_by="X",
        ),
        lambda: app.order("end_silence", {"id": stopped.id}, lambda _: app.say(f"automation on {host} may act again")),
    )


def _ask_to_close(app: Bridge, host: str) -> None:
    """Ask for the reason, and then for a yes, to let automation act although runs went wrong."""
    if reason := app.rights.why_not("reset_breaker"):
        app.say(f"X: {reason}")
        return
    failures = app.seen.status["breaker"]["failures"]

    def confirm(text: str) -> None:
        app.confirm(
            Question(
                title="Close the breaker, and let automation act again?",
                lines=(
                    f"host    {host}",
                    f"open    because {failures} runs went wrong within an hour",
                    f"reason  {plain(text)}",
                ),
                started_by="X",
            ),
            lambda: app.order("reset_breaker", {"reason": text}, lambda _: app.say("the breaker is closed")),
        )

    app.ask(
        Prompt(
            title=f"The breaker of {host} is open: why may it be closed?",
            lines=(f"{failures} runs went wrong within an hour. What was the cause, and is it gone?",),
            does="goes on to the question",
            hint="the disk was full, and is not",
            wrong=needs_text,
        ),
        confirm,
    )
