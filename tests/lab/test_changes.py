"""What the lab changes is put back, whether it ends, fails or is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from unveil.errors import ConflictError, UnveilError
from unveil.lab.changes import Changes, ImpossibleError, restore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    path = tmp_path / "setting"
    path.write_text("always [madvise] never\n")
    return path


def test_what_was_written_is_put_back_as_the_kernel_takes_it(setting: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("10\n")
    journal = tmp_path / "journal"
    with suppress(KeyboardInterrupt), Changes(journal).scope() as changes:
        changes.write(setting, "never")
        changes.write(plain, "0")
        assert (setting.read_text(), plain.read_text()) == ("never", "0")
        assert journal.exists()
        raise KeyboardInterrupt
    assert (setting.read_text(), plain.read_text()) == ("madvise", "10")
    assert not journal.exists()


def test_an_inner_scope_takes_back_its_own_changes_only_and_the_newest_first(setting: Path, tmp_path: Path) -> None:
    order = tmp_path / "order"
    changes = Changes(tmp_path / "journal")

    def told(word: str) -> tuple[str, ...]:
        return ("sh", "-c", f"printf {word} >> {order}")

    with changes.scope():
        changes.run("true", undo=told("outer"))
        with changes.scope():
            changes.write(setting, "never")
            changes.run("true", undo=told("second"))
            changes.run("true", undo=told("third"))
        assert order.read_text() == "thirdsecond"
        assert setting.read_text() == "madvise"
    assert order.read_text() == "thirdsecondouter"


def test_what_could_not_be_changed_is_impossible_with_its_reason_and_not_put_back(tmp_path: Path) -> None:
    changes = Changes(tmp_path / "journal")
    with changes.scope():
        with pytest.raises(ImpossibleError, match="absent: No such file"):
            changes.write(tmp_path / "absent", "1")
        with pytest.raises(ImpossibleError, match="`unveil-no-such-tool` is not installed"):
            changes.run("unveil-no-such-tool", undo=("false",))
        with pytest.raises(ImpossibleError, match="ls"):
            changes.run("ls", str(tmp_path / "absent"), undo=("false",))
        assert not (tmp_path / "journal").exists()


def test_one_thing_that_cannot_be_put_back_keeps_no_other_from_it(setting: Path, tmp_path: Path) -> None:
    def change() -> None:
        with Changes(tmp_path / "journal").scope() as changes:
            changes.write(setting, "never")
            changes.run("true", undo=("false",))

    with pytest.raises(UnveilError, match="could not be put back: false"):
        change()
    assert setting.read_text() == "madvise"


KILLED = """
import os, signal, sys
from pathlib import Path
from unveil.lab.changes import Changes
with Changes(Path(sys.argv[1])).scope() as changes:
    changes.write(Path(sys.argv[2]), "never")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_the_journal_says_how_to_put_everything_back(setting: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(journal), str(setting)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert setting.read_text() == "never"
    assert restore(journal) == [f"{setting} madvise"]
    assert setting.read_text() == "madvise"
    assert restore(journal) == []


def test_what_cannot_be_put_back_stays_in_the_journal_until_it_can(setting: Path, tmp_path: Path) -> None:
    journal, lost = tmp_path / "journal", tmp_path / "lost"
    lost.mkdir()  # a folder takes no text
    undos = [{"write": [str(lost), "60"]}, {"write": [str(setting), "madvise"]}]
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in [{"pid": ["1", "never"]}, *undos]))
    setting.write_text("never")
    with pytest.raises(UnveilError, match="lost"):
        restore(journal)
    assert setting.read_text() == "madvise"
    assert [json.loads(line) for line in journal.read_text().splitlines()][1:] == undos[:1]
    lost.rmdir()
    lost.write_text("10")
    assert restore(journal) == [f"{lost} 60"]
    assert lost.read_text() == "60"
    assert not journal.exists()


def test_nothing_is_put_back_under_a_lab_that_runs(setting: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with Changes(journal).scope() as changes:
        changes.write(setting, "never")
        with pytest.raises(ConflictError, match=str(os.getpid())):
            restore(journal)
        assert setting.read_text() == "never"
        whose, undo = (json.loads(line) for line in journal.read_text().splitlines())
        assert whose["pid"][0] == str(os.getpid())
        assert undo == {"write": [str(setting), "madvise"]}
