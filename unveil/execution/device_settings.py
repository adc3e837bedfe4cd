"""Settings that are no files: rings, channels, moderation and offloads of NICs (ethtool), services, irqbalance's bans.

Stands alone (the standard library, Python 3.8), because the Ansible module `unveil_setting` uses the same file on
managed hosts: `playbooks/modules/unveil_device_settings.py` is a copy, and a test holds the two together byte for byte.
It raises OSError only, with the number that says what is wrong: ENODEV and EOPNOTSUPP for what is not there.

Sources: include/uapi/linux/ethtool.h, include/uapi/linux/sockios.h; systemctl(1), sd_booted(3); irqbalance's socket
API (its `COMMANDS.md` and `sock_handle`), unix(7).
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import re
import socket
import struct
import subprocess

SERVICE_S = 5.0  # a unit is started and stopped without waiting for it; systemd only has to answer
BALANCER_S = 2.0
_BANS_BYTES = 500  # what irqbalance reads of a command; it takes a number that was cut off for another interrupt
_SIOCETHTOOL = 0x8946
_GET_FEATURES, _SET_FEATURES, _GET_STRINGS, _STRING_COUNT = 0x3A, 0x3B, 0x1B, 0x37
_FEATURE_STRINGS = 4
_STRING = 32
# group: (command to get, to set, number of 32-bit words, name → word); word 0 is the command
_TABLES = {
    "ring": (0x10, 0x11, 9, {
        "rx-max": 1, "rx-mini-max": 2, "rx-jumbo-max": 3, "tx-max": 4, "rx": 5, "rx-mini": 6, "rx-jumbo": 7, "tx": 8,
    }),
    "channels": (0x3C, 0x3D, 9, {
        "rx-max": 1, "tx-max": 2, "other-max": 3, "combined-max": 4, "rx": 5, "tx": 6, "other": 7, "combined": 8,
    }),
    "coalesce": (0x0E, 0x0F, 23, {
        "rx-usecs": 1, "rx-frames": 2, "rx-usecs-irq": 3, "rx-frames-irq": 4, "tx-usecs": 5, "tx-frames": 6,
        "tx-usecs-irq": 7, "tx-frames-irq": 8, "adaptive-rx": 10, "adaptive-tx": 11,
    }),
}  # fmt: skip


def read(scheme: str, key: str, item: str) -> str:
    """Return the content of a setting; raise OSError when it is not there or cannot be read."""
    if scheme == "service":
        return _read_service(key, item)
    if scheme == "irqbalance":
        return "yes" if int(key) in _bans() else "no"
    group, _, name = item.partition("/")
    if group == "feature":
        bit, blocks = _features(key)[name] if name in _features(key) else _absent(key, name)
        return "on" if blocks[bit // 32][2] >> bit % 32 & 1 else "off"
    value = _words(key, group)[_word(group, name)]
    return ("on" if value else "off") if name.startswith("adaptive-") else str(value)


def write(scheme: str, key: str, item: str, value: str) -> None:
    """Write a setting; raise OSError when it is not there or does not take the value."""
    if scheme == "service":
        _write_service(key, item, value)
        return
    if scheme == "irqbalance":
        _write_ban(int(key), value)
        return
    group, _, name = item.partition("/")
    if group == "feature":
        _write_feature(key, name, _switch(value))
        return
    if name.endswith("-max"):
        raise OSError(errno.EPERM, f"{name} is what the device can do, and no setting")
    words = _words(key, group)
    words[_word(group, name)] = _switch(value) if name.startswith("adaptive-") else _number(value)
    words[0] = _TABLES[group][1]
    _ask(key, words)


def _word(group: str, name: str) -> int:
    try:
        return _TABLES[group][3][name]
    except KeyError:
        raise OSError(errno.EOPNOTSUPP, f"there is no {group}/{name}") from None


def _switch(value: str) -> int:
    if value not in ("on", "off"):
        raise OSError(errno.EINVAL, "it is on or off")
    return int(value == "on")


def _number(value: str) -> int:
    if not value.isdecimal() or not value.isascii() or int(value) >= 1 << 32:
        raise OSError(errno.EINVAL, "it is a whole number")
    return int(value)


def _words(nic: str, group: str) -> array.array[int]:
    """Return what the driver answers to a group's get command, 32-bit words."""
    words = array.array("I", [0] * _TABLES[group][2])
    words[0] = _TABLES[group][0]
    _ask(nic, words)
    return words


def _ask(nic: str, buffer: array.array[int]) -> None:
    """Send one ethtool command; the answer comes in the buffer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        request = struct.pack("16sP", nic.encode()[:15], buffer.buffer_info()[0])
        try:
            fcntl.ioctl(channel, _SIOCETHTOOL, request)
        except OSError as error:
            raise OSError(error.errno, f"{os.strerror(error.errno or 0)} ({nic})") from error


def _absent(nic: str, name: str) -> tuple[int, list[tuple[int, int, int, int]]]:
    raise OSError(errno.EOPNOTSUPP, f"{nic} has no feature {name}")


def _features(nic: str) -> dict[str, tuple[int, list[tuple[int, int, int, int]]]]:
    """Return name → (bit, blocks of (available, requested, active, never changed)) of every offload."""
    count = array.array("I", [_STRING_COUNT, 0, 1 << _FEATURE_STRINGS, 0, 0])
    _ask(nic, count)
    total = count[4]
    strings = array.array("I", [0] * (3 + total * _STRING // 4))
    strings[0], strings[1], strings[2] = _GET_STRINGS, _FEATURE_STRINGS, total
    _ask(nic, strings)
    text = strings.tobytes()[12:]
    names = [
        text[at : at + _STRING].partition(b"\0")[0].decode("ascii", "replace") for at in range(0, len(text), _STRING)
    ]
    size = (total + 31) // 32
    state = array.array("I", [0] * (2 + 4 * size))
    state[0], state[1] = _GET_FEATURES, size
    _ask(nic, state)
    blocks = [(state[at], state[at + 1], state[at + 2], state[at + 3]) for at in range(2, 2 + 4 * size, 4)]
    return {name: (bit, blocks) for bit, name in enumerate(names) if name}


def _write_feature(nic: str, name: str, wanted: int) -> None:
    features = _features(nic)
    bit, blocks = features[name] if name in features else _absent(nic, name)
    available, _requested, active, fixed = blocks[bit // 32]
    mask = 1 << bit % 32
    if bool(active & mask) != bool(wanted) and (fixed & mask or not available & mask):
        raise OSError(errno.EPERM, f"{name} is fixed in {nic}")
    order = array.array("I", [0] * (2 + 2 * len(blocks)))
    order[0], order[1] = _SET_FEATURES, len(blocks)
    order[2 + 2 * (bit // 32)] = mask
    order[3 + 2 * (bit // 32)] = mask if wanted else 0
    _ask(nic, order)


def _systemctl(*words: str) -> str:
    if not os.path.isdir("/run/systemd/system"):  # noqa: PTH112  # stands alone, see above
        raise OSError(errno.ENODEV, "systemd does not run here")
    try:
        done = subprocess.run(
            ["systemctl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=SERVICE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise OSError(errno.ETIMEDOUT, f"systemd did not answer within {SERVICE_S:g} s") from error
    if done.returncode and words[0] not in ("is-active", "is-enabled"):
        raise OSError(errno.EIO, done.stderr.strip()[:200] or f"systemctl ended with {done.returncode}")
    return done.stdout.strip()


def _read_service(unit: str, item: str) -> str:
    if item == "active":
        return "active" if _systemctl("is-active", "--", unit) in ("active", "activating", "reloading") else "inactive"
    said = _systemctl("is-enabled", "--", unit)
    if said not in ("enabled", "disabled"):
        raise OSError(errno.EOPNOTSUPP, f"{unit} is {said or 'unknown'}, neither enabled nor disabled")
    return said


def _write_service(unit: str, item: str, value: str) -> None:
    verbs = {"active": {"active": "start", "inactive": "stop"}, "enabled": {"enabled": "enable", "disabled": "disable"}}
    verb = verbs[item].get(value)
    if verb is None:
        raise OSError(errno.EINVAL, f"it is {' or '.join(verbs[item])}")
    quietly = ("--no-reload",) if item == "enabled" else ()  # a reload takes GPUs from running containers
    _systemctl(verb, *quietly, "--", unit)


def _balancer() -> socket.socket:
    """Return a connection to a running irqbalance: to one of root's, for anyone may bind a socket of such a name.

    And let it lead elsewhere, or never take a connection: only the names that irqbalance uses count, nothing waits.
    """
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123  # stands alone
        names = re.findall(r" ((?:@|/run/irqbalance/+)irqbalance[0-9]+\.sock)$", file.read(), re.MULTILINE)
    busy = False
    for name in dict.fromkeys(names):
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.setblocking(False)
        try:
            channel.connect(re.sub("^@", "\0", name))
            peer = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", peer)[1] == 0:
                channel.settimeout(BALANCER_S)
                return channel
        except BlockingIOError:
            busy = True
        except OSError:
            pass  # one that has ended has left its socket behind
        channel.close()
    if busy:
        raise OSError(errno.EAGAIN, "irqbalance takes no connection now")
    raise OSError(errno.ENODEV, "irqbalance does not run here, or has no socket")


def _ask_balancer(command: str) -> str:
    """Send irqbalance a command and return what it answers until it hangs up."""
    with _balancer() as channel:
        who = struct.pack("3i", os.getpid(), os.getuid(), os.getgid())  # it listens to root only, and wants to be told
        channel.sendmsg([command.encode()], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, who)])
        said = b""
        while data := channel.recv(65536):
            said += data
    return said.decode("utf-8", "replace")


def _bans() -> set[int]:
    """Return the interrupts that irqbalance was told to leave alone."""
    told = _ask_balancer("setup")
    if "SLEEP" not in told:
        raise OSError(errno.EACCES, "irqbalance does not answer this user")
    return {int(number) for number in re.findall(r"\bIRQ ([0-9]+) ", told)}


def _write_ban(irq: int, value: str) -> None:
    if value not in ("yes", "no"):
        raise OSError(errno.EINVAL, "it is yes or no")
    bans = _bans() - {irq} | ({irq} if value == "yes" else set())
    command = "settings ban irqs " + (" ".join(str(number) for number in sorted(bans)) or "NONE")
    if len(command) >= _BANS_BYTES:
        raise OSError(errno.EMSGSIZE, "irqbalance takes no list that long")
    _ask_balancer(command)
