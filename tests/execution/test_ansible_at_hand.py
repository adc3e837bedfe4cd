from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unveil.execution import ansible_at_hand

READY = ansible_at_hand.READY


def test_what_asks_for_other_hosts_takes_every_kind_of_inventory_and_our_own_only_ours(tmp_path: Path) -> None:
    here = ansible_at_hand._environment(tmp_path, remote=False, strict=False)
    there = ansible_at_hand._environment(tmp_path, remote=True, strict=True)
    assert here["ANSIBLE_INVENTORY_ENABLED"] == "yaml"
    assert "ANSIBLE_INVENTORY_ENABLED" not in there
    assert (here["ANSIBLE_FORKS"], there["ANSIBLE_FORKS"]) == ("1", "10")
    assert all(str(tmp_path) in here[name] for name in ("HOME", "TMPDIR", "ANSIBLE_HOME", "ANSIBLE_LIBRARY"))


@pytest.mark.ansible
@pytest.mark.slow
@pytest.mark.parametrize("teller_came", [True, False])
def test_an_ansible_that_nobody_will_ever_tell_anything_ends_by_itself(tmp_path: Path, teller_came: bool) -> None:
    os.mkfifo(tmp_path / "told")
    teller = os.open(tmp_path / "told", os.O_RDWR) if teller_came else None
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    with subprocess.Popen([sys.executable, "-I", str(READY), str(tmp_path / "told")], env=environment) as process:
        if teller is not None:
            os.close(teller)
        assert process.wait(60) == 0, "it was told nothing, and did nothing"


def test_only_a_program_of_its_own_imports_ansible_itself() -> None:
    package = Path(ansible_at_hand.__file__).parents[1]
    importing = [path.name for path in package.rglob("*.py") if "from ansible." in path.read_text(encoding="utf-8")]
    assert importing == ["ready_ansible.py"]
