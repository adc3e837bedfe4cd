"""What is drawn, and what may be asked: without a terminal."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unveil_tui
from unveil.errors import RefusedError
from unveil_tui.drawing.bars import bar, signed_bar, trace
from unveil_tui.drawing.brief import brief
from unveil_tui.drawing.plan import progress, settings
from unveil_tui.rights import ACTING, QUESTIONS, READ_ONLY, RECORDING, GuardedWatcher
from unveil_tui.screens.silence import literal
from unveil_tui.seen import About, Seen

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


def test_the_brief_says_what_is_wrong_since_when_where_why_what_helps_and_what_was_done(stage: Any) -> None:
    episode = stage.episode()
    about = {episode.fingerprint: About(title="Huge pages are gone", level="medium", fixes=("restore_huge_pages",))}
    newest = stage.window(60)
    seen = Seen(status={"now_s": newest.wall_s}, windows=(newest,), episodes=(episode,), about=about)
    what, why, do = brief(seen)
    assert what.startswith("FIRING for 14 s  reduced_huge_page_coverage on cgroup:/kubepods/pod1 since ")
    assert why == "why   memory.thp_enabled is madvise; Huge pages are gone"
    assert do == "do    r plans restore_huge_pages; last time: nothing was done"

    earlier = stage.planned_run(stage.episode("e0000000000bb"))
    last = brief(replace(seen, runs=(earlier,)))[2]
    assert last.startswith("do    r plans restore_huge_pages; last time: restore_huge_pages planned at ")
    now = brief(replace(seen, runs=(stage.planned_run(episode), earlier)))[2]
    assert now.startswith("run   restore_huge_pages planned at ")


def test_a_change_from_nothing_is_a_number_and_what_was_held_ends_at_what_was_asked() -> None:
    measured = {"feature": "f", "demand": "improve: up by at least 0.2", "before": 0.0, "after": 0.9, "change": 0.9,
                "holds": True}  # fmt: skip
    told = {"left_s": 9.0, "held_s": 8.0, "hold_s": 3.0, "clear_s": None, "stay_clear_s": 5.0, "measured": [measured]}
    head, line = progress(told)
    assert "settings held 3 of 3 s" in head
    assert "f: 0 → 0.9 (+0.9); improve: up by at least 0.2" in line


def test_the_brief_is_about_the_highest_level_and_says_how_many_more(stage: Any) -> None:
    old, high = stage.episode(), stage.episode("e0000000000bb", fingerprint="gone_badly")
    about = {"gone_badly": About(title="t", level="high", fixes=())}
    what, _, do = brief(Seen(episodes=(old, high), about=about, heard_s=1.0))
    assert "gone_badly" in what
    assert what.endswith("; 1 more open")
    assert "a person has to judge" in do


def test_what_no_fingerprint_explains_is_said_when_it_stays(stage: Any) -> None:
    strange = tuple(stage.window(number, severity=4.5) for number in range(50, 55))
    assert brief(Seen(windows=strange[:2])) == []
    what, why = brief(Seen(windows=strange))
    assert "5 windows; nothing known matches" in what
    assert why == "why   mostly memory (75%), +14σ memory.page_faults.rate"
    assert brief(Seen(windows=(*strange, stage.window(55)))) == []


def test_a_change_that_does_not_fit_stands_below_its_address(stage: Any) -> None:
    (line,) = settings(stage.planned_run(stage.episode()).plan, 60)
    assert line.splitlines()[1] == "    always [madvise] never → always"
