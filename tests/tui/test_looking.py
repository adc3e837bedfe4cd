"""Looking closely: near fingerprints, series, rules as they are written, drafts, times, copies; and what people say."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError
from unveil.records.entity import Entity, EntityKind
from unveil.records.mark import Mark, MarkKind
from unveil.records.match import Answer
from unveil_tui.asking import length_of, moment_of
from unveil_tui.drawing.bars import band, spark, tower
from unveil_tui.drawing.knowledge import _backtested
from unveil_tui.drawing.markdown import code, of_window
from unveil_tui.drawing.source import trouble, yaml_text
from unveil_tui.exporting import write_new
from unveil_tui.messages import Open
from unveil_tui.rights import READ_ONLY
from unveil_tui.screens.ask import AskScreen
from unveil_tui.screens.confirm import ConfirmScreen
from unveil_tui.screens.draft import DraftScreen
from unveil_tui.screens.episode import EpisodeScreen
from unveil_tui.screens.fleet import FleetScreen
from unveil_tui.screens.live import LiveScreen
from unveil_tui.screens.rule import RuleScreen
from unveil_tui.screens.run import RunScreen
from unveil_tui.screens.window import WindowScreen

if TYPE_CHECKING:
    from pathlib import Path

RUN = "r0123456789ab"


async def test_a_window_shows_bands_near_fingerprints_and_every_clause(watcher: Any, stage: Any) -> None:
    near = replace(
        watcher.episodes[0].last, fingerprint="nearly_this", answer=Answer.NO_MATCH,
        clauses=tuple(replace(each, answer=Answer.NO_MATCH) for each in watcher.episodes[0].last.clauses),
    )  # fmt: skip
    watcher.nearly = [near]
    async with stage.cockpit(watcher, size=(130, 44)) as (app, pilot):
        await pilot.press("e")
        await stage.until(pilot, lambda: "2 of 3 hold" in stage.screen_text(app))
        text = stage.screen_text(app)
        assert "memory       " in text
        assert "├──┼──┤" in text
        assert "+14.2" in text
        assert "match      2/3 reduced_huge_page_coverage" in text
        assert "nearly     1/3 nearly_this" in text
        assert "?   faulting" in text
        await stage.until(pilot, lambda: "expected 3 ± 3" in stage.screen_text(app))
        await pilot.press("j")
        await stage.until(pilot, lambda: "clauses of nearly_this: 1 of 3 hold" in stage.screen_text(app))
        assert "no  thp_off" in stage.screen_text(app)


@pytest.mark.slow
async def test_o_reads_the_rule_and_marks_the_line_of_a_problem(watcher: Any, stage: Any) -> None:
    watcher.stale = (stage.START_S, "/kb/fingerprints/memory/x.yml:2:1: no such clause [b]x[/b]")
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        await pilot.press("tab", "enter")
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen) and "thp_off" in stage.screen_text(app))
        await pilot.press("o")
        await stage.until(pilot, lambda: "no such clause [b]x[/b]" in stage.screen_text(app))
        text = stage.screen_text(app)
        assert isinstance(app.screen, RuleScreen)
        assert ">>   2 signature:" in text
        assert "match on cgroup:/kubepods/pod1" in text
        await pilot.press("escape", "escape", "3")
        await stage.until(pilot, lambda: "STALE" in stage.screen_text(app) and " 12 " in stage.screen_text(app))
        await pilot.press("p")
        await stage.until(pilot, lambda: ">>   2 signature:" in stage.screen_text(app))
        await pilot.press("c")
        assert app.clipboard == watcher.text


@pytest.mark.slow
async def test_a_draft_is_shown_copied_and_written_and_never_put_into_use(
    watcher: Any, stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        await pilot.press("enter")
        await stage.until(pilot, lambda: isinstance(app.screen, WindowScreen))
        await stage.settle(pilot)
        await pilot.press("D")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press(*"No", "enter")
        assert "lower case" in stage.screen_text(app)
        await pilot.press("backspace", "backspace", *"slow_reclaim", "enter")
        await stage.until(pilot, lambda: "name: slow_reclaim" in stage.screen_text(app))
        assert isinstance(app.screen, DraftScreen)
        await pilot.press("w")
        await stage.until(pilot, (tmp_path / "slow_reclaim.test.yml").exists)
        assert (tmp_path / "slow_reclaim.yml").read_text() == "name: slow_reclaim\n"
        assert watcher.orders == []


@pytest.mark.slow
async def test_a_time_is_jumped_to_and_wrong_ones_are_said(watcher: Any, stage: Any) -> None:
    watcher.push(count=300)
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("t")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press(*"late", "enter")
        assert "write 18:19" in stage.screen_text(app)
        for _ in "late":
            await pilot.press("backspace")
        await pilot.press(*"-4m", "enter")
        await stage.until(pilot, lambda: "PAUSED" in stage.screen_text(app))
        await stage.until(pilot, lambda: "window 119" in stage.screen_text(app))
        await pilot.press("space")
        await stage.until(pilot, lambda: "PAUSED" not in stage.screen_text(app))


async def test_what_a_person_says_of_an_episode_is_kept_and_shown(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        await pilot.press("a")
        assert "move to an episode first" in stage.said(app)
        await pilot.press("tab", "a")
        await stage.until(pilot, lambda: "acked" in stage.screen_text(app))
        await pilot.press("f")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press("enter")
        assert "needs a text" in stage.screen_text(app)
        await pilot.press(*"backup", "enter")
        await stage.until(pilot, lambda: app.seen.said_of(watcher.episodes[0].id) == ("acknowledged", "false_positive"))
        await pilot.press("n")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)
        await pilot.press("n")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        await pilot.press(*"[b]ok", "enter")
        await stage.until(pilot, lambda: len(watcher.orders) == 3)
        assert [(name, given["kind"], given["text"]) for name, given in watcher.orders] == [
            ("mark", "acknowledged", ""), ("mark", "false_positive", "backup"), ("mark", "note", "[b]ok"),
        ]  # fmt: skip


@pytest.mark.slow
async def test_x_stops_all_automation_with_a_reason_and_y_lets_it_act_again(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        await pilot.press("X")
        await stage.until(pilot, lambda: isinstance(app.screen, AskScreen))
        assert "Stop all automation on gpu-node-17?" in stage.screen_text(app)
        await pilot.press(*"storm", "enter")
        await stage.until(pilot, lambda: "automation STOPPED" in stage.screen_text(app))
        method, given = watcher.orders[-1]
        assert (method, given["fingerprint"], given["entity"], given["reason"]) == ("silence", "*", "*", "storm")
        await pilot.press("X")
        await stage.until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and app.screen._armed)
        await pilot.press("X", "enter")
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("y")
        await stage.until(pilot, lambda: watcher.orders[-1][0] == "end_silence")


@pytest.mark.slow
async def test_verification_shows_what_it_waits_for_and_undo_who_changed_it_since(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(110, 40)) as (app, pilot):
        await pilot.press("tab", "r")
        await stage.until(pilot, lambda: isinstance(app.screen, RunScreen) and "f00dcafef00d" in stage.screen_text(app))
        watcher.do_approve(RUN, "x")
        watcher.do_apply(RUN, "x")
        watcher.step(RUN, "verifying", "applied")
        await stage.until(pilot, lambda: "verifying, an answer in 41 s" in stage.screen_text(app))
        assert "yes     memory.cgroup_huge_share.last: 0.02 → 0.4 (+1900%)" in stage.screen_text(app)
        watcher.step(RUN, "kept", "verified")
        await stage.until(pilot, lambda: "restore_huge_pages: kept" in stage.said(app))
        watcher.changed_by, watcher.now = "run r9", {"file:/sys/kernel/mm/transparent_hugepage/enabled": "never"}
        await pilot.press("escape")
        await stage.until(pilot, lambda: isinstance(app.screen, LiveScreen))
        await pilot.press("u")
        await stage.until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and app.screen._armed)
        assert "changed since by run r9" in " ".join(stage.screen_text(app).split())
        await pilot.press("u", "escape")
        assert watcher.orders[-1][0] == "apply"


@pytest.mark.slow
async def test_runs_have_views_and_say_when_their_record_was_altered(watcher: Any, stage: Any) -> None:
    watcher.broken_link = 7
    watcher.runs = [stage.planned_run(watcher.episodes[0])]
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        await pilot.press("2")
        await stage.until(pilot, lambda: "RECORD ALTERED at step 7" in stage.screen_text(app))
        await pilot.press("v", "v")
        await stage.until(pilot, lambda: "0 runs, newest first, view: under way of 1" in stage.screen_text(app))


async def test_a_fleet_shows_the_worst_host_first_and_nothing_of_one_host_on_another(watcher: Any, stage: Any) -> None:
    from unveil_tui.app import Cockpit

    other = type(watcher)()
    other.host, other.episodes, other.windows = "quiet-node", [], [stage.window(n) for n in range(20)]
    gone = type(watcher)()
    gone.absent = True
    app = Cockpit(None, hosts={"quiet": lambda: other, "sick": lambda: watcher, "gone": lambda: gone})
    async with app.run_test(size=(130, 30), notifications=True) as pilot:
        await stage.until(pilot, lambda: stage.screen_text(app).count("manual") == 2)
        await stage.until(pilot, lambda: "1 without an answer" in stage.screen_text(app))
        lines = stage.screen_text(app).splitlines()
        order = [line.split()[0] for line in lines[2:5]]
        assert order == ["gone", "sick", "quiet"]
        assert "reduced_huge_page_co" in lines[3]
        await pilot.press("j", "enter")
        await stage.until(pilot, lambda: "gpu-node-17" in stage.screen_text(app))
        await pilot.press("tab", "enter")
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen))
        await pilot.press("0")
        await stage.until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.press("j", "enter")
        await stage.until(pilot, lambda: "quiet-node" in stage.screen_text(app))
        assert isinstance(app.screen, LiveScreen)
        assert "firing" not in stage.screen_text(app)
        assert len(app.screen_stack) == 1
        app.post_message(Open("host", "sick"))
        await stage.until(pilot, lambda: "gpu-node-17" in stage.screen_text(app))
        await pilot.press("tab", "enter")
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen))
        app.post_message(Open("host", "quiet"))
        await stage.until(pilot, lambda: isinstance(app.screen, LiveScreen) and "quiet-node" in stage.screen_text(app))
        assert len(app.screen_stack) == 1


@pytest.mark.slow
async def test_read_only_looks_closely_and_says_why_it_does_not_act(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, rights=READ_ONLY, size=(110, 34)) as (app, pilot):
        await pilot.press("tab")
        for key in ("a", "f", "n", "u", "x", "X", "s", "r"):
            app.clear_notifications()
            await pilot.press(key)
            await stage.until(pilot, lambda: "it only looks" in stage.said(app))
        assert isinstance(app.screen, LiveScreen)
        assert watcher.orders == []


async def test_a_watcher_that_refuses_this_user_is_said_and_asked_again(watcher: Any, stage: Any) -> None:
    class Refusing:
        refuses = True

        def call(self, method: str, **params: Any) -> Any:
            if self.refuses:
                raise RefusedError("not allowed to talk to the watcher at /run/x", hint="ask as root")
            return watcher.call(method, **params)

    refusing = Refusing()
    async with stage.cockpit(refusing) as (app, pilot):
        await stage.until(pilot, lambda: "not allowed to talk" in stage.screen_text(app))
        refusing.refuses = False
        await stage.until(pilot, lambda: "gpu-node-17" in stage.screen_text(app))
        assert "not allowed" not in stage.screen_text(app)


@pytest.mark.slow
async def test_a_click_on_a_key_presses_it(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        line = stage.screen_text(app).splitlines()[-1]
        await pilot.click(offset=(line.index("2 runs"), 23))
        await stage.until(pilot, lambda: "newest first" in stage.screen_text(app))


@pytest.mark.slow
async def test_what_tenants_wrote_is_text_on_every_screen(watcher: Any, stage: Any) -> None:
    hostile = Entity(EntityKind.CGROUP, stage.HOSTILE)
    watcher.episodes = [stage.episode(entity=hostile, fingerprint="f")]
    watcher.episodes[0] = replace(
        watcher.episodes[0], last=replace(watcher.episodes[0].last, bindings={"job": stage.HOSTILE})
    )
    watcher.marks = [
        Mark(episode="e00000000000a", fingerprint="f", kind=MarkKind.NOTE, text=stage.HOSTILE, actor="x", at_s=1.0)
    ]
    watcher.text = f"name: {stage.HOSTILE}"
    async with stage.cockpit(watcher, size=(110, 34)) as (app, pilot):
        for keys, screen in (
            (("enter",), WindowScreen),
            (("escape", "tab", "enter"), EpisodeScreen),
            (("o",), RuleScreen),
        ):
            await pilot.press(*keys)
            await stage.until(pilot, lambda wanted=screen: isinstance(app.screen, wanted))
            await stage.settle(pilot, 0.5)
            text = stage.screen_text(app)
            assert "\\x1b[2J\\u202e" in text, screen
            assert "[bold red]" in text
            assert "\x1b" not in text
            assert "\u202e" not in text


async def test_knowledge_shows_the_last_backtest_and_correlations(watcher: Any, stage: Any) -> None:
    figures = {"at_s": stage.START_S, "recordings": 3, "healthy_s": 7200.0, "intervals": 2, "found": 2,
               "other_fires": 1, "false_fires": 0, "revision": "r1"}  # fmt: skip
    async with stage.cockpit(watcher, size=(160, 40)) as (app, pilot):
        await pilot.press("3")
        await stage.until(pilot, lambda: "none is kept on this host" in stage.screen_text(app))
        watcher.backtests = {"reduced_huge_page_coverage": figures}
        app.screen.on_screen_suspend()
        app.screen.on_screen_resume()
        await stage.until(pilot, lambda: "2 of 2, 0 false" in stage.screen_text(app))
        assert "found 2 of 2 faults, 0 false fires, 1 in the time of other faults" in stage.screen_text(app)
        await pilot.press("j")
        await stage.until(pilot, lambda: "Gone on several at once" in stage.screen_text(app))
        text = stage.screen_text(app)
        assert "holds when: at least 2 different of entity fire within 60 s" in text
        assert "correlation" in text
        assert "holds fixes back" in text


def test_figures_of_another_version_are_marked(stage: Any) -> None:
    told = {"found": 1, "intervals": 2, "false_fires": 3, "revision": "old"}
    assert _backtested({"name": "f", "revision": "new"}, {"f": told}) == ("1 of 2, 3 false *", "warn")
    assert _backtested({"name": "f", "revision": "new"}, {}) == ("-", "dim")


async def test_an_episode_of_a_correlation_names_its_members(watcher: Any, stage: Any) -> None:
    member = stage.episode("e0000000000bb", entity=Entity(EntityKind.CGROUP, stage.HOSTILE))
    watcher.members = {"of": [member], "part_of": []}
    async with stage.cockpit(watcher, size=(130, 30)) as (app, pilot):
        await pilot.press("tab", "enter")
        await stage.until(
            pilot, lambda: "made of  reduced_huge_page_coverage on cgroup:/pods/" in stage.screen_text(app)
        )
        assert "\x1b" not in stage.screen_text(app)
        watcher.members = {"of": [], "part_of": [member]}
        await stage.until(pilot, lambda: "part of  reduced_huge_page_coverage" in stage.screen_text(app))


def test_a_series_is_drawn_between_its_own_bounds_and_absent_is_blank() -> None:
    assert tower([0.0, 8.0, None], low=0, high=8, rows=2) == [" █ ", "▁█ "]
    assert spark([1.0, None, 2.0], 5) == "  ▁ █"
    assert spark([], 3) == "   "
    assert band(0.0, 17) == "     ├──●──┤     "
    assert band(1e9, 17).endswith("●")
    assert band(-1e9, 17).startswith("●")


def test_markdown_cannot_be_left_by_what_a_tenant_wrote(stage: Any) -> None:
    assert code("a`b``c|d") == "``` a`b``c¦d ```"
    assert "\x1b" not in code(stage.HOSTILE)
    text = of_window(stage.window(55, severity=4.5), (), host="h`]|\n# x")
    assert "\n# x" not in text
    assert "| `memory.page_faults.rate` | 70.0% | 9,000 | 120 | +14.2 |" in text


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    assert write_new("1", "x.md", tmp_path).name == "x.md"
    assert write_new("2", "x.md", tmp_path).name == "x-1.md"
    assert (tmp_path / "x.md").read_text() == "1"


def test_times_and_lengths_are_understood_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()
    now_s = 1_764_072_000.0  # 2025-11-25 12:00
    assert moment_of("-10m", now_s) == now_s - 600
    assert moment_of("11:59:30", now_s) == now_s - 30
    assert moment_of("12:01", now_s) == now_s - 86400 + 60, "not come yet today: yesterday's"
    assert moment_of("11-24 12:00", now_s) == now_s - 86400
    for wrong in ("", "noon", "25:00", "12:61", "-x", "13-01 12:00"):
        assert moment_of(wrong, now_s) is None
    assert length_of("2h") == 7200
    assert length_of("2 weeks") is None


def test_a_problem_names_its_file_and_line() -> None:
    found = trouble("/kb/fingerprints/a.yml:3:7: what: ever", "/kb")
    assert found is not None
    assert (found.path, found.line, found.what) == ("fingerprints/a.yml", 3, "what: ever")
    assert trouble("something else", "/kb") is None
    assert ">>   2 b: \\x1b[2J" in yaml_text("a: 1\nb: \x1b[2J\n", [replace(found, line=2)]).plain
