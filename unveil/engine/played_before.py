"""Which playbooks passed last time, kept in the user's cache folder under everything that it depends on.

Only what passed is kept: a failure is played again, so that its reasons are told. Found again is it only when the plan,
the bytes of its playbook and of our modules, Ansible, Python and the code that plays are the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.knowledge.lint_cache import cache_folder, keep, recall
from unveil.remediation.planner import digest

if TYPE_CHECKING:
    from unveil.records.run import Plan

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("execution", "remediation", "records")


class PlayedBefore:
    """What passed last time.

    Args:
        modules: our Ansible modules, which every playbook depends on.
    """

    def __init__(self, modules: Path) -> None:
        lint = cache_folder()
        self._folder = lint.parent / "playbooks" if lint is not None else None
        files = [*(file for room in _ROOMS for file in sorted((_PACKAGE / room).glob("*.py")))]
        files += [_PACKAGE / "engine/playbook_testing.py", *sorted(modules.glob("*.py"))]
        told = [sys.version, version("ansible-core"), version("ansible-runner")]
        told += [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
        self._common = json.dumps(told)

    def passed(self, plan: Plan) -> bool:
        """Return whether this very plan passed."""
        return recall(self._folder, self._key(plan)) == ()

    def note(self, plan: Plan) -> None:
        """Remember that it passed, if that can be done."""
        keep(self._folder, self._key(plan), ())

    def _key(self, plan: Plan) -> str:
        elsewhere = replace(plan, playbook="")  # a checkout may lie anywhere
        playbook = hashlib.sha256(Path(plan.playbook).read_bytes()).hexdigest()
        before = [change.before for change in plan.changes]
        return hashlib.sha256(json.dumps([self._common, digest(elsewhere), playbook, before]).encode()).hexdigest()
