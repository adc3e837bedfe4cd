from __future__ import annotations

import errno
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.kept_file import KeptFile
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.root import HostRoot
from unveil.host.source import Feed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text


def parse(text: Text) -> Iterator[Reading]:
    return parse_keyed(text, {b"a": Part("memory.a")})


def test_a_file_is_read_anew_each_time_through_one_descriptor(procfs) -> None:
    procfs.write("f", "a 1\n")
    file = KeptFile(procfs.root, Feed(path="f", parser=parse))
    assert file.read() == b"a 1\n"
    procfs.write("f", "a 22\n")
    assert file.read() == b"a 22\n"
    file.close()
    assert file.read() is None


def test_a_file_that_is_not_kept_open_comes_whole_as_well(procfs) -> None:
    procfs.write("f", "a 1\n")
    file = KeptFile(procfs.root, Feed(path="f", parser=parse, whole=True, kept=False))
    for text in ("a 1\n", "a 1\n" * 1024, "a 22\n" * 1024, "a 1\n"):
        procfs.write("f", text)
        assert file.read() == text.encode()


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_that_outgrows_the_buffer_is_read_to_its_end(procfs, whole: bool) -> None:
    procfs.write("f", "a 1\n")
    file = KeptFile(procfs.root, Feed(path="f", parser=parse, whole=whole))
    for size in (10, 100_000, 5, 1_000_000):
        text = b"x" * size
        procfs.write("f", text)
        assert file.read() == text
        assert file.read() == text


def test_the_kernels_tables_come_whole() -> None:
    for path in ("proc/vmstat", "proc/interrupts"):
        file = KeptFile(HostRoot("/"), Feed(path=path, parser=parse, whole=False))
        text = file.read()
        assert text is not None
        assert text.count(b"\n") == Path("/", path).read_bytes().count(b"\n")
        file.close()


def test_a_missing_file_has_a_reason_and_is_tried_again(procfs) -> None:
    file = KeptFile(procfs.root, Feed(path="gone", parser=parse))
    assert (file.read(), file.error, file.retried) == (None, errno.ENOENT, True)
    assert "gone" in file.reason
    procfs.write("gone", "a 1\n")
    file.open()
    assert file.read() == b"a 1\n"
    assert file.reason == ""


def test_what_the_driver_does_not_support_is_left_alone(procfs) -> None:
    (procfs.folder / "folder").mkdir()
    file = KeptFile(procfs.root, Feed(path="folder", parser=parse))
    assert file.read() is None
    assert file.error == errno.EISDIR
    assert not file.retried


def test_an_error_while_reading_closes_the_file(procfs, monkeypatch: pytest.MonkeyPatch) -> None:
    procfs.write("f", "a 1\n")
    file = KeptFile(procfs.root, Feed(path="f", parser=parse))
    for number, retried in ((errno.ENODEV, True), (errno.EIO, True), (errno.EINVAL, False), (errno.EOPNOTSUPP, False)):

        def fail(*_: int, number: int = number) -> bytes:
            raise OSError(number, os.strerror(number))

        file.open()
        with monkeypatch.context() as patch:
            patch.setattr("unveil.host.kept_file._pread", fail)
            assert file.read() is None
        assert (file.error, file.is_open, file.retried) == (number, False, retried)
        assert "f" in file.reason


def test_a_link_out_of_the_root_is_not_followed(procfs) -> None:
    (procfs.folder / "link").symlink_to("/proc/uptime")
    file = KeptFile(procfs.root, Feed(path="link", parser=parse))
    assert file.read() is None
    assert "out of the host root" in file.reason


def test_a_text_is_learned_and_an_unknown_one_has_a_problem(procfs) -> None:
    procfs.write("f", "b 1\n")
    file = KeptFile(procfs.root, Feed(path="f", parser=parse))
    assert file.learn(b"a 1\n").readings
    assert not file.learn(b"b 1\n").readings
    assert file.shape.problem


def test_a_file_that_is_not_kept_is_opened_for_each_reading(procfs) -> None:
    procfs.write("f", "a 1\n")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # one number
    file = KeptFile(procfs.root, Feed(path="f", parser=parse, kept=False))
    assert (file.read(), file.is_open) == (b"a 1\n", True)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  # one number
    procfs.remove("f")
    procfs.write("f", "a 2\n")
    assert file.read() == b"a 2\n", "another file by now"
    procfs.remove("f")
    assert (file.read(), file.is_open, file.retried, file.error) == (None, False, True, errno.ENOENT)
    procfs.write("f", "a 3\n")
    assert file.read() is None, "not before it was opened again"
    file.open()
    assert file.read() == b"a 3\n"


def test_files_take_turns_and_one_that_is_gone_does_not_end_it(procfs) -> None:
    for number in range(3):
        procfs.write(f"f{number}", f"a {number}\n")
    file = KeptFile(procfs.root, Feed(path="f0", parser=parse, kept=False, turns=("f0", "f1", "f2")))
    assert [file.read() for _ in range(4)] == [b"a 0\n", b"a 1\n", b"a 2\n", b"a 0\n"]
    procfs.remove("f2")
    assert [file.read() for _ in range(3)] == [b"a 1\n", None, b"a 0\n"]


def test_the_file_of_a_process_that_ended_is_not_opened_again_as_another_may_have_its_number() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        feed = Feed(path=f"proc/{process.pid}/schedstat", parser=parse, once=True)
        file, other = KeptFile(HostRoot(), feed), KeptFile(HostRoot(), replace(feed, once=False))
        assert file.read()
        process.kill()
    assert (file.read(), other.read()) == (None, None)
    assert (file.error, other.error) == (errno.ESRCH, errno.ESRCH)
    assert (file.retried, other.retried) == (False, True)
