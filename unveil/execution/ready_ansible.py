# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook that has its libraries loaded before it knows what to play: ``python ready_ansible.py FIFO``.

A program of its own, run by its path as ansible-playbook is and imported by nothing, because it imports ansible-core.
It reads one line from the FIFO, its arguments as a JSON list, and is ansible-playbook from then on. When the other end
is closed before that, whoever would have told it is gone, and it ends.
"""

from __future__ import annotations

import gc
import json
import os
import sys


def main(fifo: str) -> int:
    """Load, wait for the arguments, play."""
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # waits for nobody who may be gone
    gc.disable()  # what is imported stays: looking through it for cycles is an eighth of the import
    from ansible.cli.playbook import PlaybookCLI

    gc.freeze()
    gc.enable()
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, encoding="utf-8") as told:
        line = told.readline()
    if line.endswith("\n"):
        PlaybookCLI.cli_executor(["ansible-playbook", *json.loads(line)])  # which exits with Ansible's status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
