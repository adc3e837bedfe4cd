"""What the watcher keeps out of its memory, and what would be paid for it: ``python -m unveil.benchmarks.imports``.

For each library, in a fresh process that has loaded all that a watcher has: how much its resident memory grows by the
import, and how much CPU time that takes. Then what each child of the watcher has when it is ready, in a process of its
own; pages that it shares with others count by share. Medians of some processes. Nothing is wanted of these numbers:
they are the reasons of decisions 8, 9, 19 and 20 in ``docs/ARCHITECTURE.md``.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WATCHER = "import unveil.cli.watch, unveil.engine.settings, unveil.engine.watch"
# What it is → (how it comes in, who has it instead).
_KEPT_OUT = {
    "scikit-learn": ("import sklearn.ensemble", "a child that trains, and goes"),
    "YAML and JSON Schema": ("import yaml, jsonschema, unveil.knowledge.loading", "a child that loads"),
    "OpenSSL": ("import _hashlib", "records/digest.py"),
    "statistics": ("import statistics", "records/averages.py"),
    "numpy's masked arrays": ("import numpy.ma", "records/averages.py"),
    "NVML's binding": ("import pynvml", "a child for each GPU"),
    "prometheus_client": ("import prometheus_client, http.server", "a child that serves"),
    "importlib.metadata": ("import importlib.metadata as told; told.version('numpy')", "engine/release.py"),
    "importlib.resources": ("import importlib.resources", "whoever names no knowledge base"),
    "tomllib": ("import tomllib", "whoever has such a file"),
    "difflib": ("import difflib", "whoever misspells"),
    "Arrow": ("import pyarrow.parquet", "whoever records"),
    "Jinja2": ("import jinja2.sandbox", "a plan that has a template"),
    "ansible-runner": ("import ansible_runner", "a run's child"),
}
_CHILDREN = {
    "of a GPU": "import unveil.host.gpu_child, pynvml",
    "of the metrics": "import unveil.engine.metrics_child, prometheus_client, http.server",
    "of the knowledge base": "import unveil.knowledge.load_serving",
}
_PROGRAM = """
import gc, time
{before}
def resident():
    gc.collect()
    with open("/proc/self/smaps_rollup") as rollup:
        told = dict(line.split()[:2] for line in rollup if line.endswith("kB\\n"))
    return float(told["{kind}:"]) * 1024 / 1e6
began, spent = resident() if "{before}" else 0.0, time.process_time()
{comes_in}
spent = time.process_time() - spent
print(resident() - began, 1e3 * spent)
"""


def growth(comes_in: str, *, before: str = _WATCHER) -> tuple[float, float] | None:
    """Return what an import adds: memory in MB and CPU time in ms; None where the library is not installed.

    Args:
        before: what has been imported already; without anything the whole process counts, shared pages by share.
    """
    program = _PROGRAM.format(before=before, comes_in=comes_in, kind="Rss" if before else "Pss")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr:
            return None
        raise RuntimeError(done.stderr)
    megabytes, milliseconds = map(float, done.stdout.split())
    return megabytes, milliseconds


def _line(name: str, comes_in: str, before: str, processes: int, remark: str = "") -> str:
    found = [each for _ in range(processes) if (each := growth(comes_in, before=before)) is not None]
    if not found:
        return f"{name:24}   not installed"
    megabytes, milliseconds = (statistics.median(each) for each in zip(*found, strict=True))
    return f"{name:24} {megabytes:7.1f} MB {milliseconds:7.0f} ms   {remark}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.imports", description=__doc__)
    parser.add_argument("--processes", type=int, default=3, help="fresh ones for each line (default 3)")
    options = parser.parse_args(arguments)
    print("a watcher would grow by, and has instead")
    for name, (comes_in, instead) in _KEPT_OUT.items():
        print(_line(name, comes_in, _WATCHER, options.processes, instead), flush=True)
    print("a child that is ready")
    for name, comes_in in _CHILDREN.items():
        print(_line(name, comes_in, "", options.processes), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
