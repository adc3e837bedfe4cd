"""`unveil gpu`: let the running watcher let go of the GPUs for maintenance, and take them again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.errors import RefusedError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Have the running watcher give all handles of the GPUs back, before a driver is unloaded or a GPU
reset, and take them again afterwards. Without a word it says how the reading of GPUs stands.

`release` waits until the handles are gone. A process that is inside a driver call is never killed: it ends when the
call returns, and until then the answer is exit 1."""
EXAMPLE = "unveil gpu release && nvidia-smi --gpu-reset -i 0; unveil gpu resume"
_LOOK_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument(
        "order",
        nargs="?",
        choices=("release", "resume"),
        metavar="release|resume",
        help="what to do (default: only tell)",
    )
    parser.add_argument("--wait", type=float, default=30.0, metavar="S", help="longest wait for release (default: 30)")


def run(arguments: argparse.Namespace) -> int:
    """Release, resume or tell."""
    client = connect.watcher(arguments)
    if arguments.order is None:
        return _tell(client.call("gpus"), as_json=arguments.json)
    told = client.call(f"{arguments.order}_gpus")
    if arguments.order == "release":
        until = time.monotonic() + arguments.wait
        while told["condition"] == "releasing" and time.monotonic() < until:
            time.sleep(_LOOK_S)
            told = client.call("gpus")
        if told["condition"] == "releasing":
            raise RefusedError(
                f"not yet: {draw.plain(told['reason'])}", hint="wait for the driver; `unveil gpu` tells how it stands"
            )
    return _tell(told, as_json=arguments.json)


def _tell(told: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        draw.print_json(told)
    else:
        reason = f": {draw.plain(told['reason'])}" if told["reason"] else ""
        draw.line(f"GPUs are {told['condition']}{reason}")
        for uuid in told["gpus"]:
            draw.line(f"  {draw.plain(uuid)}")
        for uuid, why in told["lost"].items():
            draw.line(f"  {draw.plain(uuid)} is lost: {draw.plain(why)}", style="red")
    return 1 if told["lost"] or told["condition"] in ("stale", "failed") else 0
