"""Hostile names, to us and to ansible-rulebook: ``python -m unveil.benchmarks.hostile --rulebook PYTHON``.

A tenant names its jobs ``{{ lookup('pipe', 'touch …') }}`` and the like; all that such a name does, if anything runs
it, is to make a file in a temporary folder. Both sides pass the same names to the same playbook, which shows them. A
table says what became of each; exit 1 when our side runs one. Without ``--rulebook`` only ours is looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.kill_matrix import MODULES, example_episode
from unveil.benchmarks.kill_watcher import Orders, remediation
from unveil.benchmarks.rulebook_peer import PATIENCE_S, Peer
from unveil.execution.supervisor import RunSupervisor
from unveil.records.fact import FactTable
from unveil.records.remediation import Variable
from unveil.remediation.lifecycle import new_run
from unveil.remediation.planner import plan

if TYPE_CHECKING:
    from collections.abc import Iterable

PAYLOADS = {
    "a lookup that runs a command": "{{ lookup('pipe', 'touch CANARY') }}",
    "a statement with a query": "{% if query('pipe', 'touch CANARY') %}job{% endif %}",
    "a template in a template": '{{ \'{{ lookup("pipe", "touch CANARY") }}\' }}',
    "a shell's substitution": "$(touch CANARY); touch CANARY #",
    "a task in YAML": "job\n    - ansible.builtin.command: touch CANARY",
}
RAN, SHOWED = "RAN IT", "showed it"


def names(folder: Path) -> dict[str, str]:
    """Return variable → hostile name; each makes a file of its variable's name."""
    folder.mkdir(parents=True)
    return {f"job_{at}": text.replace("CANARY", str(folder / f"job_{at}")) for at, text in enumerate(PAYLOADS.values())}


def playbook(folder: Path, variables: Iterable[str]) -> Path:
    """Write the playbook that shows the names, and return it."""
    lines = ["- hosts: localhost", "  gather_facts: false", "  tasks:"]
    for name in variables:
        lines += [
            f"    - name: Say whose it is ({name})",
            "      ignore_errors: true",
            "      ansible.builtin.debug:",
            f'        msg: "the job is {{{{ {name} }}}}"',
        ]
    path = folder / "apply.yml"
    path.write_text("\n".join(lines) + "\n")
    return path


def ours(folder: Path) -> list[str]:
    """Return what our playbook made of each name."""
    given, canaries = names(folder / "canaries"), folder / "canaries"
    (folder / "kb").mkdir(mode=0o700)
    fix = replace(
        remediation(playbook(folder / "kb", given), Orders(run="")),
        settings=(),
        variables=tuple(
            Variable(name=name, type="string", default=text, untrusted=True, max_length=1000)
            for name, text in given.items()
        ),
    )
    drawn = plan(
        fix, example_episode(), facts=FactTable(), site={}, read=lambda _address: None,
        baseline=lambda _name, _entity: None, now_s=time.time(),
    )  # fmt: skip
    child = RunSupervisor(folder / "runs", MODULES).start(new_run("r000000000001", drawn, "uid:0", time.time()))
    shown = 0
    while (progress := child.poll()).result is None or progress.events:
        shown += sum(event.kind == "runner_on_ok" for event in progress.events)
        time.sleep(0.05)
    child.reap()
    if shown != len(given):
        raise SystemExit(f"our playbook showed {shown} of {len(given)} names: {progress.result}")
    return [RAN if (canaries / name).exists() else SHOWED for name in given]


def theirs(folder: Path, python: Path) -> list[str]:
    """Return what the peer made of each name, which comes in the payload of an event."""
    given, canaries = names(folder / "canaries"), folder / "canaries"
    (folder / "kb").mkdir()
    variables = json.dumps({"job": "{{ event.payload.job }}"})
    peer = Peer(python, folder / "peer", playbook(folder / "kb", ["job"]), MODULES, folder, variables=variables)
    try:
        return [_told(peer, text, canaries / name) for name, text in given.items()]
    finally:
        peer.close()


def _told(peer: Peer, name: str, canary: Path) -> str:
    since, end = peer.heard(), time.monotonic() + PATIENCE_S
    peer.post(job=name)
    while not any(word in peer.said(since) for word in ("PLAY RECAP", "ERROR")):
        if time.monotonic() > end:
            raise SystemExit(f"ansible-rulebook did nothing: {peer.said(since)}")
        time.sleep(0.05)
    time.sleep(0.5)  # its own tidying up
    if canary.exists():
        return RAN
    return SHOWED if "PLAY RECAP" in peer.said(since) else "failed on it"


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 when ours ran a name."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.hostile", description=__doc__)
    parser.add_argument("--rulebook", metavar="PYTHON", help="Python of an environment with ansible-rulebook")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="unveil-hostile-") as place:
        told = {"unveil": ours(Path(place) / "ours")}
        if arguments.rulebook:
            told["ansible-rulebook"] = theirs(Path(place) / "theirs", Path(arguments.rulebook))
    print(f"{'a job that is named':<30}" + "".join(f"  {side:<16}" for side in told))
    for payload, *answers in zip(PAYLOADS, *told.values(), strict=True):
        print(f"{payload:<30}" + "".join(f"  {answer:<16}" for answer in answers))
    return int(RAN in told["unveil"])


if __name__ == "__main__":
    sys.exit(main())
