"""Changes: what the lab sets on a host, each written down before it is made, so that all of it can be put back.

The journal is a file of one JSON line a change, the newest last: how to take it back. It outlives the lab: whoever
finds one after a lab was killed (its guardian, the next lab, ``python -m unveil.lab --restore``) takes back what it
says, the newest first. What could not be taken back stays in it, whoever tried.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import ConflictError, UnreadableError, UnveilError, UnwritableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

JOURNAL = Path("/run/unveil-lab.journal")
_PATIENCE_S = 60  # with a command that hangs

Undo = dict[str, list[str]]
"""How to take a change back: ``{"write": [path, text]}``, ``{"run": [word, …]}``, or ``{"hold": [what]}``, a place that
is taken away as a whole, and before anything else, as what was changed of it needs no taking back then.

Beside it ``"of": [path]``, without which there is nothing to take back; and ``"seen": [path, text]``, what the lab left
there: once it reads otherwise, somebody else has set it, and it is theirs.
"""


class ImpossibleError(UnveilError):
    """This kernel or machine does not permit a fault."""


class Changes:
    """Changes that are made, and taken back in the opposite order."""

    def __init__(self, journal: Path = JOURNAL) -> None:
        self._journal = journal
        self._undos: list[Undo] = []
        self._take_away: Callable[[], Sequence[str]] = tuple

    @contextmanager
    def scope(self) -> Iterator[Changes]:
        """Take back at the end what is changed inside, however it ends.

        Raises:
            UnveilError: something could not be taken back; everything else was. An outer scope tries again; what the
                outermost one cannot take back either stays in the journal.
        """
        mark = len(self._undos)
        try:
            yield self
        finally:
            failed = _take_back_all(self._undos[mark:], self._take_away, self._done)
            if failed:
                raise _failed(failed)

    def write(self, path: Path, text: str) -> None:
        """Write a kernel file; what it holds is put back, as the kernel takes it (``always [madvise]`` → madvise)."""
        try:
            before = path.read_text()
        except OSError as error:
            raise ImpossibleError(f"{path}: {error.strerror}") from error
        selected = before.partition("[")[2].partition("]")[0] or before.strip()
        self.write_and(path, text, undo={"write": [str(path), selected]}, shared=True)

    def write_and(self, path: Path, text: str, *, undo: Undo, shared: bool = False) -> None:
        """Write a kernel file that is put back otherwise than by what it holds.

        Args:
            shared: others may write it, too; once one has, it is left to them.
        """
        self._note(undo)
        try:
            path.write_text(text)
        except OSError as error:
            self._done(undo)
            raise ImpossibleError(f"{path}: {error.strerror}") from error
        if shared:
            with suppress(OSError):  # then it is put back whoever wrote it
                undo["seen"] = [str(path), path.read_text()]
                self._keep()

    def run(self, *words: str, undo: tuple[str, ...], of: Path | None = None) -> None:
        """Run a command that another one takes back.

        Args:
            of: what it changes; when that is gone, there is nothing to take back.
        """
        noted: Undo = {"run": list(undo)}
        if of is not None:
            noted["of"] = [str(of)]
        self._note(noted)
        try:
            command(*words)
        except ImpossibleError:
            with suppress(ImpossibleError):  # it may have done half of it
                command(*undo)
            self._done(noted)
            raise

    def hold(self, what: str, take_away: Callable[[], Sequence[str]]) -> None:
        """Have the journal there as long as something is that is taken away as a whole.

        Args:
            take_away: does it, and returns what of it is still there.
        """
        self._note({"hold": [what]})
        self._take_away = take_away

    def _note(self, undo: Undo) -> None:
        self._undos.append(undo)
        try:
            self._keep()
        except OSError as error:
            self._undos.pop()
            raise UnwritableError(f"{self._journal}: {error.strerror}", hint="the change was not made") from error

    def _done(self, undo: Undo) -> None:
        self._undos = [each for each in self._undos if each is not undo]
        with suppress(OSError):  # one that says too much is no reason to leave the rest as it is
            self._keep()

    def _keep(self) -> None:
        """Write the journal anew: it has a handful of lines, and is whole at each moment."""
        if not self._undos:
            self._journal.unlink(missing_ok=True)
            return
        _write(self._journal, [{"pid": [str(os.getpid()), _started(os.getpid())]}, *self._undos])


def command(*words: str) -> str:
    """Run a command and return what it says.

    Raises:
        ImpossibleError: it is not there, fails, with its own words, or hangs.
    """
    try:
        ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=_PATIENCE_S)
    except FileNotFoundError as error:
        raise ImpossibleError(f"`{words[0]}` is not installed") from error
    except OSError as error:
        raise ImpossibleError(f"`{words[0]}` cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise ImpossibleError(f"{' '.join(words)}: did not end within {_PATIENCE_S} s") from error
    if ended.returncode:
        raise ImpossibleError(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout


@contextmanager
def alone(journal: Path = JOURNAL) -> Iterator[int]:
    """Be the only one who changes this host, or puts it back; give the lock's descriptor, for who shall hold it, too.

    The kernel gives the lock free when the last one that holds it has ended, however it did.

    Raises:
        ConflictError: a lab runs, or is being put back.
        UnreadableError: this user may not.
    """
    try:
        lock = os.open(journal.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnreadableError(f"{error.filename}: {error.strerror}", hint="the lab needs root") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _conflict(*_read(journal)[0]) from error
    else:
        yield lock
    finally:
        os.close(lock)


def restore(
    journal: Path = JOURNAL, *, take_away: Callable[[], Sequence[str]] = tuple, ended: int | None = None
) -> list[str]:
    """Take back what a lab that is gone has left; return what was taken back.

    Args:
        take_away: takes away what the lab held as a whole, and returns what of it is still there.
        ended: number of a process whose lab has ended, though the process may still be there.

    Raises:
        ConflictError: that lab still runs.
        UnveilError: something could not be taken back, and stays in the journal; everything else was.
    """
    (number, started), undos = _read(journal)
    if number and int(number) != ended and _started(int(number)) == started:
        raise _conflict(number, started)
    done: list[Undo] = []
    failed = _take_back_all(undos, take_away, done.append)
    if failed:
        taken = {id(undo) for undo in done}
        _write(journal, [{"pid": [number, started]}, *(undo for undo in undos if id(undo) not in taken)])
        raise _failed(failed, hint=f"mend the cause and restore again; or put it back by hand and remove {journal}")
    journal.unlink(missing_ok=True)
    return [" ".join(undo.get("write") or undo.get("run") or undo["hold"]) for undo in done]


def _conflict(number: str, started: str) -> ConflictError:
    if number and _started(int(number)) == started:
        return ConflictError(f"a lab is still running, as process {number}", hint="end it, and it restores all itself")
    return ConflictError("a lab is starting on this host, or is being put back", hint="wait until that is done")


def _failed(what: Sequence[str], hint: str = "python -m unveil.lab --restore tries again") -> UnveilError:
    return UnveilError(f"could not be put back: {'; '.join(what)}", hint=hint)


def _read(journal: Path) -> tuple[tuple[str, str], list[Undo]]:
    """Return whose a journal is, by process number and start, and what it says; nothing where there is none.

    Raises:
        UnveilError: it is no journal.
    """
    try:
        whose, *undos = (json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines())
        number, started = whose["pid"]
        int(number)
    except FileNotFoundError:
        return ("", ""), []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnveilError(f"{journal} cannot be read: {error}", hint="put back by hand what it says") from error
    return (number, started), undos


def _write(journal: Path, lines: Sequence[Undo]) -> None:
    """Write a journal that is whole and on disk at each moment."""
    part = journal.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
    part.rename(journal)


def _take_back_all(
    undos: Sequence[Undo], take_away: Callable[[], Sequence[str]], done: Callable[[Undo], None]
) -> list[str]:
    """Take changes back, what is held as a whole first, then the newest first; return what went wrong.

    Args:
        done: told of each that needs no taking back any more.
    """
    failed: list[str] = []
    held = [undo for undo in undos if "hold" in undo]
    for undo in (*held, *(undo for undo in reversed(undos) if "hold" not in undo)):
        wrong = take_away() if "hold" in undo else _take_back(undo)
        failed += wrong
        if not wrong:
            done(undo)
    return failed


def _take_back(undo: Undo) -> list[str]:
    """Take one change back; return what went wrong. A file that is gone holds nothing that could be wrong."""
    if "of" in undo and not os.path.lexists(undo["of"][0]):
        return []
    if "run" in undo:
        try:
            command(*undo["run"])
        except ImpossibleError as error:
            return [error.what]
        return []
    path, text = undo["write"]
    try:
        if "seen" in undo and _now(undo["seen"][0]) not in (None, undo["seen"][1]):
            sys.stderr.write(f"{undo['seen'][0]} is left as it is: somebody else has set it meanwhile\n")
            return []
        Path(path).write_text(text)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path}: {error.strerror}"]
    return []


def _now(path: str) -> str | None:
    """Return what a file holds, None where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return None


def _started(process: int) -> str:
    """Return when a process began, in ticks after the boot: with its number it names one process only.

    Nothing of one that is gone, or that has ended and only waits for its parent to notice.
    """
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]
