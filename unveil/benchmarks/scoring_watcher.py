"""A process that judges as a watcher does, and says what a training in its child does to its own memory.

``python -m unveil.benchmarks.scoring_watcher FEATURES`` prints its resident bytes, as JSON: warm and untrained, after
the first training, and after the third. It is a process of its own, so that what measures it is not measured.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from unveil.benchmarks.scoring_host import warm
from unveil.engine.state_dir import StateDir
from unveil.engine.training import Training

TRAININGS = 3
DEADLINE_S = 300.0


def main() -> None:
    """Warm up, train three times, print."""
    ensemble, vectors = warm(int(sys.argv[1]))
    for vector in vectors:
        ensemble.judge(vector)
    resident = [_resident()]
    with tempfile.TemporaryDirectory(prefix="unveil-scoring-") as folder:
        training = Training(StateDir(Path(folder)), ensemble, always=True)
        for number in range(TRAININGS):
            model, deadline = ensemble.model, time.monotonic() + DEADLINE_S
            ensemble._next_training = 0  # due now; else it would be when the past has doubled
            while ensemble.model is model and time.monotonic() < deadline:
                if said := training.poll(1e9 + number * DEADLINE_S):
                    raise SystemExit(said)
                time.sleep(0.05)
            for vector in vectors:
                ensemble.judge(vector)
            resident.append(_resident())
        training.close()
    print(json.dumps(resident))


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
