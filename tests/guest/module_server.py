"""Calls our Ansible modules in the guest, each in a process of its own that has Ansible's libraries already.

Loading them takes an emulated CPU ten seconds, so it is done once. A line on standard input names a module, a file of
arguments and a file for what the module says; the answer is whole when that file is there.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path

import ansible.module_utils
import ansible.module_utils.basic  # what there is to load


def call(module: str, arguments: str, answer: str) -> None:
    """Run a module as Ansible does, in a child; what it prints becomes the answer."""
    if os.fork():
        return
    said = os.open(f"{answer}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(said, stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.argv = [module, arguments]
    try:
        runpy.run_path(module, run_name="__main__")
    except SystemExit:
        sys.stdout.flush()
    finally:
        Path(f"{answer}.part").rename(answer)
        os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        call(*line.split())


if __name__ == "__main__":
    ansible.module_utils.__path__.append(sys.argv[1])
    main()
