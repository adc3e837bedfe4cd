"""Managed settings of a GPU: ``python -m unveil.host.sources.nvml_settings get|set nvml:UUID/power_limit [WATTS]``.

Reading or writing one setting is a short-lived process of its own: neither the watcher nor the executor calls the
driver, which may hang. ``read_setting`` and ``write_setting`` start it, wait with a deadline, and leave it alone when
the driver holds it beyond that.

The text of a setting is its value as a file of the kernel would show it: ``350\\n`` (watts, to the milliwatt).

Exit codes: 0 done; 1 the host, the driver or the permissions do not serve it; 2 the value is wrong; 3 usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil import errors
from unveil.errors import BadInputError, RefusedError, SourceAbsentError, SourceFailedError, UnveilError, UsageError
from unveil.host.driver_process import ask_to_end, hold_termination, reap, wait_or_leave
from unveil.host.gpu_facts import watts_text
from unveil.host.sources.gpu import open_nvml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ADDRESS = re.compile(r"nvml:(?P<uuid>GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})/(?P<setting>[a-z_]+)")
_WATTS = re.compile(
    r"[0-9]{1,7}(\.[0-9]{1,6})?", re.ASCII
)  # float() alone would admit 1_000, 1e3, other scripts' digits
_NO_PERMISSION, _NOT_FOUND = 4, 6  # nvmlReturn_t


@dataclass(frozen=True, slots=True)
class _Setting:
    """How one setting is read and written: text in, text out, the pynvml module and a handle before it."""

    read: Callable[[Any, Any], str]
    write: Callable[[Any, Any, str], None]


def _read_power_limit(nvml: Any, gpu: Any) -> str:
    return watts_text(nvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000) + "\n"


def _write_power_limit(nvml: Any, gpu: Any, text: str) -> None:
    if not _WATTS.fullmatch(text.strip()):
        raise BadInputError(f"{text.strip()!r} is not a number of watts")
    watts = float(text)
    least, most = (limit / 1000 for limit in nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu))
    if not least <= watts <= most:
        raise BadInputError(
            f"{text.strip()} W is outside of what this GPU allows",
            hint=f"{watts_text(least)} to {watts_text(most)} W",
        )
    wanted = round(watts * 1000)
    nvml.nvmlDeviceSetPowerManagementLimit(gpu, wanted)
    found = nvml.nvmlDeviceGetPowerManagementLimit(gpu)
    if found != wanted:  # a board may round, or another limit may be in force
        raise SourceFailedError(
            f"the driver took {watts_text(watts)} W and reads {watts_text(found / 1000)} W",
            hint="something else limits this GPU, or writes the limit, too",
        )


def _read_persistence(nvml: Any, gpu: Any) -> str:
    return "on\n" if nvml.nvmlDeviceGetPersistenceMode(gpu) else "off\n"


def _write_persistence(nvml: Any, gpu: Any, text: str) -> None:
    if text.strip() not in ("on", "off"):
        raise BadInputError(f"{text.strip()!r} is neither on nor off")
    nvml.nvmlDeviceSetPersistenceMode(gpu, int(text.strip() == "on"))


def _read_clocks(nvml: Any, gpu: Any) -> str:
    memory, sm = (
        nvml.nvmlDeviceGetApplicationsClock(gpu, domain) for domain in (nvml.NVML_CLOCK_MEM, nvml.NVML_CLOCK_GRAPHICS)
    )
    return f"{memory},{sm}\n"


def _write_clocks(nvml: Any, gpu: Any, text: str) -> None:
    if not re.fullmatch(r"[0-9]{2,5},[0-9]{2,5}", text.strip()):
        raise BadInputError(f"{text.strip()!r} is no pair of clocks", hint="MHz of memory and of SMs, e.g. 2619,1980")
    memory, sm = map(int, text.split(","))
    nvml.nvmlDeviceSetApplicationsClocks(gpu, memory, sm)


SETTINGS: Mapping[str, _Setting] = {
    "power_limit": _Setting(_read_power_limit, _write_power_limit),
    "persistence_mode": _Setting(_read_persistence, _write_persistence),
    "applications_clocks": _Setting(_read_clocks, _write_clocks),
}


def parse_address(address: str) -> tuple[str, str]:
    """Return the UUID and the name of the setting of ``nvml:GPU-…/power_limit``.

    Raises:
        UsageError: the text is no address of a setting that exists.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or found["setting"] not in SETTINGS:
        known = ", ".join(f"nvml:UUID/{name}" for name in SETTINGS)
        raise UsageError(f"{address!r} is no managed NVML setting", hint=f"there is {known}, UUID as in GPU-5eed0000-…")
    return found["uuid"], found["setting"]


def read_setting(address: str, timeout_s: float, *, environ: Mapping[str, str] | None = None) -> str:
    """Return the text of a setting, from a process of its own.

    Raises:
        UsageError: no such setting.
        SourceAbsentError: no NVML library, or no such GPU.
        SourceFailedError: the driver failed, or did not answer in time (the process was left, never killed).
    """
    return _run(("get", address), timeout_s, environ)


def write_setting(address: str, text: str, timeout_s: float, *, environ: Mapping[str, str] | None = None) -> None:
    """Write the text of a setting, from a process of its own, and read it back.

    Raises:
        UsageError: no such setting.
        BadInputError: the text is no value, or outside of what the GPU allows.
        RefusedError: the driver wants more rights.
        SourceAbsentError: no NVML library, or no such GPU.
        SourceFailedError: the driver failed, or did not answer in time. Then what is set is unknown, and may still
            change: read it again.
    """
    _run(("set", address, text.strip()), timeout_s, environ)


def _run(arguments: tuple[str, ...], timeout_s: float, environ: Mapping[str, str] | None) -> str:
    parse_address(arguments[1])  # nothing odd reaches a command line
    reap()
    process = subprocess.Popen(
        (sys.executable, "-m", "unveil.host.sources.nvml_settings", "--json", "--", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ if environ is None else environ),
        start_new_session=True,
    )
    try:
        output, complaint = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        ask_to_end(process)
        wait_or_leave(process, 0.0)
        raise SourceFailedError(
            f"the NVIDIA driver did not {arguments[0]} {arguments[1]} within {timeout_s:g} s",
            hint=f"process {process.pid} is inside a driver call and was left to end by itself",
        ) from late
    if process.returncode == 0:
        return output.decode()
    raise _error_of(complaint, process.returncode)


def _error_of(complaint: bytes, code: int) -> UnveilError:
    """Return the error that the process told of in the last line of its complaint."""
    last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
    try:
        told = json.loads(last)
        return _ERRORS[told["error"]](told["what"], hint=told["hint"])
    except (ValueError, TypeError, KeyError):
        return SourceFailedError(f"the process for NVML settings ended with code {code}: {last[:200]}")


_ERRORS: Mapping[str, type[UnveilError]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UnveilError)
}


def _act(action: str, address: str, value: str | None) -> str:
    """Do it, in this process; return what is to be printed."""
    uuid, name = parse_address(address)
    if (action == "set") != (value is not None):
        raise UsageError("set takes a value, get takes none")
    nvml = open_nvml()
    try:
        gpu = nvml.nvmlDeviceGetHandleByUUID(uuid)
        if value is None:
            return SETTINGS[name].read(nvml, gpu)
        SETTINGS[name].write(nvml, gpu, value)
    except nvml.NVMLError as error:
        if error.value == _NOT_FOUND:
            raise SourceAbsentError(f"this host has no GPU {uuid}") from error
        if error.value == _NO_PERMISSION:
            raise RefusedError(f"the driver does not permit to {action} {address}", hint="it takes root") from error
        raise SourceFailedError(f"the NVIDIA driver cannot {action} {address}: {error}") from error
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Read or write one setting; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.host.sources.nvml_settings",
        description="Read or write one managed setting of a GPU.",
        epilog="example: … set nvml:GPU-5eed0000-0000-4000-8000-000000000000/power_limit 350",
        exit_on_error=False,
    )
    parser.add_argument("--json", action="store_true", help="tell an error as JSON")
    parser.add_argument("action", choices=("get", "set"))
    parser.add_argument("address", help="nvml:UUID/power_limit")
    parser.add_argument("value", nargs="?", help="watts")
    as_json = "--json" in (sys.argv[1:] if argv is None else argv)
    try:
        arguments = parser.parse_args(argv)
        hold_termination()
        sys.stdout.write(_act(arguments.action, arguments.address, arguments.value))
        sys.stdout.flush()
    except argparse.ArgumentError as error:
        return _complain(UsageError(str(error)), as_json=as_json)
    except SystemExit as end:  # argparse has said it already; its 2 is our 3
        return 3 if end.code else 0
    except UnveilError as error:
        return _complain(error, as_json=as_json)
    except BrokenPipeError:  # whoever asked has gone; what was to be set is set
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _complain(error: UnveilError, *, as_json: bool) -> int:
    if as_json:
        line = json.dumps({"error": type(error).__name__, "what": error.what, "hint": error.hint})
    else:
        line = error.what if error.hint is None else f"{error.what} ({error.hint})"
    print(line, file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
