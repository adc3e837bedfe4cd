"""`unveil kb sign`: put a signature beside a pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Write PACK.sig, a detached signature over the bytes of a pack, with ssh-keygen -Y. KEY is a private
key, or the public half of one that the SSH agent holds. Only what can be read as a pack is signed."""
EXAMPLE = "unveil kb sign site-7.tar.gz --key ~/.ssh/id_ed25519"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("pack", type=Path, metavar="PACK", help="made by `unveil kb pack`")
    parser.add_argument("--key", type=Path, required=True, metavar="KEY", help="SSH key to sign with")


def run(arguments: argparse.Namespace) -> int:
    """Sign."""
    from unveil.cli.kb_verify import read
    from unveil.knowledge.archive import read_archive
    from unveil.knowledge.signing import sign

    read_archive(read(arguments.pack))
    signature = sign(arguments.pack, arguments.key.expanduser())
    if arguments.json:
        draw.print_json({"signature": str(signature)})
    else:
        draw.line(str(signature))
    return 0
