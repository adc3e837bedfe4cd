"""What the commands know of a watch is there in a live one and in a recorded one alike."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from unveil.engine import watched
from unveil.engine.replaying import RecordedWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def promised(protocol: type) -> set[str]:
    names = {name for name in vars(protocol) if not name.startswith("_")}
    return names | set(protocol.__annotations__)


def test_a_live_watch_and_a_recorded_one_keep_every_promise(
    watch: Callable[..., Any], recording: Path, kb: Path
) -> None:
    replay = RecordedWatch(str(recording), kb=str(kb))
    for one in (watch(), replay):
        assert not {name for name in promised(watched.Watched) if not hasattr(one, name)}
        for part, protocol in (
            (one.knowledge, watched.Knowledge),
            (one.runs, watched.Runs),
            (one.settings, watched.Readable),
        ):
            assert not {name for name in promised(protocol) if not hasattr(part, name)}
    replay.close()


def test_both_tell_their_status_with_the_same_keys(watch: Callable[..., Any], recording: Path, kb: Path) -> None:
    replay = RecordedWatch(str(recording), kb=str(kb))
    live, recorded = watch().status(), replay.status()
    assert live.keys() == recorded.keys()
    for name in ("ticks", "cost", "shape", "knowledge"):
        assert live[name].keys() == recorded[name].keys()
    assert inspect.signature(replay.call).parameters.keys() == {"method", "params"}
    replay.close()
