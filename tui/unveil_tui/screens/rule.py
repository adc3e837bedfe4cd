"""Rule: a fingerprint as it is written, the lines that have a problem, and how it answers in the newest window."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.match import Match
from unveil.records.plain_text import plain
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.source import Trouble, trouble, yaml_text
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.reader import Reader
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.messages import Told
    from unveil_tui.seen import Seen

MOST_ANSWERS = 4


class RuleScreen(Screen[None]):
    """A fingerprint by its name, or a file of the knowledge base by its path, optionally with ``:LINE``."""

    TITLE = "rule"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="app.leave", label="back", help="back"),
        Key(keys="c", action="copy", label="copy", help="copy the file to the clipboard"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help; arrows scroll"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._key = key
        self._path = key if "/" in key else ""
        self._knowledge: dict[str, Any] = {}
        self._text: str | None = None
        self._answers: list[str] = []
        self._following: dict[int, str] = {}

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static(plain(self._key), id="rule-title", classes="title", markup=False)
        yield Static("asking …", id="rule-head", markup=False)
        with Reader(id="source"):
            yield Static(id="source-text", markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Ask for the knowledge base first: it says which file."""
        app = bridge(self)
        app.news.subscribe(self, self._draw_host)
        app.told.subscribe(self, self._draw_told)
        self.query_one("#source").focus()

    def on_screen_resume(self) -> None:
        """Ask while this screen is looked at."""
        if not self._following:
            self._follow("knowledge", {}, every_s=3.0)
            if self._path:
                self._follow("knowledge_text", {"path": self._path}, every_s=1.0)
            else:
                self._follow("explain", {"fingerprint": self._key}, every_s=1.0)
        self._draw_host(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        self._stop()

    def on_unmount(self) -> None:
        """Ask no more."""
        self._stop()

    def _follow(self, method: str, params: dict[str, Any], *, every_s: float) -> None:
        self._following[bridge(self).follow(method, params, every_s=every_s)] = method

    def _stop(self) -> None:
        for number in self._following:
            bridge(self).unfollow(number)
        self._following = {}

    # Drawing

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    def _draw_told(self, told: Told) -> None:
        method = self._following.get(told.token)
        if method is None or not self.is_mounted:
            return
        if isinstance(told.answer, UnveilError):
            if method == "explain":
                self._answers = [plain(told.answer.what, 300)]
            else:
                self.query_one("#rule-head", Static).update(plain(told.answer.what, 300))
                return
        elif method == "knowledge":
            self._knowledge = told.answer
            self._find_file()
        elif method == "explain":
            matches = [decode(Match, each) for each in told.answer]
            self._answers = [_answer(each) for each in matches[:MOST_ANSWERS]]
            if len(matches) > MOST_ANSWERS:
                self._answers.append(f"and {len(matches) - MOST_ANSWERS} more")
        else:
            problem = plain(told.answer["problem"], 300)
            self._answers = [problem] if problem else self._answers
            first = self._text is None
            self._text = told.answer["text"] or self._text
            self._draw_text(scroll=first and self._text is not None)
        self._draw_head()

    def _find_file(self) -> None:
        if self._path:
            return
        known = self._knowledge.get("fingerprints", [])
        path = next((each["path"] for each in known if each["name"] == self._key), "")
        if path:
            self._path = str(path).removeprefix(f"{self._knowledge['root']}/")
            self._follow("knowledge_text", {"path": self._path}, every_s=1.0)

    def _troubles(self) -> list[Trouble]:
        root = str(self._knowledge.get("root", ""))
        problems = self._knowledge.get("state", {}).get("problems", [])
        found = [trouble(problem, root) for problem in problems]
        return [each for each in found if each is not None and each.path == self._path]

    def _draw_head(self) -> None:
        lines = [f"file {plain(self._path, 300)}"] if self._path else []
        troubles = self._troubles()
        if troubles:
            lines.append(f"{words.count(len(troubles), 'problem')}: the generation in use is an older one")
        lines += self._answers
        self.query_one("#rule-head", Static).update("\n".join(lines) or "asking …")

    def _draw_text(self, *, scroll: bool) -> None:
        if self._text is None:
            return
        troubles = self._troubles()
        self.query_one("#source-text", Static).update(yaml_text(self._text, troubles))
        if scroll and troubles:
            self.query_one("#source", Reader).scroll_to(y=max(0, troubles[0].line - 4), animate=False)
        show_valid(self)

    # Actions

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        return "the file has not arrived yet" if action == "copy" and self._text is None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def action_copy(self) -> None:
        """Copy the file."""
        if self._text is not None:
            bridge(self).copy(self._text, plain(self._path, 100))


def _answer(match: Match) -> str:
    missing = [each.name for each in match.clauses if each.answer == "no_match"]
    unknown = [each.name for each in match.clauses if each.answer == "unknown"]
    told = [f"not {', '.join(missing)}"] if missing else []
    told += [f"unknown {', '.join(unknown)}"] if unknown else []
    return (
        f"{words.NEARNESS[match.answer] if match.answer != 'no_match' else 'no match'} on {words.entity(match.entity)}"
        + (f": {plain('; '.join(told), 300)}" if told else "")
    )
