"""Signatures over the bytes of a pack, by real keys: whose they are, and what is none."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError, RefusedError, UnreadableError
from unveil.knowledge.signing import SIGNERS, sign, signature_of, signer, signers_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("one", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    (folder / "allowed").write_text(f"one@example.org {(folder / 'one.pub').read_text()}")
    return folder


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "-pack; $(x).tar.gz"
    path.write_bytes(b"bytes")
    return path


def test_who_signed_is_told_and_signing_again_replaces(keys: Path, pack: Path) -> None:
    assert sign(pack, keys / "other") == sign(pack, keys / "one") == signature_of(pack)
    assert signer(b"bytes", signature_of(pack), keys / "allowed") == "one@example.org"


def test_other_bytes_another_key_or_no_signature_are_refused(keys: Path, pack: Path) -> None:
    sign(pack, keys / "one")
    with pytest.raises(RefusedError, match="does not hold"):
        signer(b"bytez", signature_of(pack), keys / "allowed")
    sign(pack, keys / "other")
    with pytest.raises(RefusedError, match="is not in"):
        signer(b"bytes", signature_of(pack), keys / "allowed")
    signature_of(pack).write_text("no signature")
    with pytest.raises(RefusedError, match="is not in"):
        signer(b"bytes", signature_of(pack), keys / "allowed")
    signature_of(pack).write_bytes(bytes(100_000))
    with pytest.raises(BadInputError, match="100,000 bytes"):
        signer(b"bytes", signature_of(pack), keys / "allowed")
    signature_of(pack).unlink()
    with pytest.raises(RefusedError, match="there is no signature"):
        signer(b"bytes", signature_of(pack), keys / "allowed")


def test_a_signer_whose_key_has_expired_is_refused(keys: Path, pack: Path) -> None:
    sign(pack, keys / "one")
    (pack.parent / "expired").write_text(f'one@example.org valid-before="20200101" {(keys / "one.pub").read_text()}')
    with pytest.raises(RefusedError):
        signer(b"bytes", signature_of(pack), pack.parent / "expired")


def test_who_may_sign_is_said_by_the_flag_or_by_the_site(tmp_path: Path, keys: Path) -> None:
    assert signers_of(tmp_path, None) is None
    (tmp_path / SIGNERS).parent.mkdir()
    (tmp_path / SIGNERS).symlink_to("nowhere")  # broken, and so nobody may; not everybody
    assert signers_of(tmp_path, None) == tmp_path / SIGNERS
    with pytest.raises(UnreadableError):
        signer(b"bytes", tmp_path / "x.sig", tmp_path / SIGNERS)
    assert signers_of(tmp_path, keys / "allowed") == keys / "allowed"
    with pytest.raises(UnreadableError):
        signers_of(tmp_path, tmp_path / "absent")


def test_what_cannot_be_signed_is_said(keys: Path, pack: Path) -> None:
    for path, key in ((pack.with_name("absent"), keys / "one"), (pack, keys / "absent")):
        with pytest.raises(UnreadableError):
            sign(path, key)
    with pytest.raises(RefusedError, match="was not signed"):
        sign(pack, keys / "allowed")
