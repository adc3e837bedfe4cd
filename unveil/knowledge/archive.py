"""A knowledge base as one file that can be signed, sent and installed: a deterministic ``.tar.gz``.

The same files make the same bytes, whoever packs them when. What is read is hostile until it is proven otherwise: it is
taken apart in memory, bounded, and refused as a whole for a link, a device, an absolute path, a ``..``, a file that is
too large or named twice, a folder that does not belong, or a digest that its manifest does not confirm. Python's own
extraction is not used: Debian 12's 3.11.2 has no filters for it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError, UnreadableError
from unveil.knowledge.content import FOLDERS, SCHEMAS
from unveil.knowledge.pack import MAX_FILE_BYTES, MAX_FILES, read_pack
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MANIFEST = "kb.json"
MAX_ARCHIVE_BYTES = 64_000_000
MAX_TOTAL_BYTES = 256_000_000

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NUMBERS = re.compile(r"v?[0-9]+(?:[._-][0-9]+)*")
_DIGEST_PART = 12  # letters that stand in for a version
_FORM = 1  # of the manifest
_MOST_NAME = 4096  # bytes of a path


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What is in a pack.

    Attributes:
        digest: sha256 over paths and contents.
        unveil: version that packed it.
        files: content by path, the manifest left out.
    """

    name: str
    version: str
    digest: str
    unveil: str
    files: Mapping[str, bytes]

    @property
    def manifest(self) -> bytes:
        """Return the text of its manifest."""
        told = {
            "form": _FORM,
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "unveil": self.unveil,
            "files": {path: hashlib.sha256(content).hexdigest() for path, content in self.files.items()},
        }
        return f"{json.dumps(told, indent=1)}\n".encode()


def is_older(told: Mapping[str, Any], than: Mapping[str, Any]) -> bool:
    """Return whether a manifest is that of an older version of the same pack; False where versions have no order.

    Numbers have one (7, 2026.11.29, 1.4-2). A part of a digest, which stands in for a version, has none.
    """
    this, other = _order(told), _order(than)
    return told["name"] == than["name"] and this is not None and other is not None and this < other


def _order(told: Mapping[str, Any]) -> list[int] | None:
    version, digest = told["version"], told["digest"]
    if not _NUMBERS.fullmatch(version) or (len(version) == _DIGEST_PART and digest.startswith(version)):
        return None
    numbers = [int(each) for each in re.split(r"[._-]", version.removeprefix("v"))]
    while numbers and not numbers[-1]:  # 1.0 is 1
        numbers.pop()
    return numbers


def gather(root: Path) -> dict[str, bytes]:
    """Return the files of a knowledge base that go into a pack: what is loaded, and the schemas for editors.

    Raises:
        UnreadableError: something in it could not be read, e.g. a link that leads out.
    """
    pack = read_pack(root)
    for problem in pack.problems:
        if problem.gravity is Gravity.ERROR:
            raise UnreadableError(f"{problem}")
    found = {}
    try:
        for path in sorted((root / SCHEMAS).glob("*.schema.json")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
                raise UnreadableError(f"{path} is no plain file, or too large", hint="copy the file instead of a link")
            found[f"{SCHEMAS}/{path.name}"] = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{error.filename}: {error.strerror}") from error
    return {**pack.files, **found}


def archive_of(files: Mapping[str, bytes], *, name: str, version: str = "", unveil: str) -> Archive:
    """Return files as a pack.

    Args:
        version: a part of the digest where it is empty, so that it differs when the content does.

    Raises:
        BadInputError: name or version is none.
    """
    files = dict(sorted(files.items()))
    digest = _digest(files)
    version = version or digest[:_DIGEST_PART]
    for what, text in (("name", name), ("version", version)):
        if not _NAME.fullmatch(text):
            hint = "lower case letters, digits, '.', '_' and '-', 64 at most"
            raise BadInputError(f"{text!r} is no {what} of a pack", hint=hint)
    return Archive(name=name, version=version, digest=digest, unveil=unveil, files=files)


def write_archive(archive: Archive) -> bytes:
    """Return the bytes: the manifest first, then the files by path, without times and owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in {MANIFEST: archive.manifest, **archive.files}.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)


def read_archive(content: bytes) -> Archive:
    """Return what is in a pack.

    Raises:
        BadInputError: it is none, or holds something that no pack may hold.
    """
    files = _members(_unzipped(content))
    manifest = read_manifest(files.pop(MANIFEST, b""))
    found = {path: hashlib.sha256(text).hexdigest() for path, text in files.items()}
    if found != manifest["files"]:
        odd = sorted(set(found.items()) ^ set(manifest["files"].items()))[0][0]
        raise BadInputError(f"the pack's manifest does not confirm {odd}")
    archive = archive_of(files, name=manifest["name"], version=manifest["version"], unveil=manifest["unveil"])
    if archive.digest != manifest["digest"]:
        raise BadInputError("the pack's manifest has another digest than its files")
    return archive


def _unzipped(content: bytes) -> bytes:
    """Return what was compressed, without ever holding more than is allowed."""
    if len(content) > MAX_ARCHIVE_BYTES:
        raise BadInputError(f"the pack has {len(content):,} bytes", hint=f"at most {MAX_ARCHIVE_BYTES:,} are read")
    inflating = zlib.decompressobj(wbits=31)  # gzip only
    try:
        plain = inflating.decompress(content, MAX_TOTAL_BYTES)
    except zlib.error as error:
        raise BadInputError(f"this is no pack: {error}", hint="`unveil kb pack` makes one") from error
    if inflating.unconsumed_tail or (len(plain) == MAX_TOTAL_BYTES and not inflating.eof):
        raise BadInputError(f"the pack unfolds to more than {MAX_TOTAL_BYTES:,} bytes")
    if not inflating.eof or inflating.unused_data:
        raise BadInputError("the pack is cut off" if not inflating.eof else "something follows the end of the pack")
    return plain


def _members(plain: bytes) -> dict[str, bytes]:
    """Return the files of a tar archive, its headers taken one by one.

    `tarfile` looks for words in extended headers with a pattern that takes minutes over a few hundred kilobytes of
    digits (CVE-2024-6232), and follows headers that announce headers by recursion. Of all kinds of headers a pack has
    two: files, and the name of a file where it is long.
    """
    files: dict[str, bytes] = {}
    at, long_name = 0, ""
    while (header := plain[at : at + tarfile.BLOCKSIZE]).strip(b"\0"):
        try:
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except (tarfile.TarError, ValueError) as error:
            raise BadInputError(f"this is no pack: {error}") from error
        name = long_name or member.name
        shown = repr(name[:200])
        at += tarfile.BLOCKSIZE
        content = plain[at : at + max(0, member.size)]
        if len(content) != member.size:
            raise BadInputError(f"{shown} in the pack is cut off")
        at += -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        if member.type == tarfile.GNUTYPE_LONGNAME and not long_name and member.size <= _MOST_NAME:
            long_name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
            continue
        long_name = ""
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise BadInputError(f"{shown} in the pack is no plain file", hint="links and devices are refused")
        if not _may_be(name):
            raise BadInputError(f"{shown} in the pack lies outside of what a knowledge base holds")
        if name in files or len(files) > MAX_FILES:
            many = f"more than {MAX_FILES:,} files are in the pack"
            raise BadInputError(f"{shown} is twice in the pack" if name in files else many)
        # The manifest names every file with its digest, so it may be larger than they are.
        most = MAX_FILE_BYTES if name != MANIFEST else 8 * MAX_FILE_BYTES
        if member.size > most:
            raise BadInputError(f"{shown} in the pack has {member.size:,} bytes", hint=f"at most {most:,} are read")
        files[name] = content
    if long_name or not files:
        raise BadInputError("this is no pack: it ends before its files do")
    return files


def _may_be(path: str) -> bool:
    parts = path.split("/")
    clean = path.isprintable() and "\\" not in path and all(part and not part.startswith(".") for part in parts)
    return path == MANIFEST or (clean and len(parts) > 1 and parts[0] in FOLDERS and len(path) <= 1000)


def read_manifest(content: bytes) -> dict[str, Any]:
    """Return what a pack's manifest says: its `name`, `version`, `digest` and the digests of its `files`.

    Raises:
        BadInputError: it is none.
    """
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    texts = ("name", "version", "digest", "unveil")
    if not isinstance(told, dict) or told.get("form") != _FORM or not isinstance(told.get("files"), dict):
        raise BadInputError(f"the pack has no {MANIFEST} that this version understands")
    if not all(isinstance(told.get(key), str) for key in texts):
        raise BadInputError(f"the pack's {MANIFEST} lacks one of {', '.join(texts)}")
    if not all(isinstance(value, str) for value in told["files"].values()):
        raise BadInputError(f"the pack's {MANIFEST} has a digest that is no text")
    return told


def _digest(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for path, content in files.items():
        whole.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()
