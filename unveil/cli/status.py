"""`unveil status`: in one screen, how the host and its watcher are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.errors import WatcherAbsentError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Say in one screen how the host and its watcher are. Exit 1 when something needs a person."
EXAMPLE = "unveil status --watch"
MOST_EPISODES = 20  # of one screen; a host of a thousand containers may have as many
MOST_MATCHES = 3  # of one line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    connect.add_json(parser)
    parser.add_argument(
        "--watch", action="store_true", help="one line a window and a change, as plain text, until interrupted"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the status; 1 when an episode is open, the knowledge base is stale, or the watcher reports a problem."""
    client = connect.watcher(arguments)
    if arguments.watch:
        return _follow(client)
    status = client.call("status")
    if arguments.json:
        draw.print_json(status)
    else:
        _draw(status, client.call("episodes", open_only=True))
    stale = status["knowledge"]["stale_since_s"] is not None
    return 1 if status["episodes_open"] or stale or status["problems"] else 0


def _draw(status: dict[str, Any], episodes: list[dict[str, Any]]) -> None:
    shape, ticks, knowledge = status["shape"], status["ticks"], status["knowledge"]
    draw.line(
        f"{draw.plain(status['host'])}: {_count(shape['cpus'], 'CPU')}, {_count(shape['nodes'], 'node')}, "
        f"{_count(shape['gpus'], 'GPU')}, {_count(shape['nics'], 'NIC')}; "
        f"unveil {status['version']} pid {status['pid']}, up {draw.span(status['uptime_s'])}"
    )
    window = status["window"]
    if window is None:
        draw.line("no window yet: the first comes three seconds after the start")
    else:
        verdict = window["verdict"]
        state = verdict["state"] + (f" ({verdict['reason']})" if verdict["reason"] else "")
        draw.line(
            f"window {window['index']} at {draw.clock(window['wall_s'])}: {state}, severity {verdict['severity']:.2f} "
            f"by {status['rule']}; {status['training']}",
            style=draw.COLOURS.get(verdict["state"], ""),
        )
    if (rhythm := status["rhythm"]) is not None:
        draw.line(f"work repeats every {rhythm['period_s']:.3g} s, by {rhythm['source']}")
    elif window is not None:
        draw.line(f"no rhythm in the work; {status['rhythm_absent']}", style="dim")
    draw.line(
        f"knowledge base generation {knowledge['generation']}: {knowledge['fingerprints']} fingerprints, "
        f"{knowledge['remediations']} remediations; profile {status['profile']}"
    )
    if knowledge["stale_since_s"] is not None:
        draw.line(f"STALE since {draw.clock(knowledge['stale_since_s'])}, the old one stays in use:", style="bold red")
        for problem in knowledge["problems"]:
            draw.line(f"  {draw.plain(problem, 400)}", style="red")
    draw.line(
        f"own cost {100 * status['cost']['cpu_share']:.2f} % of one core, {status['cost']['rss_bytes'] / 1e6:.0f} MB; "
        f"{ticks['taken']} ticks, {ticks['missed']} missed, lateness p99 {ticks['late_p99_ms']:.1f} ms; "
        f"{status['channels']} channels, {status['features']} features"
    )
    for problem in status["problems"]:
        draw.line(f"problem: {draw.plain(problem, 400)}", style="yellow")
    if not episodes:
        draw.line("no open episode")
    for episode in episodes[:MOST_EPISODES]:
        draw.line(
            f"{episode['state']} {episode['fingerprint']} on {draw.entity(episode['entity'])} since "
            f"{draw.clock(episode['started_s'])}: `unveil explain {episode['id']}`",
            style=draw.COLOURS.get(episode["state"], ""),
        )
    if len(episodes) > MOST_EPISODES:
        draw.line(f"and {len(episodes) - MOST_EPISODES} more open: `unveil episodes --open`")


def _count(number: float | None, what: str) -> str:
    """Return ``2 CPUs``, ``1 node``; a host that does not tell has an unknown number of them."""
    if number is None:
        return f"unknown {what}s"
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def _follow(client: Any) -> int:
    """Say one plain line for each new window and each change: for logs, and for who listens instead of looking."""
    teller = Teller()
    while True:
        try:
            lines = teller.look(client)
        except WatcherAbsentError as error:
            lines = teller.absent(error.what)
        for line in lines:
            print(line, flush=True)
        time.sleep(1)


class Teller:
    """Turns what a watcher answers into lines, each said once."""

    def __init__(self) -> None:
        self._newest = (-1, -1)
        self._states: dict[str, str] = {}
        self._stale: float | None = None
        self._withheld = ""
        self._gone = False
        self._first = True

    def absent(self, why: str) -> list[str]:
        """Return what to say while the watcher does not answer.

        Raises:
            WatcherAbsentError: it never did.
        """
        if self._first:
            raise WatcherAbsentError(why, hint="start one with `unveil watch`, or name its --state-dir")
        said = [] if self._gone else [f"watcher gone: {draw.plain(why, 300)}; waiting for it"]
        self._gone = True
        return said

    def look(self, client: Any) -> list[str]:
        """Return what is new since the last look, oldest first."""
        windows = client.call("windows", limit=30)
        episodes = client.call("episodes", limit=100)
        knowledge = client.call("status")["knowledge"]
        lines = ["watcher answers again"] if self._gone else []
        self._gone = False
        lines += [_window_line(each) for each in reversed(windows) if (each["watch"], each["index"]) > self._newest]
        self._newest = max([self._newest, *((each["watch"], each["index"]) for each in windows)])
        lines += self._changes(episodes)
        if knowledge["stale_since_s"] != self._stale:
            self._stale = knowledge["stale_since_s"]
            reason = draw.plain(knowledge["problems"][0], 400) if knowledge["problems"] else ""
            lines.append("knowledge base in use is that on disk again" if self._stale is None else f"STALE: {reason}")
        if (withheld := knowledge.get("withheld", "")) != self._withheld:
            self._withheld = withheld
            lines.append(f"problem: {draw.plain(withheld, 400)}" if withheld else "roles and modes hold again")
        self._first = False
        return lines

    def _changes(self, episodes: list[dict[str, Any]]) -> list[str]:
        lines = []
        for each in reversed(episodes):
            state = each["state"]
            if self._states.get(each["id"]) != state and not (self._first and state == "cleared"):
                what = f"{draw.plain(each['fingerprint'])} on {draw.entity(each['entity'])}"
                lines.append(f"{draw.clock(each['last_s'])} episode {each['id']} {state}: {what}")
        self._states = {each["id"]: each["state"] for each in episodes}
        return lines


def _window_line(window: dict[str, Any]) -> str:
    verdict = window["verdict"]
    matching = [
        f"{sighting['fingerprint']} on {draw.plain(sighting['entity'])}"
        for sighting in window["sightings"]
        if sighting["answer"] == "match"
    ]
    seen = ", ".join(matching[:MOST_MATCHES])
    if len(matching) > MOST_MATCHES:
        seen += f" and {len(matching) - MOST_MATCHES} more"
    top = next((share["feature"]["name"] for share in window["attribution"]["features"]), "-")
    return (
        f"{draw.clock(window['wall_s'])} window {window['index']} {verdict['state']} "
        f"severity {verdict['severity']:.2f} most of it {top}{'; matches ' + seen if seen else ''}"
    )
