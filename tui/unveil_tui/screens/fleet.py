"""Fleet: every host with its worst episode, those that need a person first; Enter goes to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.fleet import FLEET_COLUMNS, host_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open
from unveil_tui.widgets.finder import Finder, clear_filter, find_in
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.fleet import HostSeen


class FleetScreen(Screen[None]):
    """The hosts that were named on the command line."""

    TITLE = "fleet"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="enter", action="drill", label="go to it", help="go to the host under the cursor; 0 comes back"),
        Key(keys="slash", action="find", label="filter", shown="/", help="filter the hosts; Esc clears"),
        Key(keys="escape", action="back", help="clear the filter"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
        Key(keys="q", action="app.leave", label="quit", help="leave"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield Static("asking the hosts …", id="fleet-title", classes="title", markup=False)
        yield RowTable(FLEET_COLUMNS, empty="no host", id="hosts")
        yield Finder()
        yield KeyLine()

    def on_mount(self) -> None:
        """Draw whenever a host was looked at."""
        bridge(self).heard.subscribe(self, self._draw)
        self.query_one("#hosts", RowTable).focus()
        self._draw(bridge(self).hosts)

    def on_screen_resume(self) -> None:
        """Catch up."""
        self._draw(bridge(self).hosts)

    def _draw(self, hosts: tuple[HostSeen, ...]) -> None:
        if not self.is_current:
            return
        gone = sum(each.gone_since_s is not None for each in hosts)
        hit = sum(bool(each.episodes) for each in hosts)
        self.query_one("#fleet-title", Static).update(
            f"{words.count(len(hosts), 'host')}: {hit} with open episodes, {gone} without an answer", layout=False
        )
        self.query_one("#hosts", RowTable).set_rows(host_rows(hosts))
        show_valid(self)

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        empty = not self.is_mounted or self.query_one("#hosts", RowTable).cursor_key is None
        return "there is no host to go to" if action == "drill" and empty else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def action_drill(self) -> None:
        """Go to the host under the cursor."""
        if (name := self.query_one("#hosts", RowTable).cursor_key) is not None:
            self.post_message(Open("host", name))

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Go to a host."""
        self.post_message(Open("host", event.key))

    def action_find(self) -> None:
        """Filter the hosts."""
        find_in(self, self.query_one("#hosts", RowTable))

    def action_back(self) -> None:
        """Clear the filter."""
        clear_filter(self)
