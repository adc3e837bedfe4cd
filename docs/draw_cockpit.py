"""Draw the cockpit on the demo's recording: `docs/cockpit.svg` when an anomaly is matched, and one of its windows.

python docs/draw_cockpit.py
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"  # read when textual is imported

from typing import TYPE_CHECKING

from unveil.cli.demo import recording
from unveil.cli.tui import PacedReplay
from unveil_tui.app import Cockpit
from unveil_tui.rights import RECORDING
from unveil_tui.screens.window import WindowScreen
from unveil_tui.widgets.near_panel import NearPanel

if TYPE_CHECKING:
    from unveil.records.window import WindowSummary

SPEED = 30.0
MATCHED = 8  # windows that are anomalous and matched, at the end of the trace
TITLE = "unveil tui --replay demo"


async def draw(folder: Path) -> None:
    """Watch the recording until enough windows are anomalous and matched, and save what stands on the screen."""
    replay = PacedReplay(recording(), speed=SPEED)
    app = Cockpit(replay, rights=RECORDING)
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            while sum(_explained(window) for window in app.seen.windows) < MATCHED:
                await pilot.pause(0.1)
            await pilot.press("space")
            await pilot.pause(0.5)
            (folder / "cockpit.svg").write_text(app.export_screenshot(title=TITLE))
            newest = [window for window in app.seen.windows if _explained(window)][-1]
            app.push_screen(WindowScreen(f"{newest.watch}:{newest.index}"))
            await pilot.pause(1.0)
            while not app.screen.query_one(NearPanel).picked:
                await pilot.pause(0.1)
            await pilot.pause(1.0)
            (folder / "cockpit-window.svg").write_text(app.export_screenshot(title=TITLE))
    finally:
        replay.close()


def _explained(window: WindowSummary) -> bool:
    anomalous = window.verdict.state == "anomalous"
    return anomalous and any(each.answer == "match" for each in window.sightings)


if __name__ == "__main__":
    asyncio.run(draw(Path(__file__).parent))
