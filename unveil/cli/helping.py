"""How `--help` is laid out: paragraphs as wide as the terminal, and each action with its example."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction


class Layout(argparse.HelpFormatter):
    """Paragraphs are filled one by one; one that begins with ``example:`` stays as it is, to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        fill = textwrap.TextWrapper(width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False).fill
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(each if each.startswith("example:") else fill(" ".join(each.split())) for each in paragraphs)


def add_action(
    actions: _SubParsersAction[argparse.ArgumentParser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Return the parser of an action, which says in its help what the list of actions says, and an example."""
    description = f"{summary[0].upper()}{summary[1:]}."
    return actions.add_parser(name, help=summary, description=description, epilog=f"example:\n  {example}")
