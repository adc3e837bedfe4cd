"""The live screen: what it shows, how it is paused and stepped, and how it outlives its watcher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from textual import events
from textual.command import CommandPalette

from unveil.records.entity import Entity, EntityKind
from unveil.records.match import EpisodeState
from unveil_tui.screens.episode import EpisodeScreen
from unveil_tui.screens.live import LiveScreen
from unveil_tui.screens.silence import SilenceScreen
from unveil_tui.screens.window import WindowScreen
from unveil_tui.widgets.finder import Finder
from unveil_tui.widgets.row_table import RowTable

if TYPE_CHECKING:
    from unveil_tui.app import Cockpit


def windows_of(app: Cockpit) -> RowTable:
    return app.screen.query_one("#windows", RowTable)


async def test_it_says_what_host_this_is_and_how_its_watcher_is(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, _):
        text = stage.screen_text(app)
        assert "gpu-node-17  64 CPUs, 2 nodes, 8 GPUs  profile manual" in text
        assert "kb 3 (1 fingerprint)  cost 0.42 %, 41 MB  late 2 of 600" in text
        assert "1 open episode" in text


async def test_windows_show_state_severity_top_factor_and_match_without_colour(watcher: Any, stage: Any) -> None:
    watcher.push(severity=5.0)
    watcher.push()
    async with stage.cockpit(watcher, size=(120, 40)) as (app, _):
        text = stage.screen_text(app)
        assert "MMMMMMMMMM!·" in text  # the trace's verdicts: matched, then unmatched, then ordinary
        assert "anomalous  4.50 +14σ memory.page_faults.rate" in text
        assert "75%" not in text.split("verdict")[0]  # the newest window is ordinary: nothing to share out
        assert " ▃▃▃▃▃▃▃▃▃▃▅ " in text.split("memory   ")[0]


async def test_a_windows_shares_are_bars_of_six_subsystems(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, _):
        text = stage.screen_text(app)
        assert text.count("5%") == 6
        assert "█████████     75%" in text


async def test_the_pace_of_the_work_is_a_line_and_why_there_is_none_only_where_there_is_room(
    watcher: Any, stage: Any
) -> None:
    async with stage.cockpit(watcher, size=(100, 40)) as (app, pilot):
        assert "(no rhythm in the work; nothing repeats)" in stage.screen_text(app)
        await pilot.resize_terminal(80, 24)
        await stage.until(pilot, lambda: "no rhythm" not in stage.screen_text(app))
        watcher.rhythm = {"period_s": 1.2345, "source": "network.tx_bytes[nic:eth0]"}
        watcher.push()
        said = "work repeats every 1.23 s, by network.tx_bytes[nic:eth0]"
        await stage.until(pilot, lambda: said in stage.screen_text(app))


async def test_new_windows_appear_while_following(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        watcher.push(count=3)
        await stage.until(pilot, lambda: windows_of(app).cursor_key == "1:62")


async def test_space_pauses_and_follows_again(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("space")
        watcher.push(count=4)
        await stage.until(pilot, lambda: "4 newer" in stage.screen_text(app))
        assert windows_of(app).cursor_key == "1:59"
        assert "PAUSED" in stage.screen_text(app)
        await pilot.press("space")
        await stage.until(pilot, lambda: windows_of(app).cursor_key == "1:63")


@pytest.mark.slow
async def test_brackets_step_and_stepping_pauses(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("left_square_bracket", "left_square_bracket", "right_square_bracket")
        assert windows_of(app).cursor_key == "1:58"
        watcher.push(count=2)
        await stage.settle(pilot, 0.4)
        assert windows_of(app).cursor_key == "1:58"
        assert "of what moved 58" in stage.screen_text(app)
        await pilot.press("escape")
        await stage.until(pilot, lambda: windows_of(app).cursor_key == "1:61")


async def test_stepping_back_beyond_what_is_kept_asks_the_journal(watcher: Any, stage: Any) -> None:
    watcher.push(count=600)
    async with stage.cockpit(watcher) as (app, pilot):
        await stage.until(pilot, lambda: len(windows_of(app).keys) == 500)
        await pilot.press("g")
        assert windows_of(app).cursor_key == "1:160"
        await pilot.press("left_square_bracket")
        await stage.until(pilot, lambda: windows_of(app).cursor_key == "1:159")
        assert len(windows_of(app).keys) == 500


@pytest.mark.slow
async def test_vi_keys_move_the_cursor(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("k", "k", "j")
        assert windows_of(app).cursor_key == "1:58"
        await pilot.press("g")
        assert windows_of(app).cursor_key == "1:0"
        await pilot.press("G")
        assert windows_of(app).cursor_key == "1:59"


@pytest.mark.slow
async def test_enter_opens_the_window_and_escape_comes_back(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("enter")
        await stage.until(pilot, lambda: isinstance(app.screen, WindowScreen))
        await stage.settle(pilot)
        text = stage.screen_text(app)
        assert "window 59 of watch 1" in text
        assert "zscore 4.50 > 2.00 p 0.010 ANOMALOUS" in text
        assert "│█████" in text
        assert "██│" in text
        assert "9,000       120   +14.2" in text
        await pilot.press("left_square_bracket")
        await stage.until(pilot, lambda: "window 58 of watch 1" in stage.screen_text(app))
        await pilot.press("enter")  # on the fingerprint that matched
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen))
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, LiveScreen)


@pytest.mark.slow
async def test_the_filter_narrows_and_escape_clears_it_and_keeps_the_selection(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("space", "slash", *"anomalous")
        assert windows_of(app).keys == [f"1:{n}" for n in range(50, 60)]
        await pilot.press("enter", "k", "k")
        chosen = windows_of(app).cursor_key
        assert chosen == "1:57"
        await pilot.press("escape")
        assert len(windows_of(app).keys) == 60
        assert windows_of(app).cursor_key == chosen
        await pilot.press("slash", *"!anomalous")
        assert "1:57" not in windows_of(app).keys
        assert len(windows_of(app).keys) == 50


async def test_letters_that_arrive_together_with_the_slash_are_the_filter_and_no_orders(
    watcher: Any, stage: Any
) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab")
        for key, character in (("slash", "/"), *((each, each) for each in "rsaXu2q")):
            app.post_message(events.Key(key, character))
        await stage.until(pilot, lambda: app.screen.query_one(Finder).value == "rsaXu2q")
        assert isinstance(app.screen, LiveScreen)
        assert watcher.orders == []
        assert stage.said(app) == ""


async def test_rows_that_arrive_above_do_not_move_the_cursor_to_another_episode(watcher: Any, stage: Any) -> None:
    watcher.episodes = [stage.episode(f"e{n:012x}", at=50) for n in range(3)]
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab", "j")
        table = app.screen.query_one("#episodes", RowTable)
        chosen = table.cursor_key
        assert chosen == "e000000000001"
        first = replace(stage.episode("e0000000000ff", at=50), started_s=stage.START_S)  # sorts before all others
        watcher.episodes.insert(0, first)
        watcher.push()
        await stage.until(pilot, lambda: "e0000000000ff" in table.keys)
        assert table.keys[0] == "e0000000000ff"
        assert table.cursor_key == chosen
        await pilot.press("r")
        await stage.until(pilot, lambda: bool(watcher.orders))
        assert watcher.orders == [("plan", {"episode": chosen})]


async def test_a_filtered_table_acts_on_the_row_that_is_seen(watcher: Any, stage: Any) -> None:
    pods = [Entity(EntityKind.CGROUP, f"/pods/{name}") for name in ("blue", "green", "red")]
    watcher.episodes = [stage.episode(f"e{n:012x}", entity=pod) for n, pod in enumerate(pods)]
    async with stage.cockpit(watcher) as (_, pilot):
        await pilot.press("tab", "slash", *"green", "enter")
        watcher.push(count=2)
        await stage.settle(pilot, 0.4)
        await pilot.press("r")
        await stage.until(pilot, lambda: bool(watcher.orders))
        assert watcher.orders == [("plan", {"episode": "e000000000001"})]


async def test_names_from_tenants_are_drawn_as_text(watcher: Any, stage: Any) -> None:
    watcher.episodes = [stage.episode(entity=Entity(EntityKind.CGROUP, stage.HOSTILE))]
    async with stage.cockpit(watcher, size=(140, 40)) as (app, pilot):
        text = stage.screen_text(app)
        assert "/pods/[bold red]x[/]\\x1b[2J\\u202egnp" in text
        assert "\x1b" not in text
        for keys, screen in (
            (["tab", "enter"], EpisodeScreen),
            (["s"], SilenceScreen),
            (["escape", "colon"], CommandPalette),
        ):
            await pilot.press(*keys)
            await stage.until(pilot, lambda screen=screen: isinstance(app.screen, screen))
            await stage.until(pilot, lambda: "[bold red]x[/]\\x1b[2J" in stage.screen_text(app))


async def test_a_stale_knowledge_base_is_said_since_when_and_why(watcher: Any, stage: Any) -> None:
    watcher.stale = (stage.START_S, "fingerprints/x.yml:3:5: no such feature")
    async with stage.cockpit(watcher, size=(140, 40)) as (app, _):
        text = stage.screen_text(app)
        assert "kb 3*" in text
        assert "*STALE since" in text
        assert "fingerprints/x.yml:3:5: no such feature" in text


async def test_it_outlives_its_watcher(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        watcher.absent = True
        await stage.until(pilot, lambda: "watcher gone since" in stage.screen_text(app))
        assert "retrying (no watcher listens" in stage.screen_text(app)
        await pilot.press("j", "k", "enter", "escape", "tab", "r")  # all of it still answers
        await stage.until(pilot, lambda: "60 windows" in stage.screen_text(app) or "PAUSED" in stage.screen_text(app))
        watcher.absent = False
        watcher.started_s += 100
        watcher.windows = [replace(each, watch=2) for each in watcher.windows[:7]]
        await stage.until(pilot, lambda: "watcher gone" not in stage.screen_text(app))
        await pilot.press("1", "escape")
        await stage.until(pilot, lambda: "2:6" in windows_of(app).keys)


@pytest.mark.slow
async def test_it_opens_without_a_watcher_and_without_a_window(watcher: Any, stage: Any) -> None:
    watcher.absent, watcher.windows, watcher.episodes = True, [], []
    async with stage.cockpit(watcher) as (app, pilot):
        await stage.until(pilot, lambda: "retrying: " in stage.screen_text(app))
        assert "gone since" not in stage.screen_text(app), "it was never there"
        watcher.absent = False
        await stage.until(pilot, lambda: "no window yet" in stage.screen_text(app))
        await pilot.press("enter", "space", "left_square_bracket", "right_square_bracket", "tab", "enter", "r", "s")
        assert isinstance(app.screen, LiveScreen)


async def test_a_journal_that_was_started_anew_is_followed(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        watcher.started_s += 1000
        watcher.windows = watcher.windows[:3]
        await stage.until(pilot, lambda: windows_of(app).keys == ["1:0", "1:1", "1:2"])


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (300, 80)])
async def test_it_is_usable_at(watcher: Any, stage: Any, size: tuple[int, int]) -> None:
    async with stage.cockpit(watcher, size=size) as (app, _):
        text = stage.screen_text(app)
        assert "gpu-node-17" in text
        assert "anomalous" in text
        assert "reduced_huge" in text
        assert "help" in text or size[0] < 80
        assert all(len(line) <= size[0] for line in text.splitlines())


@pytest.mark.slow
async def test_a_terminal_that_shrinks_to_nothing_says_so_and_comes_back(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.resize_terminal(20, 5)
        await stage.until(pilot, lambda: "terminal 20x5" in stage.screen_text(app))
        watcher.push(count=2)
        await pilot.press("j", "k", "tab", "enter")
        await stage.settle(pilot, 0.4)
        await pilot.resize_terminal(80, 24)
        await pilot.press("1")
        await stage.until(pilot, lambda: "gpu-node-17" in stage.screen_text(app))
        assert "terminal 20x5" not in stage.screen_text(app)


async def test_a_subsystem_that_the_host_has_not_has_no_trace(watcher: Any, stage: Any) -> None:
    told = watcher.do_status
    watcher.do_status = lambda: {**told(), "shape": {"cpus": 64, "nodes": 2, "gpus": 0, "nics": 4}}
    watcher.windows = [
        replace(each, attribution=replace(each.attribution, subsystems={"memory": 1.0})) for each in watcher.windows
    ]
    async with stage.cockpit(watcher) as (app, _):
        (line,) = (each for each in stage.screen_text(app).splitlines() if each.strip().startswith("gpu "))
        assert line.split() == ["gpu", "none", "on", "this", "host:", "not", "measured", "-"]


@pytest.mark.slow
async def test_help_lists_the_keys_of_its_screen(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("question_mark")
        await stage.until(pilot, lambda: "keys on the live screen" in stage.screen_text(app))
        assert "pause on this window" in stage.screen_text(app)
        await pilot.resize_terminal(60, 24)
        await stage.settle(pilot)
        lines = stage.screen_text(app).splitlines()
        begun = next(number for number, line in enumerate(lines) if "pause on this window" in line)
        assert lines[begun + 1].index("again") >= lines[begun].index("pause"), "it stays beside its key"
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


async def test_the_footer_lists_only_keys_that_do_something(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        footer = stage.screen_text(app).splitlines()[-1]
        assert "r fix" not in footer
        await pilot.press("r")
        await stage.settle(pilot)
        assert not watcher.orders
        assert "move to an episode first" in stage.said(app)
        await pilot.press("tab")
        await stage.until(pilot, lambda: "r fix" in stage.screen_text(app).splitlines()[-1])


@pytest.mark.slow
async def test_the_palette_jumps_to_an_episode(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("colon")
        await stage.settle(pilot)
        await pilot.press(*"episode pod1")
        await stage.settle(pilot, 0.5)
        await pilot.press("enter")
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen))


@pytest.mark.slow
async def test_first_screens_are_a_key_apart(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        for key, words in (("2", "no run yet"), ("3", "Huge pages are gone"), ("1", "1 open episode")):
            await pilot.press(key)
            await stage.until(pilot, lambda words=words: words in stage.screen_text(app))  # type: ignore[misc]
        await pilot.press("3")
        await stage.settle(pilot, 0.5)
        text = stage.screen_text(app)
        assert "Small pages cost [bold]TLB[/] misses." in text
        assert "stable" in text
        assert "medium" in text


async def test_a_cleared_episode_is_listed_as_cleared(watcher: Any, stage: Any) -> None:
    watcher.episodes.append(stage.episode("e0000000000cc", state=EpisodeState.CLEARED))
    async with stage.cockpit(watcher) as (app, _):
        assert "1 open episode, 1 cleared" in stage.screen_text(app)


@pytest.mark.slow
async def test_an_answer_out_of_shape_is_said_and_survived(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        good = watcher.do_status
        watcher.do_status = lambda: {"nonsense": 1}  # type: ignore[method-assign]
        await stage.until(pilot, lambda: "cannot be read" in stage.screen_text(app))
        watcher.do_status = good  # type: ignore[method-assign]
        await stage.until(pilot, lambda: "cannot be read" not in stage.screen_text(app))


@pytest.mark.slow
async def test_a_click_moves_and_a_second_one_opens(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        table: Any = windows_of(app)
        region = table.region_of("1:58")
        await pilot.click("#windows", offset=(5, region.y))
        await stage.settle(pilot)
        assert table.cursor_key == "1:58"
        await pilot.click("#windows", offset=(5, table.region_of("1:58").y))
        await stage.until(pilot, lambda: isinstance(app.screen, WindowScreen))


async def test_it_says_the_same_in_a_light_theme_and_in_one_colour(
    watcher: Any, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage.cockpit(watcher) as (app, pilot):
        assert app.no_color
        dark = stage.screen_text(app)
        app.theme = "textual-light"
        await stage.settle(pilot)
        assert stage.screen_text(app) == dark
        assert "MMMMMMMMMM" in dark
