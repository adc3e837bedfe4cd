"""Run: a plan with everything it would change, then approved, carried out, verified, kept or undone: one screen.

Everything asked here is about the run's id, and approved or applied is exactly the plan whose hash is shown.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.plain_text import plain
from unveil.records.run import Run, RunState
from unveil_tui.bridge import bridge
from unveil_tui.confirming import Question
from unveil_tui.drawing import markdown
from unveil_tui.drawing import plan as drawn
from unveil_tui.drawing.rows import Column
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.reader import Reader
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.messages import Told
    from unveil_tui.seen import Seen

COLUMNS = (Column(title="time", width=8), Column(title="what", width=17, narrow=13), Column(title="said"))
EVERY_S = 0.5
MAX_EVENTS = 500
SCROLLBAR = 4  # with the padding
DIALOG = 110
# What a person may ask for, and in which states the lifecycle has a step for it.
POSSIBLE = {
    "dry_run": frozenset({RunState.PLANNED, RunState.APPROVED}),
    "approve": frozenset({RunState.PLANNED}),
    "apply": frozenset({RunState.APPROVED}),
    "cancel": frozenset({RunState.PLANNED, RunState.APPROVED, RunState.APPLYING, RunState.VERIFYING}),
    "roll_back": frozenset(
        {RunState.VERIFYING, RunState.KEPT, RunState.INCONCLUSIVE, RunState.REVERTED_BY_OTHER, RunState.FAILED_DIRTY}
    ),
}
METHODS = {"roll_back": "rollback"}
_GOING = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.APPLYING, RunState.VERIFYING, RunState.ROLLING_BACK})


class RunScreen(Screen[None]):
    """One run, by its id."""

    TITLE = "run"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="app.leave", label="back", help="back; the run goes on"),
        Key(keys="d", action="dry_run", label="dry run", help="let Ansible go through it in check mode"),
        Key(keys="a", action="approve", label="approve", help="approve exactly this plan; y confirms"),
        Key(keys="a", action="apply", label="apply", help="carry the approved plan out; y confirms"),
        Key(keys="u", action="roll_back", label="undo", help="put back what it changed; y confirms"),
        Key(keys="x", action="cancel", label="cancel", help="stop it, what it changed is put back; y confirms"),
        Key(keys="c", action="copy", label="copy", help="copy the story of the run to the clipboard, as Markdown"),
        Key(keys="w", action="export", help="write the story of the run to a file, as Markdown"),
        Key(keys="tab", action="app.focus_next", help="plan or story; j k g G and the arrows scroll"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, identity: str, ask: str = "") -> None:
        super().__init__()
        self._ask_first = ask  # an action to ask about as soon as the run has arrived
        self.valid_keys: tuple[bool, ...] = ()
        self._identity = identity
        self._run: Run | None = None
        self._events: dict[int, dict[str, Any]] = {}
        self._checking = False
        self._following: int | None = None
        self._following_progress: int | None = None

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("asking …", id="run-head", markup=False)
        with Reader(id="plan"):
            yield Static(id="plan-text", markup=False)
        yield Static(id="progress", markup=False)
        yield Static("what happened", id="story-title", classes="title", markup=False)
        yield RowTable(COLUMNS, empty="nothing yet", tail=True, id="story")
        yield KeyLine()

    def on_mount(self) -> None:
        """Listen."""
        bridge(self).news.subscribe(self, self._draw_host)
        bridge(self).told.subscribe(self, self._draw_told)
        self.query_one("#story", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Follow the run while this screen is looked at."""
        if self._following is None:
            after = max(self._events, default=0)
            self._following = bridge(self).follow("run", {"id": self._identity, "after_event": after}, every_s=EVERY_S)
        self._draw_host(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Follow it no more."""
        self._stop()

    def on_unmount(self) -> None:
        """Follow it no more."""
        self._stop()

    def _stop(self) -> None:
        for number in (self._following, self._following_progress):
            if number is not None:
                bridge(self).unfollow(number)
        self._following = self._following_progress = None

    # Drawing

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())
            show_valid(self)

    def _draw_told(self, told: Told) -> None:
        if not self.is_mounted or told.token not in (self._following, self._following_progress):
            return
        if told.token == self._following_progress:
            self._draw_progress(told.answer)
            return
        if isinstance(told.answer, UnveilError):
            self.query_one("#run-head", Static).update(plain(told.answer.what, 400))
            return
        for event in told.answer["events"]:
            self._events[int(event["number"])] = event
            if event.get("event") == "check_finished":
                self._checking = False
        for number in sorted(self._events)[:-MAX_EVENTS]:
            del self._events[number]
        self._show(decode(Run, told.answer["run"]))

    def _draw_progress(self, told: Any) -> None:
        verifying = self._run is not None and self._run.state is RunState.VERIFYING and isinstance(told, dict)
        lines = drawn.progress(told) if verifying else []
        panel = self.query_one("#progress", Static)
        panel.display = bool(lines)
        panel.update("\n".join(lines))

    def _follow_progress(self, run: Run) -> None:
        verifying = run.state is RunState.VERIFYING and self._following is not None
        if verifying and self._following_progress is None:
            self._following_progress = bridge(self).follow("verification", {"id": run.id}, every_s=1.0)
        elif not verifying and self._following_progress is not None:
            bridge(self).unfollow(self._following_progress)
            self._following_progress = None
            self._draw_progress(None)

    def _show(self, run: Run) -> None:
        first, before = self._run is None, self._run
        self._run = run
        self._follow_progress(run)
        if before is not None and before.state in _GOING and run.state not in _GOING:
            self._tell_end(run)
        self.query_one("#run-head", Static).update("\n".join(drawn.head(run)))
        self.set_class(run.state not in (RunState.PLANNED, RunState.APPROVED), "-begun")
        if first:  # a plan never changes
            self._draw_plan()
        table = self.query_one("#story", RowTable)
        table.set_rows(drawn.story_rows(run, [self._events[number] for number in sorted(self._events)]))
        checking = "; dry run under way …" if self._checking else ""
        self.query_one("#story-title", Static).update(f"what happened{checking}{self._next(run)}")
        show_valid(self)
        if (action := self._ask_first) and self.is_current:
            self._ask_first = ""
            if reason := self.why_not(action):
                self.notify(f"{action.replace('_', ' ')}: {reason}", severity="warning", markup=False)
            else:
                self.run_worker(self.run_action(action), exit_on_error=False)

    def _draw_plan(self) -> None:
        if self._run is not None:
            self.query_one("#plan-text", Static).update(_plan_text(self._run, self.app.size.width - SCROLLBAR))

    def on_resize(self) -> None:
        """Draw the plan for the new width."""
        self._draw_plan()

    def _next(self, run: Run) -> str:
        """Return what can be done now, or why nothing can."""
        reason = bridge(self).rights.why_not("apply")
        return f"; {reason}" if reason else _NEXT.get(run.state, "")

    def _tell_end(self, run: Run) -> None:
        fine = run.state in (RunState.KEPT, RunState.NO_CHANGE, RunState.ROLLED_BACK)
        self.notify(
            f"{plain(run.plan.remediation)}: {str(run.state).replace('_', ' ')} ({plain(run.steps[-1].cause)})",
            severity="information" if fine else "warning", markup=False,
        )  # fmt: skip

    # What may be asked

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action in ("copy", "export") and self._run is None:
            return "the run has not arrived yet"
        states = POSSIBLE.get(action)
        if states is None:
            return ""
        if reason := bridge(self).rights.why_not(METHODS.get(action, action)):
            return reason
        if self._run is None:
            return "the plan has not arrived yet"
        if bridge(self).seen.gone_since_s is not None:
            return "the watcher is gone"
        if self._run.state not in states:
            return f"the run is {self._run.state.replace('_', ' ')}"
        if action == "dry_run" and self._checking:
            return "a dry run is under way"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def on_row_table_moved(self, event: RowTable.Moved) -> None:
        """Stop following the story's end when someone reads back in it, and go on at its end."""
        if event.by_hand:
            event.table.tail = bool(event.table.keys) and event.key == event.table.keys[-1]

    def action_dry_run(self) -> None:
        """Let Ansible go through the plan in check mode."""
        self._checking = True
        bridge(self).order("dry_run", {"id": self._identity})
        if self._run is not None:
            self._show(self._run)

    def action_approve(self) -> None:
        """Ask whether exactly this plan may be carried out."""
        self._ask("approve", "Approve this plan?", self._changes(), started_by="a")

    def action_apply(self) -> None:
        """Ask whether to change the host now."""
        self._ask("apply", "Change this host's settings now?", self._changes(), started_by="a")

    def action_roll_back(self) -> None:
        """Look at what the settings read now, then ask whether to put back what was changed."""
        bridge(self).order("settings", {"id": self._identity}, self._ask_roll_back)

    def _ask_roll_back(self, settings: list[dict[str, Any]]) -> None:
        if not self.is_current:
            return  # they went on to something else before the settings were read
        if reason := self.why_not("roll_back"):
            self.notify(f"undo: {reason}", severity="warning", markup=False)
            return
        lines = ["puts back, as far as it is still as this run left it:"]
        lines += [f"  {line}" for line in drawn.undo(settings, self._dialog_width())]
        self._ask("rollback", "Put back what this run changed?", lines, started_by="u", with_hash=False)

    def action_cancel(self) -> None:
        """Ask whether to stop the run."""
        waits = self._run is not None and self._run.state in (RunState.PLANNED, RunState.APPROVED)
        line = "it waits and ends at once; nothing was changed" if waits else "it is stopped; what it changed is undone"
        self._ask("cancel", "Stop this run?", [line], started_by="x", with_hash=False)

    def action_copy(self) -> None:
        """Copy the story as Markdown."""
        bridge(self).copy(self._text(), f"run {self._identity}")

    def action_export(self) -> None:
        """Write the story as Markdown."""
        bridge(self).export(self._text(), f"unveil-run-{self._identity}.md")

    def _text(self) -> str:
        assert self._run is not None
        events = [self._events[number] for number in sorted(self._events)]
        return markdown.of_run(self._run, events, host=bridge(self).seen.host)

    def _changes(self) -> list[str]:
        if self._run is None:
            return []
        return ["changes:", *(f"  {line}" for line in drawn.settings(self._run.plan, self._dialog_width()))]

    def _dialog_width(self) -> int:
        """Return how long a line of a question may be: as the style sheet has it, less its frame and what is before."""
        return min(DIALOG, 9 * self.app.size.width // 10) - 9

    def _ask(self, method: str, title: str, lines: list[str], *, started_by: str, with_hash: bool = True) -> None:
        run, app = self._run, bridge(self)
        if run is None:
            return
        params = {"id": run.id, "hash": run.plan.hash} if with_hash else {"id": run.id}
        dangerous = with_hash and run.plan.impact in drawn.DANGEROUS
        question = Question(
            title=title,
            lines=(*drawn.about(run, app.seen.host), "", *lines),
            started_by=started_by,
            word=app.seen.host if dangerous else "",
            word_is="the host's name" if dangerous else "",
        )
        app.confirm(question, lambda: app.order(method, params))


_NEXT = {
    RunState.PLANNED: "; nothing was changed. d tries it out, a approves exactly this",
    RunState.APPROVED: "; approved, nothing was changed yet. a applies it",
    RunState.APPLYING: "; the playbook is at work. x stops it, what it changed is put back",
    RunState.VERIFYING: "; applied, now verified on fresh windows. u takes it back",
    RunState.KEPT: "; kept. u puts back what was there before",
}


def _plan_text(run: Run, width: int) -> str:
    plan = run.plan
    lines = ["settings, before → after"]
    lines += [f"  {line}" for line in drawn.settings(plan, width - 2)]
    if plan.variables:
        lines += ["with", *(f"  {line}" for line in drawn.variables(plan))]
    lines += ["verified by", *(f"  {line}" for line in drawn.judged_by(plan))]
    return "\n".join(lines)
