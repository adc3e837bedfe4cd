"""ansible-lint over the playbooks, as a process of its own, where it is installed. It is no dependency of ours.

Our own checks (K6…) say whether a playbook is safe to be run by the engine; ansible-lint says whether it is good
Ansible. What it finds is told as K699 with its own rule's name, always as a warning: it never keeps a knowledge base
from being used. Its format is that of Code Climate, as ``ansible-lint --format json`` prints it (ansible-lint 26).

It sees copies of the playbooks, and nothing that lies beside them: rules, plugins and configurations that it would find
there (``.ansible-lint``, ``ansible.cfg``) are programs of whoever wrote the knowledge base, which lint is to judge.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.knowledge.content import PLAYBOOKS
from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHECK = "K699"
TIMEOUT_S = 300
_NOT_OURS = ("--skip-list", "only-builtins,yaml[line-length]")


def find() -> str | None:
    """Return the program: beside this Python, or on the path."""
    beside = Path(sys.executable).parent / "ansible-lint"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("ansible-lint")


def judge_playbooks(program: str, root: Path, files: Sequence[str]) -> tuple[tuple[Problem, ...], str]:
    """Return what ansible-lint finds, and why it could not say anything, empty when it could.

    Args:
        program: ansible-lint.
        root: the knowledge base, as messages name it.
        files: playbooks below it, with ``/``.
    """
    if not files:
        return (), ""
    try:
        with tempfile.TemporaryDirectory(prefix="unveil-ansible-lint-") as scratch:
            ended = _ask(program, root, files, Path(scratch))
        told = json.loads(ended.stdout or b"null")
    except subprocess.TimeoutExpired:
        return (), f"ansible-lint did not end within {TIMEOUT_S} s"
    except OSError as error:
        return (), f"ansible-lint cannot be run: {error.strerror}"
    except ValueError:
        return (), "ansible-lint said what cannot be understood"
    if not isinstance(told, list):
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        return (), f"ansible-lint failed{f': {said[-1]}' if said else ''}"
    return tuple(_problems(told, root)), ""


def _ask(program: str, root: Path, files: Sequence[str], scratch: Path) -> subprocess.CompletedProcess[bytes]:
    """Run it over copies of playbooks, with configurations that say nothing."""
    for file in files:
        copy = scratch / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((root / file).read_bytes())
    nothing = scratch / "nothing.yml"
    nothing.write_text("{}\n", encoding="utf-8")
    (scratch / "ansible.cfg").touch()
    scrubbed = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "GITHUB_"))}
    environment = {
        **scrubbed, "ANSIBLE_LIBRARY": str((root / PLAYBOOKS / "modules").absolute()), "NO_COLOR": "1",
        "ANSIBLE_LINT_NODEPS": "1", "ANSIBLE_CONFIG": str(scratch / "ansible.cfg"),
    }  # fmt: skip
    words = [
        program, "--offline", "--nocolor", "--format", "json", "--profile", "production", "-c", str(nothing),
        *_NOT_OURS, *files,
    ]  # fmt: skip
    return subprocess.run(
        words, cwd=scratch, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _problems(told: Sequence[Any], root: Path) -> Iterator[Problem]:
    prefix = "" if str(root) == "." else f"{str(root).rstrip('/')}/"
    for each in told:
        try:
            place = each["location"]
            begin = place.get("positions", {}).get("begin", {}) or place.get("lines", {}).get("begin", 1)
            line, column = (begin["line"], begin.get("column") or 1) if isinstance(begin, dict) else (begin, 1)
            yield Problem(
                file=f"{prefix}{place['path']}", line=int(line), column=int(column), check=CHECK,
                what=f"{each['check_name']}: {each['description']}", hint=str(each.get("url", "")),
                gravity=Gravity.WARNING,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            continue  # of another version's form; the others count
