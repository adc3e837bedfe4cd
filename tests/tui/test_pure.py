"""What is drawn, and what may be asked: without a terminal."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unveil_tui
from unveil.errors import RefusedError
from unveil_tui.drawing.bars import bar, signed_bar, trace
from unveil_tui.rights import ACTING, QUESTIONS, READ_ONLY, RECORDING, GuardedWatcher
from unveil_tui.screens.silence import literal

SCREENS = Path(unveil_tui.__file__).parent / "screens"
ORDERS = ("dry_run", "approve", "apply", "cancel", "rollback", "silence", "end_silence", "reload")
SAID = ("mark",)  # in the replay's own journal, too


class Recorder:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, method: str, **params: Any) -> Any:
        self.asked.append(method)
        return None


def test_a_bar_shows_whatever_is_there_and_nothing_else() -> None:
    assert bar(0, 4) == "    "
    assert bar(1, 4) == "████"
    assert bar(0.001, 4) == "▏   "
    assert bar(0.5, 4) == "██  "


def test_a_signed_bar_grows_from_the_middle_to_the_side_of_its_sign() -> None:
    assert signed_bar(1, +3, 7) == "   │███"
    assert signed_bar(1, -3, 7) == "███│   "
    assert signed_bar(0.01, -3, 7) == "  █│   "


def test_a_calm_trace_stays_low_however_calm_all_of_it_is() -> None:
    assert trace([0.0, 0.2, None], 0.2) == "▁▁ "
    assert trace([0.0, 6.0], 6.0) == "▁█"


@pytest.mark.parametrize("rights", [READ_ONLY, RECORDING])
def test_what_is_forbidden_never_reaches_the_watcher(rights: Any) -> None:
    recorder = Recorder()
    guarded = GuardedWatcher(recorder, rights)
    for method in (*ORDERS, "anything_new"):
        with pytest.raises(RefusedError, match=rights.reason):
            guarded.call(method, id="r1")
    guarded.call("status")
    assert recorder.asked == ["status"]


def test_a_plan_may_be_drawn_on_a_recording_and_not_read_only() -> None:
    assert RECORDING.why_not("plan") == ""
    assert READ_ONLY.why_not("plan")
    assert READ_ONLY.why_not("mark")
    assert ACTING.why_not("apply") == ""


@given(st.text())
def test_a_silence_fits_exactly_the_name_it_was_made_for(name: str) -> None:
    assert fnmatchcase(name, literal(name))
    assert not fnmatchcase(name + "x", literal(name))


def test_a_silence_of_a_tenant_who_calls_himself_star_covers_nobody_else() -> None:
    assert not fnmatchcase("/pods/other", literal("/pods/*"))


def test_screens_do_not_import_each_other() -> None:
    for path in SCREENS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("unveil_tui.screens"), path.name


def test_the_cockpit_asks_only_for_what_the_watcher_answers() -> None:
    from unveil.engine import closer_look, commands, history, run_orders

    modules = (closer_look, commands, history, run_orders)
    known = "".join(Path(str(module.__file__)).read_text() for module in modules)
    package = "".join(path.read_text() for path in SCREENS.parent.rglob("*.py"))
    asked = set(re.findall(r"(?:order|follow|call)\(\s*\"([a-z_]+)\"", package))
    assert {"near", "series", "mark", "windows"} <= asked
    for method in (*ORDERS, *SAID, *asked, *QUESTIONS):
        assert f'"{method}"' in known, method
