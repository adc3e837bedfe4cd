"""`unveil doctor`: what is measured here, what is not and why, and what it costs. Fits a screen of 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.snapshot import add_host_root, host_root
from unveil.errors import UnveilError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from unveil.host.doctor import Blind, Examination
    from unveil.host.source import SourceHealth

DESCRIPTION = """List what is measured on this host, at which pace and cost, what is not and why, and which fingerprints
are blind for it. Reads for two seconds, changes nothing; what a running watcher has learnt about costs and
drivers since it started is told as well. Exit 1 when something that should work does not."""
EXAMPLE = "unveil doctor"
_WIDTH = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_host_root(parser)
    connect.add_json(parser)
    connect.add_state_dir(parser)
    parser.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
    parser.add_argument("--no-gpu", dest="gpu", action="store_const", const=False, help="leave NVML alone")
    parser.add_argument(
        "--verbose", action="store_true", help="also list absent facts and blind fingerprints one by one"
    )


def run(arguments: argparse.Namespace) -> int:
    """Examine the host and print the findings; 1 when something that should work or hold does not."""
    from unveil.engine.granting import why_withheld
    from unveil.engine.needs import needs
    from unveil.host.doctor import blind, examine
    from unveil.host.root import HostRoot
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.loading import load
    from unveil.records.codec import encode

    root = HostRoot(host_root(arguments))
    found = examine(root, gpus=arguments.gpu)
    watcher = _watcher(arguments) if root.live else None
    kb = knowledge_root(arguments.kb)
    loaded = load(kb)
    withheld = "" if loaded.knowledge is None else why_withheld(kb, loaded.knowledge.profiles)
    if watcher is not None:  # its word counts: it may be another user's
        withheld = watcher["withheld"]
    fingerprints = () if loaded.knowledge is None else loaded.knowledge.fingerprints
    required = {fingerprint.name: needs(fingerprint) for fingerprint in fingerprints}
    blinds = blind(required, {*found.metrics, *found.facts})
    if arguments.json:
        told = {"examination": encode(found), "too_dear": encode(found.too_dear), "blind": encode(blinds)}
        draw.print_json({**told, "watcher": watcher, "knowledge_problems": encode(loaded.errors), "withheld": withheld})
    else:
        _draw_sources(found, watcher)
        _draw_capabilities(found)
        _draw_facts(found, verbose=arguments.verbose)
        _draw_blind(blinds, len(fingerprints), verbose=arguments.verbose)
        for problem in loaded.errors:
            draw.line(draw.plain(problem, 1000), style="red")
        if withheld:
            draw.line(_whole_paths(draw.plain(withheld, 1000)), style="red")
    sick = found.sick or (watcher is not None and watcher["sick"])
    return 1 if sick or loaded.errors or withheld else 0


def _watcher(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return what the running watcher says of its sources, None when there is none that we may ask."""
    try:
        status = connect.watcher(arguments).call("status")
    except UnveilError:
        return None
    states = {each["name"]: f"{each['state']}: {each['reason']}" for each in status["sources"]}
    return {
        "pid": status["pid"],
        "withheld": status["knowledge"].get("withheld", ""),
        "sick": {
            each["name"]: states[each["name"]] for each in status["sources"] if each["state"] in ("failed", "stale")
        },
        "slowed": {
            each["name"]: each["reason"]
            for each in status["sources"]
            if each["state"] == "ok" and each["reason"].startswith("read every ")
        },
    }


def _draw_sources(found: Examination, watcher: dict[str, Any] | None) -> None:
    measured = [source for source in found.sources if source.state == "ok"]
    draw.line(f"host root {found.root}, kernel {found.kernel or 'unknown'}")
    draw.table(
        ("measured", "pace", "every>", "channels>", "us a read>", "% of a core>"),
        (
            (
                source.name,
                str(source.tier),
                f"{source.period_s:g} s",
                source.channels,
                f"{source.read_us + source.parse_us:.0f}",
                f"{_share(source):.3f}",
            )
            for source in measured
        ),
        title=f"{len(found.metrics)} metrics measured for {100 * found.core_share:.2f} % of one core",
    )
    _list("in part", ((source.name, source.reason) for source in measured if source.reason))
    _list("absent", ((source.name, source.reason) for source in found.sources if source.state == "absent"), style="dim")
    _list(
        "does not work",
        ((source.name, f"{source.state}: {source.reason}") for source in found.sick),
        none="nothing",
        style="red",
    )
    _list("too expensive", found.too_dear.items(), none="nothing", style="yellow")
    if watcher is not None:
        _list(f"the running watcher (PID {watcher['pid']}) finds sick", watcher["sick"].items(), style="red")
        _list(f"the running watcher (PID {watcher['pid']}) slowed down", watcher["slowed"].items(), style="yellow")


def _whole_paths(text: str) -> str:
    """Fold a text whose paths are to be copied: none is broken."""
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def _share(source: SourceHealth) -> float:
    return 100 * (source.read_us + source.parse_us) / 1e6 / source.period_s


def _list(title: str, rows: Iterable[tuple[str, str]], *, none: str = "", style: str = "") -> None:
    """Print names and reasons, folded to the width of a small screen; one line when there is none."""
    told = list(rows)
    if not told:
        if none:
            draw.line(f"{title}: {none}")
        return
    draw.line(f"{title}:")
    for name, reason in told:
        text = f"{draw.plain(name)}: {draw.plain(reason, 1000)}"
        draw.line(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    "), style=style)


def _draw_capabilities(found: Examination) -> None:
    draw.line("what this process may do:")
    for each in found.capabilities:
        there = {True: "yes", False: "no", None: "?"}[each.there]
        text = f"{each.name}: {draw.plain(each.detail)}{f'; {draw.plain(each.hint, 500)}' if each.hint else ''}"
        draw.line(textwrap.fill(text, _WIDTH, initial_indent=f"  {there:4}", subsequent_indent="      "))


def _draw_facts(found: Examination, *, verbose: bool) -> None:
    reasons: Counter[str] = Counter()
    for absent in found.absent:
        reasons[absent.reason] += len(absent.entities)
    draw.line(f"{len(found.facts)} facts told; {sum(reasons.values())} are not:")
    if verbose:
        draw.table(
            ("fact", "entities", "reason"),
            ((absent.name, ", ".join(absent.entities), absent.reason) for absent in found.absent),
        )
        return
    for reason, count in reasons.most_common(8):
        text = textwrap.fill(draw.plain(reason), _WIDTH, initial_indent=f"  {count} x ", subsequent_indent="    ")
        draw.line(text, style="dim")
    if len(reasons) > 8:
        draw.line(f"  and {len(reasons) - 8} other reasons: --verbose lists all", style="dim")


def _draw_blind(blinds: tuple[Blind, ...], fingerprints: int, *, verbose: bool) -> None:
    """Print which fingerprints are blind: by what they lack, or with --verbose one by one."""
    draw.line(f"{fingerprints - len(blinds)} of {fingerprints} fingerprints can see; blind here:")
    if not blinds:
        draw.line("  none", style="green")
    lacking: dict[str, list[str]] = {}
    for each in blinds:
        without = ", ".join(each.missing if verbose else each.sources)
        lacking.setdefault(each.fingerprint if verbose else f"without {without}", []).append(
            f"this host has no {without}" if verbose else each.fingerprint
        )
    for name, told in lacking.items():
        text = f"{name}: {', '.join(told)}"
        draw.line(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    "), style="yellow")
    if blinds and not verbose:
        draw.line("  --verbose tells what each lacks", style="dim")
