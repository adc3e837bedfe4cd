"""One hostile name, to us and to ansible-rulebook: ``python -m unveil.benchmarks.hostile_name --rulebook PYTHON``.

A tenant names its job ``{{ lookup('pipe', 'touch …') }}``. Both sides pass the name to a playbook that shows it. Exit 1
when our side runs it. Without ``--rulebook`` only ours is looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from unveil.benchmarks.kill_matrix import MODULES, example_episode
from unveil.benchmarks.kill_watcher import Orders, remediation
from unveil.benchmarks.rulebook_peer import Peer
from unveil.execution.supervisor import RunSupervisor
from unveil.records.fact import FactTable
from unveil.records.remediation import Variable
from unveil.remediation.lifecycle import new_run
from unveil.remediation.planner import plan

SHOW = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Say whose it is
      ansible.builtin.debug:
        msg: "the tenant is {{ tenant }}"
"""


def ours(folder: Path, name: str) -> str:
    """Return what our playbook showed for a tenant's name."""
    (folder / "kb").mkdir(mode=0o700)
    playbook = folder / "kb/apply.yml"
    playbook.write_text(SHOW)
    fix = replace(
        remediation(playbook, Orders(run="")),
        settings=(),
        variables=(Variable(name="tenant", type="string", default=name, untrusted=True, max_length=253),),
    )
    drawn = plan(
        fix, example_episode(), facts=FactTable(), site={}, read=lambda _address: None,
        baseline=lambda _name, _entity: None, now_s=time.time(),
    )  # fmt: skip
    supervisor = RunSupervisor(folder / "runs", MODULES)
    child = supervisor.start(new_run("r000000000001", drawn, "uid:0", time.time()))
    said = ""
    while (progress := child.poll()).result is None or progress.events:
        said = next((event.message for event in progress.events if event.kind == "runner_on_ok"), said)
        time.sleep(0.05)
    child.reap()
    return said


def theirs(folder: Path, python: Path, name: str, canary: Path) -> str:
    """Return what the peer's playbook printed for the same name, in the payload of an event."""
    playbook = folder / "show.yml"
    playbook.write_text(SHOW)
    variables = json.dumps({"tenant": "{{ event.payload.tenant }}"})
    peer = Peer(python, folder / "peer", playbook, MODULES, folder, variables=variables)
    try:
        peer.post(tenant=name)
        end = time.monotonic() + 40
        while time.monotonic() < end and "PLAY RECAP" not in peer.said() and not canary.exists():
            time.sleep(0.05)
        time.sleep(0.5)
        return next((line.strip() for line in peer.said().splitlines() if "the tenant is" in line), peer.said())
    finally:
        peer.close()


def main(argv: list[str] | None = None) -> int:
    """Show both sides; 1 when ours ran the name."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.hostile_name", description=__doc__)
    parser.add_argument("--rulebook", metavar="PYTHON", help="Python of an environment with ansible-rulebook")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="unveil-hostile-") as place:
        folder = Path(place)
        canary = folder / "canary"
        name = f"{{{{ lookup('pipe', 'touch {canary}') }}}}"
        said = ours(folder, name)
        ran = canary.exists()
        print(f"unveil:           {'RAN IT' if ran else 'did not run it'}; it showed: {said}")
        if arguments.rulebook:
            canary.unlink(missing_ok=True)
            said = theirs(folder, Path(arguments.rulebook), name, canary)
            print(f"ansible-rulebook: {'RAN IT' if canary.exists() else 'did not run it'}; it showed: {said}")
    return int(ran)


if __name__ == "__main__":
    sys.exit(main())
