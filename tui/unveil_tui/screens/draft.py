"""Draft: a fingerprint drafted from a window, with its cases, to be copied or written out. Nothing is put into use."""

from __future__ import annotations

import getpass
import re
import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil_tui.asking import Prompt
from unveil_tui.bridge import bridge
from unveil_tui.drawing.source import yaml_text
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.reader import Reader
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.seen import Seen

NAME = re.compile(r"[a-z][a-z0-9_]{2,79}")


class DraftScreen(Screen[None]):
    """A draft from the window ``watch:index``."""

    TITLE = "draft"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="app.leave", label="back", help="back; the draft is forgotten"),
        Key(keys="c", action="copy", label="copy", help="copy both files to the clipboard"),
        Key(keys="w", action="export", label="write", help="write both files to the folder that unveil was started in"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._key = key
        self._drawn: dict[str, Any] | None = None

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static(f"a draft from window {self._key}", id="draft-title", classes="title", markup=False)
        with Reader(id="source"):
            yield Static(id="source-text", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Ask for its name first."""
        bridge(self).news.subscribe(self, self._draw_host)
        self._draw_host(bridge(self).seen)
        self.query_one("#source").focus()
        bridge(self).ask(
            Prompt(
                title=f"A name for what window {self._key} shows",
                lines=("It asks for what moved that window. The cause is for you to write: the draft says where.",),
                does="drafts it",
                hint="slow_reclaim",
                wrong=lambda text: "" if NAME.fullmatch(text) else "lower case letters, digits and _, three at least",
            ),
            self._ask,
        )

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    def _ask(self, name: str) -> None:
        watch, _, index = self._key.partition(":")
        params = {"watch": int(watch), "index": int(index), "name": name, "owner": _owner()}
        bridge(self).order("draft", params, self._told)

    def _told(self, told: dict[str, Any]) -> None:
        self._drawn = told
        if self.is_attached:
            path = f"fingerprints/{told['subsystem']}/{told['name']}"
            self.query_one("#draft-title", Static).update(f"{path}.yml and {path}.test.yml, not yet written anywhere")
            self.query_one("#source-text", Static).update(yaml_text(self._both()))
            show_valid(self)

    def _both(self) -> str:
        assert self._drawn is not None
        name = self._drawn["name"]
        return f"# {name}.yml\n{self._drawn['fingerprint']}\n# {name}.test.yml\n{self._drawn['test']}"

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        return "there is no draft yet" if action in ("copy", "export") and self._drawn is None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def action_copy(self) -> None:
        """Copy both files."""
        bridge(self).copy(self._both(), "draft")

    def action_export(self) -> None:
        """Write both files."""
        if self._drawn is not None:
            for suffix, part in (("yml", "fingerprint"), ("test.yml", "test")):
                bridge(self).export(self._drawn[part], f"{self._drawn['name']}.{suffix}")


def _owner() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "whoever drafted it"
