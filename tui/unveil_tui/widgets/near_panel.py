"""NearPanel: fingerprints that match a window or nearly do, and every clause of the one under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from unveil.records.plain_text import plain
from unveil_tui.drawing.bars import spark
from unveil_tui.drawing.rows import CLAUSE_COLUMNS, NEAR_COLUMNS, clause_rows, near_rows
from unveil_tui.series import Series, candidates, of_clause
from unveil_tui.widgets.row_table import RowTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from unveil.records.match import ClauseResult
    from unveil_tui.near import Near

SPARK = 24


class NearPanel(Vertical):
    """Two tables: whom, and why or why not."""

    class Picked(Message):
        """Another fingerprint, or another clause, is looked at."""

        def __init__(self, near: Near | None, clause: ClauseResult | None) -> None:
            super().__init__()
            self.near, self.clause = near, clause

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._near: tuple[Near, ...] = ()
        self._series: dict[str, Series] = {}
        self._why = "asking …"

    def compose(self) -> ComposeResult:
        """Build the tables."""
        yield Static("fingerprints that match, or nearly do", id="near-title", classes="title", markup=False)
        yield RowTable(NEAR_COLUMNS, empty="asking …", id="near")
        yield Static("clauses", id="near-clauses-title", classes="title", markup=False)
        yield RowTable(CLAUSE_COLUMNS, empty="", id="near-clauses")

    def show(self, near: tuple[Near, ...], *, empty: str) -> None:
        """Show these; *empty* is said where there is none."""
        self._near = near
        table = self.query_one("#near", RowTable)
        table.empty = empty
        table.set_rows(near_rows(near))
        self._draw_clauses()

    def learn(self, series: dict[str, Series]) -> None:
        """Draw the windows before beside the clauses."""
        self._series = series
        self._draw_clauses()

    @property
    def picked(self) -> Near | None:
        """Return the fingerprint under the cursor."""
        key = self.query_one("#near", RowTable).cursor_key
        return next((each for each in self._near if each.key == key), None)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the features that the clauses under the cursor are about."""
        picked = self.picked
        if picked is None:
            return ()
        return tuple(name for clause in picked.match.clauses for name in candidates(clause, picked.match.entity))

    def _clause(self) -> ClauseResult | None:
        key, picked = self.query_one("#near-clauses", RowTable).cursor_key, self.picked
        return None if picked is None else next((each for each in picked.match.clauses if each.name == key), None)

    def _draw_clauses(self) -> None:
        picked = self.picked
        clauses = () if picked is None else picked.match.clauses
        sparks = {}
        for clause in clauses:
            series = None if picked is None else of_clause(clause, picked.match.entity, self._series)
            if series is not None:
                sparks[clause.name] = spark(series.values, SPARK)
        title = (
            "clauses"
            if picked is None
            else f"clauses of {plain(picked.match.fingerprint)}: {picked.met} of {picked.of}"
        )
        self.query_one("#near-clauses-title", Static).update(f"{title} hold" if picked else title, layout=False)
        self.query_one("#near-clauses", RowTable).set_rows(clause_rows(clauses, sparks))

    def on_row_table_moved(self, event: RowTable.Moved) -> None:
        """Show the clauses of what the cursor is on."""
        if event.table.id == "near":
            self._draw_clauses()
        picked = self.picked
        self.post_message(self.Picked(picked, self._clause()))
