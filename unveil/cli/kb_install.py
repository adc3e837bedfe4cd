"""`unveil kb install`: put a pack into use, or take it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw, kb_verify
from unveil.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from unveil.knowledge.installing import Installed

DESCRIPTION = """Put a pack into use at --kb DIR: everything or nothing, in one step, and only when it loads together
with the site's inventory, which stays. A running watcher goes over to it by itself. Once DIR/inventory/allowed_signers
is there (or --signers is given), a pack must be signed by one of them.

A pack brings an inventory only to a new place. When it grants something (roles, a mode above observe), it is shown, and
a profile that observes stands there instead unless --take-inventory is given.

An older version of the pack in use (7 after 8) is refused without --downgrade: its signature is as good as ever.

DIR becomes a symbolic link into DIR.installed/. --rollback puts into use again what was there before."""
EXAMPLE = "unveil kb install site-7.tar.gz --kb /etc/unveil/kb"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("pack", type=Path, metavar="PACK", nargs="?", help="made by `unveil kb pack`")
    what.add_argument("--rollback", action="store_true", help="put into use again what was there before")
    parser.add_argument("--downgrade", action="store_true", help="also when a newer version is in use")
    parser.add_argument(
        "--take-inventory",
        action="store_true",
        help="into a new place, also when it grants roles or a mode above observe",
    )
    kb_verify.add_signers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Install, or roll back."""
    from unveil.knowledge.installing import install, roll_back
    from unveil.records.codec import encode

    if arguments.kb is None:
        raise UsageError("--kb says where to install", hint="e.g. --kb /etc/unveil/kb")
    target = Path(arguments.kb)
    if arguments.rollback:
        _refuse_flags_of_packs(arguments)
        signed_by, done = None, roll_back(target)
    else:
        archive, signed_by = kb_verify.check(arguments.pack, target, arguments.signers)
        done = install(archive, target, downgrade=arguments.downgrade, take_inventory=arguments.take_inventory)
    if arguments.json:
        draw.print_json({**encode(done), "signer": signed_by})
        return 0
    if not arguments.rollback:
        draw.line(kb_verify.vouched(signed_by), style="green" if signed_by else "yellow")
    _tell_inventory(done)
    draw.line(f"in use now: {done.folder}")
    if done.before:
        draw.line(f"before: {done.before}; `unveil kb install --rollback --kb {target}` takes it back")
    return 0


def _tell_inventory(done: Installed) -> None:
    if done.inventory == "site":
        draw.line("the site's own inventory stays")
    elif done.inventory == "observe":
        kb_verify.tell_grants(
            "NOT taken of the pack's inventory (--take-inventory takes it); this host observes:", done.grants
        )
    else:
        kb_verify.tell_grants(
            f"the pack's inventory is in use, and {'grants:' if done.grants else 'observes'}", done.grants
        )


def _refuse_flags_of_packs(arguments: argparse.Namespace) -> None:
    """Refuse what says how to take a pack: what was in use before is put back as it was."""
    flags = {
        "--take-inventory": arguments.take_inventory,
        "--downgrade": arguments.downgrade,
        "--signers": arguments.signers is not None,
    }
    for flag, given in flags.items():
        if given:
            raise UsageError(f"{flag} is about a pack: --rollback takes none", hint="leave it out")
