"""Changes: what the lab sets on a host, each written down before it is made, so that all of it can be put back.

The journal is a file of one JSON line a change, the newest last: how to take it back. It outlives the lab: whoever
finds one after a lab was killed (its guardian, the next lab, ``python -m unveil.lab --restore``) takes back what it
says, the newest first.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import ConflictError, UnveilError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

JOURNAL = Path("/run/unveil-lab.journal")

Undo = dict[str, list[str]]
"""``{"write": [path, text]}``, ``{"run": [word, …]}``, or ``{"hold": [what]}``, which somebody else takes away."""


class ImpossibleError(UnveilError):
    """This kernel or machine does not permit a fault."""


class Changes:
    """Changes that are made, and taken back in the opposite order."""

    def __init__(self, journal: Path = JOURNAL) -> None:
        self._journal = journal
        self._undos: list[Undo] = []

    @contextmanager
    def scope(self) -> Iterator[Changes]:
        """Take back at the end what is changed inside, however it ends.

        Raises:
            UnveilError: something could not be taken back; everything else was.
        """
        mark = len(self._undos)
        try:
            yield self
        finally:
            failed = []
            while len(self._undos) > mark:
                failed += _take_back(self._undos[-1])
                self._undos.pop()
                self._keep()
            if failed:
                raise UnveilError(f"could not be put back: {'; '.join(failed)}")

    def write(self, path: Path, text: str) -> None:
        """Write a kernel file; what it holds is put back, as the kernel takes it (``always [madvise]`` → madvise)."""
        try:
            before = path.read_text()
        except OSError as error:
            raise ImpossibleError(f"{path}: {error.strerror}") from error
        selected = before.partition("[")[2].partition("]")[0] or before.strip()
        self.write_and(path, text, undo={"write": [str(path), selected]})

    def write_and(self, path: Path, text: str, *, undo: Undo) -> None:
        """Write a kernel file that is put back otherwise than by what it holds."""
        self._note(undo)
        try:
            path.write_text(text)
        except OSError as error:
            self._forget()
            raise ImpossibleError(f"{path}: {error.strerror}") from error

    def run(self, *words: str, undo: tuple[str, ...]) -> None:
        """Run a command that another one takes back."""
        self._note({"run": list(undo)})
        try:
            command(*words)
        except ImpossibleError:
            self._forget()
            raise

    def hold(self, what: str) -> None:
        """Have the journal there as long as something is that goes away as a whole."""
        self._note({"hold": [what]})

    def _note(self, undo: Undo) -> None:
        self._undos.append(undo)
        self._keep()

    def _forget(self) -> None:
        self._undos.pop()
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
        ImpossibleError: it is not there or fails, with its own words.
    """
    try:
        ended = subprocess.run(words, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ImpossibleError(f"`{words[0]}` is not installed") from error
    if ended.returncode:
        raise ImpossibleError(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout


def restore(journal: Path = JOURNAL) -> list[str]:
    """Take back what a lab that is gone has left; return what was taken back.

    Raises:
        ConflictError: that lab still runs.
        UnveilError: something could not be taken back, and stays in the journal; everything else was.
    """
    try:
        whose, *undos = (json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return []
    number, started = whose["pid"]
    if _started(int(number)) == started:
        raise ConflictError(f"a lab is still running, as process {number}", hint="end it, and it restores all itself")
    problems = [(undo, problem) for undo in reversed(undos) for problem in _take_back(undo)]
    if problems:
        _write(journal, [whose, *(undo for undo, _ in reversed(problems))])
        raise UnveilError(
            f"could not be put back: {'; '.join(problem for _, problem in problems)}",
            hint=f"mend the cause and restore again; or put it back by hand and remove {journal}",
        )
    journal.unlink()
    return [" ".join(next(iter(undo.values()))) for undo in reversed(undos)]


def _write(journal: Path, lines: Sequence[Undo]) -> None:
    """Write a journal that is whole and on disk at each moment."""
    part = journal.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
    part.rename(journal)


def _take_back(undo: Undo) -> list[str]:
    """Take one change back; return what went wrong. A file that is gone holds nothing that could be wrong."""
    if "hold" in undo:
        return []
    if "run" in undo:
        try:
            command(*undo["run"])
        except ImpossibleError as error:
            return [error.what]
        return []
    path, text = undo["write"]
    try:
        Path(path).write_text(text)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path}: {error.strerror}"]
    return []


def _started(process: int) -> str:
    """Return when a process began, in ticks after the boot: with its number it names one process only."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
