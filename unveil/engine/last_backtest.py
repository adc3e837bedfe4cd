"""What the last backtest said of each fingerprint, kept beside the journal: ``kb backtest`` writes, screens are told.

One small file of JSON. A fingerprint keeps its figures, and the revision that they are of, until its next backtest.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.knowledge.backtest import BacktestReport

NAME = "backtests.json"
MAX_BYTES = 8 * 1024 * 1024
_COUNTS = ("recordings", "intervals", "found", "other_fires", "false_fires")
_SECONDS = ("at_s", "healthy_s")


def keep(folder: Path, found: BacktestReport, revisions: Mapping[str, str], *, at_s: float) -> Path | None:
    """Keep the figures of a backtest in a state directory; return the file, None where there is no such place.

    Args:
        revisions: of the fingerprints that were backtested, by name.
        at_s: when, seconds since the epoch.
    """
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return None
    try:
        known = read(folder)
    except UnreadableError:
        known = {}
    for score in found.scores:
        if score.fingerprint in revisions:
            known[score.fingerprint] = {
                "at_s": at_s, "revision": revisions[score.fingerprint], "recordings": len(found.recordings),
                "healthy_s": found.healthy_s, "intervals": score.intervals, "found": score.found,
                "other_fires": score.other_fires, "false_fires": score.false_fires,
            }  # fmt: skip
    try:
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{NAME}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if os.geteuid() == 0:  # for a watcher that is not root's to read
                owner = folder.stat()
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            json.dump(known, file)
        return Path(temporary).replace(folder / NAME)
    except OSError:
        return None  # a full disk: the figures were printed all the same


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the figures by fingerprint; nothing where no backtest was kept.

    Raises:
        UnreadableError: the file is none of ours.
    """
    path = folder / NAME
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableError(f"{path} is larger than any record of backtests")
        told = json.loads(path.read_bytes())
        return {str(name): _figures(each) for name, each in told.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UnreadableError(f"{path} cannot be read", hint="remove it and run `unveil kb backtest` again") from error


def _figures(told: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {"revision": str(told["revision"])}
    figures |= {name: int(told[name]) for name in _COUNTS}
    return figures | {name: float(told[name]) for name in _SECONDS}
