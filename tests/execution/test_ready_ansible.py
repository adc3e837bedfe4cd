from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.execution.ansible_at_hand import READY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ansible
@pytest.mark.slow
def test_it_is_ansible_playbook_with_the_arguments_that_it_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "told")
    teller = os.open(tmp_path / "told", os.O_RDWR)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(
        [sys.executable, "-I", str(READY), str(tmp_path / "told")], env=environment, stdout=subprocess.PIPE, text=True
    )
    os.write(teller, json.dumps(["--version"]).encode() + b"\n")
    said, _ = process.communicate(timeout=60)
    os.close(teller)
    assert process.returncode == 0
    assert said.startswith("ansible-playbook [core ")
