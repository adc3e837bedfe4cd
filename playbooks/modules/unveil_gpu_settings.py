"""Settings of a GPU through pynvml, for `unveil_setting`: power limit, persistence mode, application clocks.

Which clocks are *locked* NVML does not tell, so they are no setting: they could not be put back.
It raises OSError only, with a text that says what is wrong.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re

WATTS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
CLOCKS = re.compile(r"[0-9]{2,5},[0-9]{2,5}")


def read(_scheme, uuid, item):
    """Return the content of a setting."""
    nvml, gpu = _open(uuid)
    try:
        if item == "persistence_mode":
            return "on" if nvml.nvmlDeviceGetPersistenceMode(gpu) else "off"
        if item == "applications_clocks":
            domains = (nvml.NVML_CLOCK_MEM, nvml.NVML_CLOCK_GRAPHICS)
            return "%d,%d" % tuple(nvml.nvmlDeviceGetApplicationsClock(gpu, each) for each in domains)
        return ("%.3f" % (nvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000)).rstrip("0").rstrip(".")
    except nvml.NVMLError as error:
        raise _failure(str(error)) from error


def write(_scheme, uuid, item, value):
    """Write a setting."""
    nvml, gpu = _open(uuid)
    try:
        if item == "persistence_mode":
            if value not in ("on", "off"):
                raise _failure("it is on or off")
            nvml.nvmlDeviceSetPersistenceMode(gpu, int(value == "on"))
        elif item == "applications_clocks":
            if not CLOCKS.fullmatch(value):
                raise _failure("it is a pair of clocks in MHz: memory,SM")
            nvml.nvmlDeviceSetApplicationsClocks(gpu, *map(int, value.split(",")))
        else:
            _limit(nvml, gpu, value)
    except nvml.NVMLError as error:
        raise _failure(str(error)) from error


def _limit(nvml, gpu, value):
    if not WATTS.fullmatch(value):
        raise _failure("it is a number of watts")
    power = float(value)
    least, most = nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)
    if not least <= power * 1000 <= most:
        raise _failure("%g W is not within %g … %g W" % (power, least / 1000, most / 1000))
    nvml.nvmlDeviceSetPowerManagementLimit(gpu, round(power * 1000))


def _failure(text):
    return OSError(errno.EIO, text)


def _open(uuid):
    """Return pynvml and the handle of a GPU."""
    try:
        import pynvml
    except ImportError as error:
        raise _failure("pynvml is not installed for %s" % os.path.realpath("/proc/self/exe")) from error
    library = os.environ.get("UNVEIL_NVML_LIBRARY")  # another than the system's; its SONAME serves pynvml's own load
    try:
        if library:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise _failure("the NVML library cannot be loaded: %s" % error) from error
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError as error:
        raise _failure("GPU %s: %s" % (uuid, error)) from error
