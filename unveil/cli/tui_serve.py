"""`unveil tui --serve`: the cockpit in a browser, behind a link that works once."""

from __future__ import annotations

import ipaddress
import shlex
import sys
from typing import TYPE_CHECKING

from unveil.cli import connect
from unveil.errors import UsageError

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted.

    Raises:
        UsageError: textual-serve is not installed, or the address cannot be listened at.
    """
    try:
        from unveil_tui.serving import serve
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--serve needs {error.name}, which is not installed", hint="pip install 'unveil[serve]'"
        ) from error
    if not 0 < arguments.port < 65536:
        raise UsageError(f"--port is between 1 and 65535, not {arguments.port}")
    try:
        address = ipaddress.ip_address(arguments.listen)
    except ValueError as error:
        raise UsageError(f"--listen takes an address, not {arguments.listen!a}", hint="e.g. 127.0.0.1") from error
    if not address.is_loopback:
        print(
            f"unveil: {address} can be reached from elsewhere, without encryption: put a proxy with TLS before it",
            file=sys.stderr,
        )
    if arguments.act and not arguments.read_only:
        print("unveil: whoever comes in may act as this user", file=sys.stderr)
    try:
        serve(command(arguments), str(address), arguments.port, _tell)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {address} port {arguments.port}: {error.strerror}", hint="another --port may be free"
        ) from error
    return 0


def command(arguments: argparse.Namespace) -> str:
    """Return the shell command of the cockpit that each browser gets; it only looks unless ``--act`` was given."""
    words = [sys.executable, "-m", "unveil", "tui"]
    if arguments.replay is not None:
        words += ["--replay", arguments.replay, "--speed", f"{arguments.speed:g}"]
        words += ["--kb", arguments.kb] if arguments.kb else []
    elif arguments.socket:
        words += [word for path in arguments.socket for word in ("--socket", str(path.absolute()))]
    else:
        words += ["--state-dir", str(connect.state_dir(arguments).path)]
    if arguments.read_only or not arguments.act:
        words.append("--read-only")
    return shlex.join(words)


def _tell(link: str) -> None:
    print(f"open {link}", flush=True)
