"""What the lab changes is put back, whether it ends, fails or is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from unveil.errors import ConflictError, UnveilError, UnwritableError
from unveil.lab.changes import Changes, ImpossibleError, alone, restore


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


def test_what_the_lab_cannot_put_back_at_its_end_stays_in_the_journal(setting: Path, tmp_path: Path) -> None:
    journal, lost = tmp_path / "journal", tmp_path / "lost"
    lost.write_text("10\n")

    def change() -> None:
        with Changes(journal).scope() as changes, changes.scope():
            changes.write(lost, "60")
            changes.write(setting, "never")
            lost.unlink()
            lost.mkdir()  # a folder takes no text

    with pytest.raises(UnveilError, match="lost") as told:
        change()
    assert "--restore" in str(told.value.hint)
    assert setting.read_text() == "madvise"
    with pytest.raises(ConflictError, match="still running"):
        restore(journal)
    with pytest.raises(UnveilError, match="lost"):
        restore(journal, ended=os.getpid())
    lost.rmdir()
    lost.write_text("60")
    assert restore(journal, ended=os.getpid()) == [f"{lost} 10"]
    assert lost.read_text() == "10"
    assert not journal.exists()


def test_an_outer_scope_tries_again_what_an_inner_one_could_not_put_back(tmp_path: Path) -> None:
    journal, lost = tmp_path / "journal", tmp_path / "lost"
    lost.write_text("10\n")

    def change(changes: Changes) -> None:
        with changes.scope():
            changes.write(lost, "60")
            lost.unlink()
            lost.mkdir()

    with Changes(journal).scope() as changes:
        with pytest.raises(UnveilError, match="lost"):
            change(changes)
        lost.rmdir()
        lost.write_text("60")
    assert lost.read_text() == "10"
    assert not journal.exists()


def test_a_place_is_taken_away_first_and_what_was_changed_of_it_is_gone_with_it(setting: Path, tmp_path: Path) -> None:
    journal, place = tmp_path / "journal", tmp_path / "place"
    place.mkdir()

    def take_away() -> list[str]:
        assert setting.read_text() == "never"
        place.rmdir()
        return []

    def change() -> None:
        with Changes(journal).scope() as changes:
            changes.hold("a place", take_away)
            changes.write(setting, "never")
            changes.run("true", undo=("false",), of=place)

    change()
    assert setting.read_text() == "madvise"
    assert not journal.exists()


def test_a_place_that_is_still_there_stays_in_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def change() -> None:
        with Changes(journal).scope() as changes:
            changes.hold("a place", lambda: ["a cgroup cannot be emptied"])

    with pytest.raises(UnveilError, match="cannot be emptied"):
        change()
    with pytest.raises(UnveilError, match="somebody is in it"):
        restore(journal, take_away=lambda: ["somebody is in it"], ended=os.getpid())
    assert restore(journal, ended=os.getpid()) == ["a place"]


def test_what_somebody_else_has_set_meanwhile_is_theirs(
    setting: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Changes(tmp_path / "journal").scope() as changes:
        changes.write(setting, "never")
        setting.write_text("always")
    assert setting.read_text() == "always"
    assert f"{setting} is left as it is" in capsys.readouterr().err
    assert not (tmp_path / "journal").exists()


def test_nothing_is_changed_that_cannot_be_written_down(setting: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(UnwritableError, match="journal"),
        Changes(tmp_path / "absent" / "journal").scope() as changes,
    ):
        changes.write(setting, "never")
    assert setting.read_text() == "always [madvise] never\n"


def test_a_journal_that_cannot_be_written_any_more_keeps_nothing_from_being_put_back(
    setting: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("10\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    with Changes(folder / "journal").scope() as changes:
        changes.write(setting, "never")
        changes.write(other, "60")
        (folder / "journal").unlink()
        folder.rmdir()
    assert (setting.read_text(), other.read_text()) == ("madvise", "10")


def test_a_command_that_cannot_even_be_started_keeps_no_other_from_being_put_back(
    setting: Path, tmp_path: Path
) -> None:
    def change() -> None:
        with Changes(tmp_path / "journal").scope() as changes:
            changes.write(setting, "never")
            changes.run("true", undo=(str(tmp_path),))  # a folder cannot be run

    with pytest.raises(UnveilError, match="cannot be started"):
        change()
    assert setting.read_text() == "madvise"


def test_half_of_a_command_that_failed_is_taken_back(tmp_path: Path) -> None:
    half = tmp_path / "half"
    changes = Changes(tmp_path / "journal")
    with changes.scope(), pytest.raises(ImpossibleError):
        changes.run("sh", "-c", f"touch {half}; exit 1", undo=("rm", str(half)))
    assert not half.exists()


def test_one_lab_at_a_time(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with alone(journal):
        with pytest.raises(ConflictError, match="is starting"), alone(journal):
            raise AssertionError("there are two")
        with Changes(journal).scope() as changes:
            changes.hold("a place", list)
            with pytest.raises(ConflictError, match=f"as process {os.getpid()}"), alone(journal):
                raise AssertionError("there are two")
    with alone(journal) as lock:
        guardian = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    try:
        with pytest.raises(ConflictError, match="is being put back"), alone(journal):
            raise AssertionError("the guardian is not done yet")
    finally:
        guardian.kill()
        guardian.wait()
    with alone(journal):
        pass


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
    with subprocess.Popen([sys.executable, "-c", KILLED, str(journal), str(setting)]) as killed:
        stat = Path(f"/proc/{killed.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":  # gone, though nobody has asked for its end
            time.sleep(0.01)
        assert setting.read_text() == "never"
        assert restore(journal) == [f"{setting} madvise"]
        assert setting.read_text() == "madvise"
        assert restore(journal) == []
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize("text", ["", "nonsense", '{"pid": ["x", "1"]}', "[]"])
def test_what_is_no_journal_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "journal").write_text(text)
    with pytest.raises(UnveilError, match="cannot be read"):
        restore(tmp_path / "journal")


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
        assert undo == {"write": [str(setting), "madvise"], "seen": [str(setting), "never"]}
