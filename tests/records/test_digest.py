"""The digest is SHA-256, whoever computes it."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from unveil.records.digest import sha256


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_it_is_what_openssl_says(parts: list[bytes]) -> None:
    ours, theirs = sha256(), hashlib.sha256()
    for part in parts:
        ours.update(part)
        theirs.update(part)
    assert ours.hexdigest() == theirs.hexdigest() == sha256(b"".join(parts)).hexdigest()
    assert ours.digest() == theirs.digest()


def test_openssl_is_not_loaded_for_it() -> None:
    program = "import sys, unveil.records.digest; print('_hashlib' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "False"
