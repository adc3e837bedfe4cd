"""Signatures of packs, made and checked by OpenSSH's ``ssh-keygen -Y`` (8.2 and later; ssh-keygen(1)).

A signature is detached, beside the pack as ``PACK.sig``, over the very bytes of the archive. Who may sign is in a file
of allowed signers, one a line: ``release@example.org namespaces="unveil-kb" ssh-ed25519 AAAA…``.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, RefusedError, UnreadableError, UnwritableError
from unveil.knowledge.content import INVENTORY

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = "unveil-kb"
SIGNERS = f"{INVENTORY}/allowed_signers"
ENDING = ".sig"
MAX_SIGNATURE_BYTES = 64_000
_TIMEOUT_S = 30


def signature_of(pack: Path) -> Path:
    """Return where the signature of a pack lies."""
    return pack.with_name(pack.name + ENDING)


def signers_of(root: Path, named: Path | None) -> Path | None:
    """Return the file of allowed signers: the one that is named, else the site's own, else None.

    Raises:
        UnreadableError: the one that is named is not there.
    """
    if named is not None:
        if not named.is_file():
            raise UnreadableError(f"{named} is no file of allowed signers")
        return named
    own = root / SIGNERS
    # One that cannot be read still means that a signature is demanded.
    return own if os.path.lexists(own) else None


def sign(pack: Path, key: Path) -> Path:
    """Sign a pack; ssh-keygen may ask for the passphrase, or use the agent when *key* is a public key.

    Raises:
        UnreadableError: there is no such pack or key.
        RefusedError: ssh-keygen did not sign.
        UnwritableError: the signature from before cannot be replaced.
    """
    for each in (pack, key):
        if not each.is_file():
            raise UnreadableError(f"{each} is no file")
    signature = signature_of(pack)
    try:
        signature.unlink(missing_ok=True)  # ssh-keygen would ask, and a stale one is worth nothing
    except OSError as error:
        raise UnwritableError(f"{signature} cannot be replaced: {error.strerror}") from error
    ended = _run("sign", "-f", str(key), "-n", NAMESPACE, "--", str(pack), timeout_s=None)
    if ended.returncode or not signature.is_file():
        raise RefusedError(f"{pack} was not signed: {_last(ended)}")
    return signature


def signer(content: bytes, signature: Path, signers: Path) -> str:
    """Return who signed the bytes of a pack.

    Args:
        signers: the file of allowed signers.

    Raises:
        RefusedError: there is no signature, it is not over these bytes, or it is of nobody who may sign.
        UnreadableError: a file cannot be read.
    """
    if not signers.is_file():
        raise UnreadableError(f"{signers} is no file of allowed signers")
    if not signature.is_file():
        raise RefusedError(f"there is no signature {signature}", hint="`unveil kb sign` makes one")
    if signature.stat().st_size > MAX_SIGNATURE_BYTES:
        raise BadInputError(f"{signature} is no signature: it has {signature.stat().st_size:,} bytes")
    found = _run("find-principals", "-s", str(signature), "-f", str(signers))
    if found.returncode:
        raise RefusedError(f"the signer of {signature} is not in {signers}: {_last(found)}")
    for principal in found.stdout.decode(errors="replace").splitlines():
        words = ("-f", str(signers), "-I", principal, "-n", NAMESPACE, "-s", str(signature))
        checked = _run("verify", *words, content=content)
        if not checked.returncode:
            return principal
    raise RefusedError(f"the signature {signature} does not hold: {_last(checked)}")


def _run(
    action: str, *words: str, content: bytes = b"", timeout_s: float | None = _TIMEOUT_S
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *words], input=content, capture_output=True, check=False, timeout=timeout_s,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except FileNotFoundError as error:
        raise RefusedError("ssh-keygen is not installed", hint="apt install openssh-client") from error
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"ssh-keygen did not answer within {_TIMEOUT_S} s") from error


def _last(ended: subprocess.CompletedProcess[bytes]) -> str:
    lines = (ended.stderr or ended.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen ended with {ended.returncode}"
