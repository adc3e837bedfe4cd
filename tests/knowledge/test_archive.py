"""A pack: the same bytes from the same files, and nothing read that no knowledge base holds."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError, UnreadableError
from unveil.knowledge import archive as module
from unveil.knowledge.archive import MANIFEST, archive_of, gather, is_older, read_archive, write_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = {"playbooks/b.yml": b"two", "fingerprints/a.yml": b"one"}
PACK = write_archive(archive_of(FILES, name="site", version="7", unveil="1"))


def packed(change: Callable[[tarfile.TarFile], None], *, keep: bool = True) -> bytes:
    """Return a pack with members added behind (or instead of) the right ones."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        if keep:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(PACK))) as right:
                for member in right:
                    tar.addfile(member, right.extractfile(member))
        change(tar)
    return gzip.compress(plain.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"x", link: str = "") -> Callable[..., None]:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, link, len(content) if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(content))

    return add


def test_the_same_files_make_the_same_bytes_and_come_back() -> None:
    other = write_archive(archive_of(dict(reversed(FILES.items())), name="site", version="7", unveil="1"))
    assert other == PACK
    read = read_archive(PACK)
    assert (read.name, read.version, read.files) == ("site", "7", dict(sorted(FILES.items())))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(PACK))) as tar:
        first, *others = tar.getmembers()
        assert first.name == MANIFEST
        assert {(each.mtime, each.uid, each.gid, each.uname, each.mode) for each in others} == {(0, 0, 0, "", 0o644)}


def test_a_version_that_nobody_gives_follows_the_content() -> None:
    one, other = (archive_of({"fingerprints/a": text}, name="n", unveil="1") for text in (b"1", b"2"))
    assert one.version == one.digest[:12] != other.version


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (member("fingerprints/link", tarfile.SYMTYPE, link="/etc/passwd"), "is no plain file"),
        (member("fingerprints/hard", tarfile.LNKTYPE, link="fingerprints/a.yml"), "is no plain file"),
        (member("fingerprints/device", tarfile.CHRTYPE), "is no plain file"),
        (member("fingerprints/pipe", tarfile.FIFOTYPE), "is no plain file"),
        (member("fingerprints", tarfile.DIRTYPE), "is no plain file"),
        (member("/etc/cron.d/x"), "lies outside"),
        (member("fingerprints/../../x"), "lies outside"),
        (member("../x"), "lies outside"),
        (member("fingerprints//x"), "lies outside"),
        (member("fingerprints/./x"), "lies outside"),
        (member("fingerprints/.git"), "lies outside"),
        (member("elsewhere/x"), "lies outside"),
        (member("fingerprints/a\x1b[31m"), "lies outside"),
        (member("fingerprints/a\u202ex"), "lies outside"),
        (member("fingerprints/a.yml"), "is twice in the pack"),
        (member("fingerprints/new.yml"), "does not confirm fingerprints/new.yml"),
        (member("fingerprints/big.yml", content=bytes(1_000_001)), "has 1,000,001 bytes"),
    ],
)
def test_what_no_knowledge_base_holds_is_refused(change: Callable[[tarfile.TarFile], None], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        read_archive(packed(change))


def test_a_file_that_was_exchanged_or_taken_out_is_noticed() -> None:
    text = json.dumps(
        {"form": 1, "name": "n", "version": "1", "digest": "0", "unveil": "1", "files": {"fingerprints/a": "0"}}
    )
    lone = packed(member(MANIFEST, content=text.encode()), keep=False)
    with pytest.raises(BadInputError, match="does not confirm fingerprints/a"):
        read_archive(lone)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"[" * 100_000, b'{"form": 2}', b'{"form": 1, "files": {}}'])
def test_a_manifest_that_is_none_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(BadInputError, match=r"kb\.json"):
        read_archive(packed(member(MANIFEST, content=text), keep=False))


def test_a_bomb_is_not_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 100_000)
    with pytest.raises(BadInputError, match="unfolds to more than 100,000 bytes"):
        read_archive(gzip.compress(bytes(10_000_000)))
    monkeypatch.setattr(module, "MAX_ARCHIVE_BYTES", 10)
    with pytest.raises(BadInputError, match="the pack has"):
        read_archive(PACK)


def test_a_part_of_a_pack_and_more_than_a_pack_are_none() -> None:
    with pytest.raises(BadInputError, match="cut off"):
        read_archive(PACK[:-20])
    with pytest.raises(BadInputError, match="something follows"):
        read_archive(PACK + PACK)
    with pytest.raises(BadInputError, match="this is no pack"):
        read_archive(b"PK\x03\x04")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_239), st.binary(min_size=1, max_size=40))
def test_whatever_is_damaged_is_bad_input_and_never_a_crash(at: int, noise: bytes) -> None:
    plain = bytearray(gzip.decompress(PACK))
    plain[at : at + len(noise)] = noise
    try:
        read = read_archive(gzip.compress(bytes(plain), compresslevel=1))
    except BadInputError:
        return
    assert read.files == FILES  # the noise was in what nobody reads, e.g. behind the end


@pytest.mark.parametrize("name", ["", "../x", "A", "a b", "x" * 65, "-x"])
def test_a_name_is_part_of_a_path_and_so_is_kept_plain(name: str) -> None:
    with pytest.raises(BadInputError, match="is no name of a pack"):
        archive_of(FILES, name=name, version="1", unveil="1")


def test_a_link_out_of_the_knowledge_base_is_not_packed(kb: Path, tmp_path: Path) -> None:
    assert set(gather(kb)) >= {"fingerprints/cpu/quota_throttling.yml"}
    (kb / "fingerprints/cpu/out.yml").symlink_to("/etc/hostname")
    with pytest.raises(UnreadableError, match=r"out\.yml.*a symbolic link that leaves"):
        gather(kb)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_extended_headers_cost_nothing(kind: bytes) -> None:
    digits = b"1" * 400_000  # which tarfile's own pattern takes minutes over
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, len(digits)
    plain = header.tobuf(tarfile.USTAR_FORMAT) + digits + bytes(-len(digits) % 512)
    began = time.process_time()
    with pytest.raises(BadInputError, match="no plain file"):
        read_archive(gzip.compress(plain + gzip.decompress(PACK)))
    assert time.process_time() - began < 30, "not the minutes"


def test_headers_that_announce_headers_without_end_are_refused() -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    with pytest.raises(BadInputError, match="no plain file"):
        read_archive(gzip.compress((header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")) * 5000))


def test_long_names_come_back() -> None:
    files = {f"fingerprints/{'a' * 90}/{'b' * 90}.yml": b"one"}
    assert read_archive(write_archive(archive_of(files, name="n", unveil="1"))).files == files


def test_no_file_from_elsewhere_is_packed_as_a_schema(kb: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    schemas = kb / "schemas"
    schemas.mkdir(exist_ok=True)
    link = schemas / "own.schema.json"
    link.symlink_to(secret)
    with pytest.raises(UnreadableError, match="no plain file"):
        gather(kb)
    link.unlink()
    os.mkfifo(link)
    with pytest.raises(UnreadableError, match="no plain file"):
        gather(kb)


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("7", "8", True), ("8", "7", False), ("7", "7", False), ("9", "10", True), ("1.4", "1.4.1", True),
        ("1.0", "1", False), ("2026.11.29", "2026.12.1", True), ("v1.2", "1.3", True), ("1-2", "1-3", True),
        ("7-rc1", "8", False), ("123456789012", "223456789012", False), ("7", "223456789012", False),
    ],
)  # fmt: skip
def test_numbers_have_an_order_and_parts_of_digests_have_none(version: str, than: str, older: bool) -> None:
    this, other = ({"name": "site", "version": each, "digest": f"{each if len(each) == 12 else 'ab'}ab"}
                   for each in (version, than))  # fmt: skip
    assert is_older(this, other) is older
    assert not is_older(this, {**other, "name": "another"})
