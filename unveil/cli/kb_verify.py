"""`unveil kb verify`: what is in a pack, and who signed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.errors import UnreadableError

if TYPE_CHECKING:
    import argparse

    from unveil.knowledge.archive import Archive

DESCRIPTION = """Read a pack as `kb install` would, and check its signature PACK.sig against the allowed signers: those
of --signers, else inventory/allowed_signers of the knowledge base (--kb). Where there are none, it is only said that
nobody vouches for it. Exit 1 when a signature is demanded and does not hold, 2 when the file is no pack."""
EXAMPLE = "unveil kb verify site-7.tar.gz --kb /etc/unveil/kb"

_MOST_GRANTS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("pack", type=Path, metavar="PACK", help="made by `unveil kb pack`")
    add_signers(parser)


def add_signers(parser: argparse.ArgumentParser) -> None:
    """Give an action the flag that says who may sign."""
    parser.add_argument(
        "--signers", type=Path, metavar="FILE",
        help="who may sign, as in ssh-keygen(1) ALLOWED SIGNERS (default: inventory/allowed_signers of --kb)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Verify."""
    from unveil.knowledge.brought_inventory import grants_of
    from unveil.knowledge.content import knowledge_root

    archive, signed_by = check(arguments.pack, knowledge_root(arguments.kb), arguments.signers)
    grants = grants_of(archive.files)
    if arguments.json:
        told = {"name": archive.name, "version": archive.version, "digest": archive.digest, "signer": signed_by}
        draw.print_json({**told, "files": list(archive.files), "grants": grants})
        return 0
    draw.line(f"{archive.name} {archive.version}: {len(archive.files)} files, digest {archive.digest}")
    draw.line(vouched(signed_by), style="green" if signed_by else "yellow")
    tell_grants("its inventory grants, if it is taken:" if grants else "its inventory observes", grants)
    return 0


def tell_grants(title: str, grants: tuple[str, ...]) -> None:
    """Print what an inventory grants; that of a pack is as hostile as the rest of it."""
    draw.line(title, style="yellow" if grants else "")
    for each in grants[:_MOST_GRANTS]:
        draw.line(f"  {draw.plain(each, 300)}", style="yellow")
    if len(grants) > _MOST_GRANTS:
        draw.line(f"  and {len(grants) - _MOST_GRANTS} more", style="yellow")


def vouched(signed_by: str | None) -> str:
    """Return the line that says who vouches for a pack."""
    if signed_by is None:
        return "nobody vouches for it: no allowed signers are configured"
    return f"signed by {draw.plain(signed_by, 200)}"


def check(pack: Path, root: Path, signers: Path | None) -> tuple[Archive, str | None]:
    """Return what is in a pack and who signed it, None where nobody has to.

    Args:
        root: the knowledge base whose site says who may sign.

    Raises:
        RefusedError: it is not signed by one of them, or others may write who they are.
    """
    from unveil.execution.played import refuse_open_to_others
    from unveil.knowledge.archive import read_archive
    from unveil.knowledge.signing import signature_of, signer, signers_of

    content = read(pack)
    allowed = signers_of(root, signers)
    if allowed is not None and allowed.exists():
        refuse_open_to_others(allowed)  # who can write it says who may sign
    signed_by = None if allowed is None else signer(content, signature_of(pack), allowed)
    return read_archive(content), signed_by


def read(pack: Path) -> bytes:
    """Return the bytes of a pack.

    Nothing is made of them here: what nobody has vouched for yet is not taken apart.

    Raises:
        UnreadableError: there is none.
    """
    from unveil.knowledge.archive import MAX_ARCHIVE_BYTES

    try:
        with pack.open("rb") as stream:
            return stream.read(MAX_ARCHIVE_BYTES + 1)
    except OSError as error:
        raise UnreadableError(f"{pack}: {error.strerror}") from error
