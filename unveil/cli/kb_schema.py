"""`unveil kb schema`: the JSON Schemas that editors complete from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.errors import BadInputError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Write the JSON Schema of every kind of file, made from the catalogues; print the files that changed."
EXAMPLE = "unveil kb schema --kb ."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("folder", type=Path, nargs="?", help="where to (default: the knowledge base's schemas/)")


def run(arguments: argparse.Namespace) -> int:
    """Write them; 0."""
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.schema_export import write_schemas

    folder = arguments.folder or knowledge_root(arguments.kb) / "schemas"
    if not folder.is_dir():
        raise BadInputError(f"{folder} is not a folder")
    written = write_schemas(folder)
    if arguments.json:
        draw.print_json([str(path) for path in written])
    else:
        for path in written:
            print(path)
    return 0
