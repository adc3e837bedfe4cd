"""`unveil doctor`: what is measured here, what is not and why, and what it costs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.snapshot import add_host_root, host_root

if TYPE_CHECKING:
    import argparse

    from unveil.host.doctor import Examination

DESCRIPTION = """List what is measured on this host, at which pace and cost, what is not and why, and which fingerprints
are blind for it. Reads for two seconds, changes nothing. Exit 1 when something that should work does not."""
EXAMPLE = "unveil doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_host_root(parser)
    connect.add_json(parser)
    parser.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
    parser.add_argument("--no-gpu", dest="gpu", action="store_const", const=False, help="leave NVML alone")
    parser.add_argument("--verbose", action="store_true", help="also list absent facts one by one")


def run(arguments: argparse.Namespace) -> int:
    """Examine the host and print the findings; 1 when a source failed or is stale, or a fingerprint cannot load."""
    from unveil.engine.needs import needs
    from unveil.host.doctor import blind, examine
    from unveil.host.root import HostRoot
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.loading import load
    from unveil.records.codec import encode

    root = HostRoot(host_root(arguments))
    found = examine(root, gpus=arguments.gpu)
    loaded = load(knowledge_root(arguments.kb))
    fingerprints = () if loaded.knowledge is None else loaded.knowledge.fingerprints
    required = {fingerprint.name: needs(fingerprint) for fingerprint in fingerprints}
    blinds = blind(required, {*found.metrics, *found.facts})
    sick = [source for source in found.sources if source.state in ("failed", "stale")]
    if arguments.json:
        draw.print_json(
            {"examination": encode(found), "blind": encode(blinds), "knowledge_problems": encode(loaded.errors)}
        )
    else:
        _draw(found, verbose=arguments.verbose)
        _draw_blind(blinds, len(fingerprints))
        for problem in loaded.errors:
            draw.line(draw.plain(problem, 1000), style="red")
    return 1 if sick or loaded.errors else 0


def _draw(found: Examination, *, verbose: bool) -> None:
    draw.line(f"host root {found.root}, kernel {found.kernel or 'unknown'}")
    draw.table(
        ("source", "state", "tier", "every>", "channels>", "us a read>", "reason"),
        (
            (
                source.name,
                str(source.state),
                str(source.tier),
                f"{source.period_s:g} s",
                source.channels,
                f"{source.read_us + source.parse_us:.0f}",
                source.reason,
            )
            for source in found.sources
        ),
        title=f"{len(found.metrics)} metrics measured for {100 * found.core_share:.2f} % of one core",
    )
    draw.table(
        ("", "capability", "what was found"),
        (
            (
                {True: "yes", False: "no", None: "?"}[each.there],
                each.name,
                each.detail + (f"; {each.hint}" if each.hint else ""),
            )
            for each in found.capabilities
        ),
    )
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
        draw.line(f"  {count} x {draw.plain(reason)}", style="dim")
    if len(reasons) > 8:
        draw.line(f"  and {len(reasons) - 8} other reasons: --verbose lists all", style="dim")


def _draw_blind(blinds: tuple[Any, ...], fingerprints: int) -> None:
    draw.line(f"{fingerprints - len(blinds)} of {fingerprints} fingerprints can see; blind here:")
    for each in blinds:
        draw.line(f"  {each.fingerprint}: this host has no {', '.join(each.missing)}", style="yellow")
    if not blinds:
        draw.line("  none", style="green")
