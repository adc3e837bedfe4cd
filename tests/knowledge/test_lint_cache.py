"""What lint found last time is found again when nothing changed, and in no other case."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge import lint_cache
from unveil.knowledge.lint_cache import KEPT, cache_folder, keep, recall, result_key
from unveil.knowledge.linting import lint
from unveil.knowledge.pack import read_pack
from unveil.records.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86400.0
FOUND = (Problem(file="a.yml", line=1, column=2, check="K704", what="no test; \x1b[31m, ü", hint="write one"),)
TEST = "fingerprints/cpu/quota_throttling.test.yml"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder()
    assert folder is not None
    return folder


def checks(kb: Path, **more: object) -> list[str]:
    return [problem.check for problem in lint(kb, **more)]  # type: ignore[arg-type]  # as lint has them


def loads(kb: Path) -> bool:
    """Return whether the loader is imported when this folder is linted in a process of its own."""
    program = (
        "import sys; from unveil.knowledge.linting import lint; lint(sys.argv[1]);"
        "print('unveil.knowledge.loading' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program, kb], capture_output=True, text=True, check=True)
    return ended.stdout.strip() == "True"


def test_the_second_time_nothing_is_judged_and_the_same_is_told(kb: Path) -> None:
    (kb / TEST).unlink()
    first = lint(kb)
    assert [problem.check for problem in first] == ["K704"]
    assert not loads(kb)
    assert lint(kb) == first
    assert lint(kb, cached=False) == first


def test_what_is_only_compared_needs_no_more_than_it_takes_to_compare(kb: Path) -> None:
    heavy = ["yaml", "jsonschema", "numpy", "rich", "dataclasses", "json", "_hashlib", "unveil.records.problem"]
    program = (
        "import sys; from unveil.cli.main import main; main(['kb', 'lint', '--kb', sys.argv[1]]);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert lint(kb) == ()
    ended = subprocess.run([sys.executable, "-c", program, kb], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["no findings", "[]"]


def test_an_edit_a_new_file_and_a_lost_right_are_judged_anew(kb: Path) -> None:
    assert checks(kb) == []
    (kb / TEST).write_text((kb / TEST).read_text().replace("expect: match", "expect: mach"))
    assert "K005" in checks(kb)
    (kb / TEST).write_text((kb / TEST).read_text().replace("expect: mach", "expect: match"))
    assert checks(kb) == []
    (kb / TEST).chmod(0o666)
    assert checks(kb) == ["K009"]


def test_another_day_another_place_and_other_checks_have_another_key(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = read_pack(kb)
    key = result_key(pack, 10 * DAY_S)
    assert result_key(pack, 10.9 * DAY_S) == key
    assert result_key(pack, 11 * DAY_S) != key
    link = tmp_path / "link"
    link.symlink_to(kb)
    assert result_key(read_pack(link), 10 * DAY_S) != key, "messages name the path that was given"
    monkeypatch.setattr(lint_cache, "_code", lambda: "edited")
    assert result_key(pack, 10 * DAY_S) != key


def test_what_is_kept_comes_back_as_it_was(cache: Path) -> None:
    keep(cache, "key", FOUND)
    assert recall(cache, "key") == FOUND
    assert recall(cache, "other") is None
    assert cache.stat().st_mode & 0o077 == 0
    assert (cache / "key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-3], lambda _: b"", lambda content: content.replace(b"K704", b"K705"),
        lambda content: b"\xff" + content, lambda _: b"[]", lambda content: content.partition(b"\n")[2],
    ],
)  # fmt: skip
def test_a_damaged_result_is_unknown(cache: Path, damage: object) -> None:
    keep(cache, "key", FOUND)
    (cache / "key").write_bytes(damage((cache / "key").read_bytes()))  # type: ignore[operator]  # a function
    assert recall(cache, "key") is None


def test_a_result_of_another_form_is_unknown_although_its_digest_is_right(cache: Path) -> None:
    for odd in (
        '[["a"]]',
        "7",
        '[["a", 1, 2, "K704", "x", "y", "grave"]]',
        '[["a", null, 2, "K704", "x", "", "info"]]',
    ):
        keep(cache, "key", FOUND)
        body = odd.encode()
        (cache / "key").write_bytes(lint_cache.sha256(body).hexdigest().encode() + b"\n" + body)
        assert recall(cache, "key") is None, odd


def test_what_others_may_write_a_link_and_a_pipe_are_not_believed(cache: Path, tmp_path: Path) -> None:
    keep(cache, "key", FOUND)
    (cache / "key").chmod(0o666)
    assert recall(cache, "key") is None
    (cache / "key").chmod(0o600)
    (cache / "key").rename(tmp_path / "elsewhere")
    (cache / "key").symlink_to(tmp_path / "elsewhere")
    assert recall(cache, "key") is None
    (cache / "key").unlink()
    os.mkfifo(cache / "key", 0o600)
    assert recall(cache, "key") is None


def test_where_nothing_can_be_kept_lint_works_as_well(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder belongs")
    assert checks(kb) == []
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert cache_folder() is None
    assert checks(kb) == []


def test_only_the_newest_are_kept(cache: Path) -> None:
    for number in range(KEPT + 10):
        keep(cache, f"key{number}", ())
        os.utime(cache / f"key{number}", (number, number))
    left = sorted(cache.iterdir())
    assert len(left) <= KEPT + 1
    assert cache / f"key{KEPT + 9}" in left
    assert cache / "key0" not in left
