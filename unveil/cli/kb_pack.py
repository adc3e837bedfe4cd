"""`unveil kb pack`: the knowledge base as one file."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.cli.kb_open import usable_knowledge
from unveil.errors import UnwritableError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Write fingerprints, playbooks, schemas and inventory into one archive. The same files make the same
bytes, so two people who pack one commit can compare. A knowledge base with an error is not packed."""
EXAMPLE = "unveil kb pack --kb . --name site --version 7"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--name", default="unveil-kb", help="of the pack (default: unveil-kb)")
    parser.add_argument(
        "--version",
        dest="pack_version",
        default="",
        metavar="VERSION",
        help="of the pack (default: a part of its digest)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: NAME-VERSION.tar.gz here")


def run(arguments: argparse.Namespace) -> int:
    """Pack."""
    from unveil.knowledge.archive import archive_of, gather, write_archive
    from unveil.knowledge.content import knowledge_root

    usable_knowledge(arguments.kb)
    files = gather(knowledge_root(arguments.kb))
    archive = archive_of(files, name=arguments.name, version=arguments.pack_version, unveil=version("unveil"))
    path = arguments.output or Path(f"{archive.name}-{archive.version}.tar.gz")
    content = write_archive(archive)
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise UnwritableError(f"{path} cannot be written: {error.strerror}") from error
    if arguments.json:
        draw.print_json({"file": str(path), "bytes": len(content), "digest": archive.digest, "files": list(files)})
    else:
        draw.line(f"{path}: {len(files)} files, {len(content):,} bytes, digest {archive.digest}")
    return 0
