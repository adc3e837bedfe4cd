#!/usr/bin/python
# ruff: noqa: E402, PTH112, PTH116, PTH118, PTH123 -- documentation comes first; plain paths: it reads in bulk
"""Set managed settings of a host: kernel files, sysctls, interrupt affinity, cgroup limits, GPU power limits."""

from __future__ import annotations

DOCUMENTATION = r"""
module: unveil_setting
short_description: Set a list of kernel, cgroup and GPU settings
description:
  - Sets each address to its value, reads it back, and reports both. What means the same already is not written.
  - All are read before the first is written. When one cannot be written, those written before are put back.
  - Needs nothing but the standard library, and pynvml for nvml addresses, so that it works on any managed host.
options:
  settings:
    description: What to set, in this order.
    type: list
    elements: dict
    required: true
    suboptions:
      address:
        description: >-
          C(file:/sys/...), C(sysctl:NAME), C(irq:N/smp_affinity_list), C(cgroup:PATH/FILE), C(ethtool:NIC/ring/rx),
          C(nvml:UUID/power_limit), C(service:UNIT/active) or C(irqbalance:N/banned).
        type: str
        required: true
      value:
        description: >-
          Content to write; watts for a power limit. A choice as the kernel shows it stands for its selected word.
          Without it the setting is only read, and may be absent.
        type: str
      expect:
        description: Write only while it reads this; what someone else wrote since is left alone.
        type: str
  root:
    description: Where C(proc) and C(sys) are.
    type: path
    default: /
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: unveil maintainers
"""

EXAMPLES = r"""
- name: Write the settings of the plan
  unveil_setting:
    root: "{{ unveil_host_root | default('/') }}"
    settings: "{{ unveil_settings }}"
"""

RETURN = r"""
settings:
  description: Per setting, in the order given, its address, the contents before and after, and whether it was changed.
  type: list
  returned: always
"""

import os
import re
import time

from ansible.module_utils import unveil_device_settings as device_settings
from ansible.module_utils import unveil_gpu_settings as gpu_settings
from ansible.module_utils.basic import AnsibleModule

MAX_VALUE = 4096
POWER_TOLERANCE_W = 0.5
FILE = re.compile(r"/(?:sys|proc/sys|proc/irq)/[\w.,:@+=!/-]+", re.ASCII)
SYSCTL = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)+")
IRQ = re.compile(r"([0-9]{1,9})/(smp_affinity(?:_list)?)")
NVML = re.compile(r"((?:GPU|MIG)-[0-9A-Za-z-]{1,64})/(power_limit|persistence_mode|applications_clocks)")
ETHTOOL = re.compile(
    r"([\w.:@-]{1,15})/(ring/(?:rx|tx|rx-mini|rx-jumbo)(?:-max)?|channels/(?:rx|tx|other|combined)(?:-max)?"
    r"|coalesce/(?:(?:rx|tx)-(?:usecs|frames)(?:-irq)?|adaptive-(?:rx|tx))|feature/[a-z0-9][a-z0-9-]{1,31})",
    re.ASCII,
)
SERVICE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.@:-]{0,127}\.(?:service|timer|socket))/(active|enabled)")
CGROUP_FILE = re.compile(r"(?:cpu|cpuset|memory|io|blkio|pids|hugetlb)\.[A-Za-z0-9_.]{1,64}")
CHOICE = re.compile(r"(?:[\w+./-]+[ \t]+)*\[[\w+./-]+\](?:[ \t]+[\w+./-]+)*")
IDS = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?)*")
DEVICES = {"ethtool": ETHTOOL, "service": SERVICE, "irqbalance": re.compile(r"([0-9]{1,9})/(banned)")}
LIST_NAMES = ("_list", "cpulist", "cpuset.cpus", "cpuset.mems", ".effective_cpus", ".effective_mems")
MASK_NAMES = ("smp_affinity", "rps_cpus", "xps_cpus")


class SettingError(Exception):
    """A setting that cannot be read or written; the text says which and why."""


# --- where settings are -----------------------------------------------------------------------------------------------


def hierarchies(root):
    """Return (controllers, root, mount point, unified) of each mounted cgroup hierarchy."""
    found = []
    for process in ("self",) if root == "/" else ("1", "self"):
        try:
            with open(
                os.path.join(root, "proc", process, "mountinfo"), encoding="utf-8", errors="surrogateescape"
            ) as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            left, dash, right = line.partition(" - ")
            fields, rest = left.split(" "), right.split(" ")
            if dash and len(fields) > 5 and len(rest) > 2 and rest[0] in ("cgroup", "cgroup2"):
                names = [
                    re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), text) for text in fields[3:5]
                ]
                controllers = () if rest[0] == "cgroup2" else tuple(rest[2].split(","))
                found.append((controllers, names[0], names[1], rest[0] == "cgroup2"))
        break
    return found


def cgroup_base(root, controller):
    """Return the mount point of a controller's hierarchy, without the root."""
    mounted = hierarchies(root)
    chosen = [each for each in mounted if controller in each[0]] or [each for each in mounted if each[3]]
    if chosen:
        if chosen[0][1] != "/" and not chosen[0][1].startswith("/.."):
            raise SettingError("only the cgroups below %s are seen here" % ascii(chosen[0][1]))
        return chosen[0][2].lstrip("/")
    for base in ("sys/fs/cgroup/" + controller, "sys/fs/cgroup"):
        if os.path.isdir(os.path.join(root, base)):
            return base
    raise SettingError("no hierarchy with the controller %s is mounted" % controller)


def path_of(root, address):
    """Return the resolved path of an address, which stays below the places that may be changed."""
    scheme, _colon, rest = address.partition(":")
    parts = rest.split("/")
    if len(address) > 4096 or not address.isprintable() or ".." in parts or "." in parts or "//" in rest:
        raise SettingError("%s is no address" % ascii(address[:80]))
    places = ()
    if root == "/" and scheme in DEVICES:
        raise SettingError("%s is no file" % ascii(address[:80]))
    if scheme == "file" and FILE.fullmatch(rest):
        relative, places = rest, ("sys", "proc/sys", "proc/irq")
    elif scheme == "sysctl" and SYSCTL.fullmatch(rest):
        first = next(character for character in rest if character in "./")
        name = rest.translate({ord("."): "/", ord("/"): "."}) if first == "." else rest
        relative, places = "proc/sys/" + name, ("proc/sys",)
    elif scheme == "irq" and IRQ.fullmatch(rest):
        relative, places = "proc/irq/" + rest, ("proc/irq",)
    elif scheme in DEVICES and DEVICES[scheme].fullmatch(rest):  # below another root plain files stand for them
        relative, places = scheme + "/" + rest, (scheme,)
    elif scheme == "cgroup" and rest.startswith("/") and CGROUP_FILE.fullmatch(parts[-1]):
        base = cgroup_base(root, parts[-1].partition(".")[0])
        relative, places = base + rest, (base,)
    if not places:
        raise SettingError("%s is no address of a setting that may be changed" % ascii(address[:80]))
    real = os.path.realpath(os.path.join(root, relative.lstrip("/")))
    bases = [os.path.realpath(os.path.join(root, place)) for place in places]
    below_root = [real, *bases] if root != "/" else []
    inside = any(real.startswith(base.rstrip("/") + "/") for base in bases)
    if not inside or not all(path.startswith(root + "/") for path in below_root):
        raise SettingError("%s leads out of where anything may be changed, to %s" % (ascii(address[:80]), ascii(real)))
    return real


# --- what contents mean (the same rules as unveil/remediation/setting.py; a test holds the two together) --------------


def content(text):
    """Return what would be written to get a content: of a choice the selected word."""
    trimmed = text.strip()
    return trimmed[trimmed.index("[") + 1 : trimmed.index("]")] if CHOICE.fullmatch(trimmed) else trimmed


def ids(text):
    """Return the numbers in a list such as 0-3,8, None when it is none."""
    if not text:
        return frozenset()
    if not IDS.fullmatch(text):
        return None
    found = set()
    for part in text.split(","):
        first, _dash, last = part.partition("-")
        if int(last or first) >= 1 << 16:
            return None
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def mask(text):
    """Return a mask of CPUs as a number, None when it is none."""
    digits = text.replace(",", "")
    return int(digits, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,2048}", digits) else None


def watts(text):
    """Return watts, None for anything else."""
    return float(text) if re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", text) else None


def same_word(one, other):
    """Tell whether two words are the same, or the same number."""
    number = re.compile(r"[+-]?[0-9]{1,40}")
    return int(one) == int(other) if number.fullmatch(one) and number.fullmatch(other) else one == other


def equal(address, one, other):
    """Tell whether two contents of a setting mean the same."""
    first, second = content(one), content(other)
    if first == second:
        return True
    item = address.rpartition("/")[2]
    if item.endswith(LIST_NAMES):
        return ids(first) is not None and ids(first) == ids(second)
    if item in MASK_NAMES:
        return mask(first) is not None and mask(first) == mask(second)
    if item == "power_limit":
        power = (watts(first), watts(second))
        return None not in power and abs(power[0] - power[1]) <= POWER_TOLERANCE_W
    words, others = first.split(), second.split()
    if item == "cpu.max" and 1 in (len(words), len(others)):
        words, others = words[:1], others[:1]
    return len(words) == len(others) > 0 and all(map(same_word, words, others))


# --- reading and writing ----------------------------------------------------------------------------------------------


class Device:
    """A setting of a NIC, a GPU, a service or irqbalance, which is no file."""

    def __init__(self, scheme, key, item):
        self.names = (scheme, key, item)
        self.door = gpu_settings if scheme == "nvml" else device_settings

    def read(self):
        try:
            return self.door.read(*self.names)
        except OSError as error:
            raise SettingError("cannot be read: %s" % error.strerror) from error

    def write(self, value):
        try:
            self.door.write(*self.names, value)
        except OSError as error:
            raise SettingError("cannot be written as %s: %s" % (ascii(value[:80]), error.strerror)) from error


class KernelFile:
    """One file of procfs, sysfs or cgroupfs, or a plain one that stands for it below another root."""

    def __init__(self, path, live):
        self.path, self.live = path, live

    def read(self):
        return self._raw().decode("utf-8", "surrogateescape").rstrip("\n")

    def _raw(self):
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                return os.read(descriptor, 1 << 16)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SettingError("cannot be read: %s" % error.strerror) from error

    def write(self, value):
        before = b"" if self.live else self._raw()
        text = (value or "\n") if self.live else value  # of nothing, the kernel is told nothing
        if 0 < len(before) == (0 if self.live else os.stat(self.path).st_size):
            text = self._as_the_kernel_shows(before.decode("utf-8", "surrogateescape"), value)
        try:
            flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self.path, flags)
            try:
                os.write(descriptor, text.encode("utf-8", "surrogateescape"))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SettingError("cannot be written as %s: %s" % (ascii(value[:80]), error.strerror)) from error

    @staticmethod
    def _as_the_kernel_shows(before, value):
        trimmed, end = before.strip(), "\n" if before.endswith("\n") else ""
        words = [word.strip("[]") for word in trimmed.split()] if CHOICE.fullmatch(trimmed) else []
        if value in words:
            return " ".join("[%s]" % word if word == value else word for word in words) + end
        return value + end


def place_of(root, address):
    """Return what reads and writes an address."""
    scheme, _colon, rest = address.partition(":")
    found = {"nvml": NVML, **DEVICES}[scheme].fullmatch(rest) if scheme == "nvml" or scheme in DEVICES else None
    if found and (root == "/" or scheme == "nvml"):
        return Device(scheme, *found.groups())
    return KernelFile(path_of(root, address), root == "/")


def write_all(module, items):
    """Write each item that differs, read it back, and put everything back when one fails."""
    for item in items:
        if not item["changed"]:
            continue
        try:
            if not equal(item["address"], item["place"].read(), item["wanted"]):  # a coupled one may have followed
                item["place"].write(item["wanted"])
            if not equal(item["address"], settled(item), item["wanted"]):
                read = ascii(item["after"][:200])
                raise SettingError("was written as %s and reads %s" % (ascii(item["wanted"]), read))
        except SettingError as error:
            undone = put_back(items[: items.index(item) + 1])
            said = "%s %s; %s" % (item["address"], error, undone)
            module.fail_json(msg=said, settings=list(map(answer, items)), changed=False)


def settled(item):
    """Look at what was written until it reads so: for a moment, an interrupt that moves reads as before."""
    for pause_s in (0, 0.001, 0.005, 0.02, 0.08):
        time.sleep(pause_s)
        item["after"] = item["place"].read()
        if equal(item["address"], item["after"], item["wanted"]):
            break
    return item["after"]


def put_back(items):
    """Put back what was written before a failure, newest first; return what became of it as text."""
    bad = []
    for item in reversed(items):
        if not item["changed"]:
            continue
        try:
            if not equal(item["address"], item["place"].read(), item["before"]):
                item["place"].write(content(item["before"]))
            item["after"] = item["place"].read()
        except SettingError as error:
            bad.append("%s %s" % (item["address"], error))
    return "NOT put back: " + "; ".join(bad) if bad else "what was written before was put back"


def answer(item):
    """Return what is told about a setting."""
    return {name: item[name] for name in ("address", "before", "after", "changed")}


def difference(item):
    """Return a change as Ansible shows it."""
    names = {"before_header": item["address"], "after_header": item["address"]}
    return {**names, "before": item["before"] + "\n", "after": item["after"] + "\n"}


def look(root, each):
    """Return what a setting reads and would become; one without a value is only read, and may be absent."""
    address, wanted = each["address"], each["value"]
    if wanted is not None:
        wanted = content(wanted)
        if len(wanted) > MAX_VALUE or not wanted.isprintable():
            raise SettingError("its value is too long or cannot be printed")
    place = before = None
    try:
        place = place_of(root, address)
        before = place.read()
    except SettingError:
        if wanted is not None:
            raise
    changed = wanted is not None and not equal(address, before, wanted)
    if changed and each["expect"] is not None and not equal(address, before, each["expect"]):
        changed = False  # someone else has written it since: theirs is left alone
    after = wanted if changed else before
    return dict(address=address, wanted=wanted, before=before, after=after, changed=changed, place=place)  # noqa: C408


def main():
    """Run the module."""
    setting = {"address": {"type": "str", "required": True}, "value": {"type": "str"}, "expect": {"type": "str"}}
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "list", "elements": "dict", "required": True, "options": setting},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root = os.path.realpath(module.params["root"])
    items = []
    for each in module.params["settings"]:
        try:
            items.append(look(root, each))
        except SettingError as error:
            module.fail_json(msg="%s: %s; nothing was changed" % (ascii(each["address"][:200]), error))
    if not module.check_mode:
        write_all(module, items)
    changed = [item for item in items if item["changed"]]
    module.exit_json(changed=bool(changed), settings=list(map(answer, items)), diff=list(map(difference, changed)))


if __name__ == "__main__":
    main()
