"""Work over several processes: in order, and silent when Ctrl-C or a kill ends it, however early that comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnveilError
from unveil.knowledge.side_by_side import side_by_side

if TYPE_CHECKING:
    from pathlib import Path

IMPORTS_SLOWLY = """
import os, sys, time
print("begun", file=sys.stderr, flush=True)
while __name__ != "__main__" and not os.path.exists(__file__ + ".asked"):
    time.sleep(0.02)
from unveil.knowledge.side_by_side import side_by_side
if __name__ == "__main__":
    try:
        with side_by_side(abs, [-1, -2], processes=2) as futures:
            [future.result() for future in futures]
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_results_come_in_the_order_of_the_items() -> None:
    with side_by_side(abs, [-1, 2, -3], processes=2) as futures:
        assert [future.result() for future in futures] == [1, 2, 3]


def test_a_killed_process_is_an_error_with_its_cure() -> None:
    with pytest.raises(UnveilError, match="was killed") as raised, side_by_side(os._exit, [9], processes=1) as futures:
        futures[0].result()
    assert "--jobs 1" in str(raised.value.hint)


def test_ctrl_c_while_the_processes_still_import_ends_them_without_a_traceback(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IMPORTS_SLOWLY)
    said = tmp_path / "said"
    with (
        said.open("w") as errors,
        subprocess.Popen([sys.executable, str(program)], stderr=errors, start_new_session=True) as process,
    ):
        end = time.monotonic() + 60
        while said.read_text().count("begun") < 2:  # ours, and that of the first of the processes
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        program.with_name(f"{program.name}.asked").touch()
        assert process.wait(timeout=60) == 130
    assert set(said.read_text().split()) == {"begun"}
