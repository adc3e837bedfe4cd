"""One watcher, one directory, nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unveil.engine.state_dir import StateDir, default_state_dir
from unveil.errors import BadInputError, RefusedError


def test_a_second_watcher_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    first, second = StateDir(tmp_path / "state"), StateDir(tmp_path / "state")
    first.claim()
    with pytest.raises(RefusedError, match="another watcher"):
        second.claim()
    first.release()
    second.claim()
    second.release()


def test_the_claim_of_a_killed_watcher_dies_with_it(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from unveil.engine.state_dir import StateDir;"
        "StateDir(Path(sys.argv[1])).claim(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "s")], check=False).returncode == -9
    state = StateDir(tmp_path / "s")
    state.claim()
    state.release()


def test_a_directory_that_was_removed_or_replaced_is_no_longer_held(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    assert not state.held()
    state.claim()
    assert state.held()
    (tmp_path / "s").rename(tmp_path / "moved")
    assert not state.held()
    other = StateDir(tmp_path / "s")
    other.claim()
    assert other.held()
    assert not state.held()
    other.release()
    state.release()
    assert not state.held()


def test_a_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    with pytest.raises(BadInputError, match="someone else"):
        StateDir(loose).claim()


def test_a_file_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot use the state directory"):
        StateDir(tmp_path / "file" / "state").claim()


def test_the_default_follows_the_environment() -> None:
    assert default_state_dir({"UNVEIL_STATE_DIR": "/x"}) == Path("/x")
    expected = Path("/var/lib/unveil") if os.geteuid() == 0 else Path("/s/unveil")
    assert default_state_dir({"XDG_STATE_HOME": "/s"}) == expected
