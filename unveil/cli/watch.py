"""`unveil watch`: watch this host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import connect

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Watch this host until interrupted: windows, anomalies, matches; and fixes that a person approved.

By default it only observes: it plans when asked, and changes nothing. How far it may go is the --profile (or, with the
default `site`, the knowledge base's inventory/profiles.yml): observe, manual (a person plans, approves and applies),
approve (it proposes, a person approves), auto (within each remediation's limits)."""
EXAMPLE = "unveil watch --profile manual"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags; each is a setting of the same name in unveil.toml and the environment."""
    connect.add_state_dir(parser)
    parser.add_argument("--kb", metavar="DIR", help="knowledge base: the folder with fingerprints/ and playbooks/")
    parser.add_argument("--host-root", type=Path, metavar="DIR", help="where the host's proc and sys are (default: /)")
    parser.add_argument("--profile", metavar="MODE", help="site, observe, manual, approve or auto (default: site)")
    parser.add_argument("--rule", metavar="RULE", help="which detectors decide, e.g. 'zscore|mahalanobis' or '2of3'")
    parser.add_argument("--false-alarms-per-day", type=float, metavar="N", help="on an ordinary host (default: 24)")
    parser.add_argument("--no-gpu", dest="gpu", action="store_const", const=False, help="leave NVML alone")
    parser.add_argument("--metrics", metavar="[ADDR:]PORT", help="serve metrics there, on the loopback (default: off)")
    parser.add_argument("--metrics-file", metavar="FILE", help="write metrics to FILE.prom, for node_exporter")
    parser.add_argument("--verbose", action="store_true", help="log what it does, on standard error")


def run(arguments: argparse.Namespace) -> int:
    """Watch."""
    import logging
    import os

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # before numpy is loaded: a pool of threads would only wait, and be paid for

    from unveil.engine.bare_imports import bare_imports

    with bare_imports():
        from unveil.engine.settings import load_settings
        from unveil.engine.watch import run_watch

    logging.basicConfig(
        level=logging.INFO if arguments.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = load_settings(vars(arguments))
    connect.checked_root(settings.host_root)
    if sys.stderr.isatty():
        print(
            "unveil: watching until Ctrl-C; `unveil status` and `unveil tui` in another terminal show what it sees",
            file=sys.stderr,
        )
    run_watch(settings)
    return 0
