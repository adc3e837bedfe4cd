"""`unveil kb pack|sign|verify|install` with real keys: who signed what, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, build_kb: Callable[..., Path]) -> Path:
    """Give a folder with a knowledge base, two keys, a file that allows one of them, and a signed pack."""
    folder = tmp_path_factory.mktemp("shelf")
    build_kb(folder / "kb")
    for name in ("release", "stranger"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(key, check=True)
    public = (folder / "release.pub").read_text()
    (folder / "allowed").write_text(f'release@example.org namespaces="unveil-kb" {public}')
    output = str(folder / "site-7.tar.gz")
    assert main(["kb", "pack", "--kb", str(folder / "kb"), "--version", "7", "--output", output]) == 0
    assert main(["kb", "sign", str(folder / "site-7.tar.gz"), "--key", str(folder / "release")]) == 0
    return folder


@pytest.fixture
def pack(shelf: Path, tmp_path: Path) -> Path:
    """Give a copy of the pack and its signature."""
    for ending in ("", ".sig"):
        shutil.copy(shelf / f"site-7.tar.gz{ending}", tmp_path)
    return tmp_path / "site-7.tar.gz"


def test_packing_twice_gives_the_same_bytes(shelf: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "again")
    assert main(["kb", "pack", "--kb", str(shelf / "kb"), "--version", "7", "--output", output]) == 0
    assert (tmp_path / "again").read_bytes() == (shelf / "site-7.tar.gz").read_bytes()


def test_a_signature_is_told_with_its_signer(shelf: Path, pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "verify", str(pack), "--signers", str(shelf / "allowed")]) == 0
    assert "signed by release@example.org" in capsys.readouterr().out
    assert main(["kb", "verify", str(pack), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["signer"]) == ("7", None)


def test_what_is_changed_unsigned_or_signed_by_a_stranger_is_refused(
    shelf: Path, pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["kb", "verify", str(pack), "--signers", str(shelf / "allowed")]
    assert main(["kb", "sign", str(pack), "--key", str(shelf / "stranger")]) == 0
    assert main(command) == 1
    assert "is not in" in capsys.readouterr().err
    shutil.copy(shelf / "site-7.tar.gz.sig", f"{pack}.sig")
    assert main(["kb", "pack", "--kb", str(shelf / "kb"), "--version", "8", "--output", str(pack)]) == 0
    assert main(command) == 1
    assert "does not hold" in capsys.readouterr().err
    Path(f"{pack}.sig").unlink()
    assert main(command) == 1
    assert "there is no signature" in capsys.readouterr().err
    pack.write_bytes(b"no pack")
    assert main(["kb", "sign", str(pack), "--key", str(shelf / "release")]) == 2
    assert main(["kb", "verify", str(pack)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_who_may_sign_is_not_believed_where_others_may_write_it(
    shelf: Path, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = Path(shutil.copy(shelf / "allowed", tmp_path))
    command = ["kb", "install", str(pack), "--kb", str(tmp_path / "kb"), "--signers", str(allowed)]
    allowed.chmod(0o666)
    assert main(command) == 1
    assert "allowed may be written by others" in capsys.readouterr().err
    assert not (tmp_path / "kb").exists()
    allowed.chmod(0o644)
    assert main(command) == 0


def test_a_signature_for_another_purpose_is_none(shelf: Path, pack: Path) -> None:
    Path(f"{pack}.sig").unlink()
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(shelf / "release"), "-n", "git", str(pack)]
    subprocess.run(sign, check=True, capture_output=True)
    assert main(["kb", "verify", str(pack), "--signers", str(shelf / "allowed")]) == 1


def test_once_a_key_is_configured_only_what_is_signed_is_installed(
    shelf: Path, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "kb"
    assert main(["kb", "install", str(pack), "--kb", str(target)]) == 0
    assert "nobody vouches for it" in capsys.readouterr().out
    shutil.copy(shelf / "allowed", target / "inventory/allowed_signers")
    assert main(["kb", "install", str(pack), "--kb", str(target)]) == 0
    assert "signed by release@example.org" in capsys.readouterr().out
    Path(f"{pack}.sig").unlink()
    before = target.readlink()
    assert main(["kb", "install", str(pack), "--kb", str(target)]) == 1
    assert "there is no signature" in capsys.readouterr().err
    assert target.readlink() == before
    assert main(["kb", "install", "--rollback", "--kb", str(target)]) == 0
    assert main(["kb", "lint", "--kb", str(target)]) == 0


def test_what_a_pack_would_grant_is_said_and_is_not_taken_by_itself(
    shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = Path(shutil.copytree(shelf / "kb", tmp_path / "own"))
    roles = "roles: [{name: admin, users: [mallory]}]\napprovals: {high: admin}\n"
    head = "apiVersion: unveil/v1\nkind: Profiles\ndefault: observe\n"
    (kb / "inventory").mkdir(exist_ok=True)
    (kb / "inventory/profiles.yml").write_text(head + roles)
    pack, target = str(tmp_path / "p.tar.gz"), str(tmp_path / "kb")
    assert main(["kb", "pack", "--kb", str(kb), "--output", pack]) == 0
    assert main(["kb", "verify", pack]) == 0
    assert "  role admin: mallory\n  high impact is approved by admin\n" in capsys.readouterr().out
    assert main(["kb", "install", pack, "--kb", target]) == 0
    told = capsys.readouterr().out
    assert "NOT taken of the pack's inventory" in told
    assert "  role admin: mallory\n" in told
    assert "mallory" not in (tmp_path / "kb/inventory/profiles.yml").read_text()
    assert main(["kb", "install", pack, "--kb", target, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inventory"] == "site"
    assert main(["kb", "install", pack, "--kb", f"{target}2", "--take-inventory"]) == 0
    assert "the pack's inventory is in use, and grants:\n  role admin: mallory\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("install", "absent.tar.gz", "--kb", "target"), 2),
        (("install", "absent.tar.gz"), 3),
        (("install", "--kb", "target"), 3),
        (("install", "--rollback", "--kb", "target"), 1),
        (("install", "--rollback", "--kb", "target", "--take-inventory"), 3),
        (("install", "--rollback", "--kb", "target", "--downgrade"), 3),
        (("install", "--rollback", "--kb", "target", "--signers", "absent"), 3),
        (("sign", "absent.tar.gz", "--key", "absent"), 2),
        (("verify", "absent.tar.gz"), 2),
        (("pack", "--kb", "SHELF", "--name", "../x"), 2),
        (("pack", "--kb", "SHELF", "--output", "no/such/folder/x"), 1),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_line(
    words: tuple[str, ...], code: int, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["kb", *(str(shelf / "kb") if word == "SHELF" else word for word in words)]) == code
    assert "Traceback" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
