"""Checks of a remediation's playbook: it does what its remediation says, on the host it is told, and ends.

A static look at one file. Whatever would need more than one file to judge (roles, includes) is refused instead.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import finding
from unveil.knowledge.parse import duration_s
from unveil.knowledge.rules.names import look_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem

# Ansible's keywords of tasks, blocks and handlers; what else a task holds is its module.
# Source: docs.ansible.com, "Playbook Keywords" (ansible-core 2.19).
_TASK_KEYWORDS = """
    action any_errors_fatal args async become become_exe become_flags become_method become_user block changed_when
    check_mode collections connection debugger delay delegate_facts delegate_to diff environment failed_when handlers
    ignore_errors ignore_unreachable listen local_action loop loop_control module_defaults name no_log notify poll port
    register remote_user rescue always retries run_once tags throttle timeout until vars when
"""
_KEYWORDS = frozenset(_TASK_KEYWORDS.split())
_SETTINGS_MODULE = "unveil_setting"
_LISTS = ("pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always")
_BUILTIN = "ansible.builtin."
_STOPS = frozenset(("pause", "reboot", "async_status", "wait_for_connection"))
_LOADS = frozenset(
    ("include_vars", "include_tasks", "import_tasks", "include_role", "import_role", "import_playbook", "script")
)
_FETCHES = frozenset(("get_url", "uri", "apt", "apt_repository", "dnf", "dnf5", "package", "pip", "git", "subversion",
                      "yum_repository", "rpm_key", "apt_key", "deb822_repository"))  # fmt: skip
_UNCHECKED = frozenset(("command", "shell", "raw", "expect"))
_WRITES = frozenset(("copy", "template", "file", "lineinfile", "blockinfile", "replace", "assemble", "unarchive",
                     "user", "group", "cron", "hostname", "iptables", "service", "systemd", "systemd_service",
                     "sysvinit", "known_hosts", "authorized_key"))  # fmt: skip
_EVERYWHERE = re.compile(r"(?:^|[:,])\s*[!&]?\s*(?:all|\*|ungrouped)\s*(?:$|[:,])")
_NAME = re.compile(r"(?<![.\w'\"])[A-Za-z_]\w*")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_BARE_EXPRESSIONS = frozenset(("when", "changed_when", "failed_when", "until", "that", "var"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Playbook:
    document: Document
    remediation: Document
    variables: Mapping[str, Mapping[str, Any]]
    modules: frozenset[str]


def playbook_path(remediation: Document, relative: str) -> str | None:
    """Return the path of a remediation's playbook below the knowledge base, None when it leads out of its folder."""
    apply = str(remediation.data["ansible"]["apply"])
    folder = posixpath.dirname(relative)
    path = posixpath.normpath(posixpath.join(folder, apply))
    return path if path.startswith(f"{folder}/") and not apply.startswith("/") else None


def check_playbook(document: Document, remediation: Document, modules: frozenset[str]) -> Iterator[Problem]:
    """Yield what is wrong with a playbook.

    Args:
        document: the playbook, read with ``ours=False``.
        remediation: what it belongs to; untamed variables (K507) are told there.
        modules: names of the knowledge base's own Ansible modules.
    """
    if not isinstance(document.data, list) or not document.data:
        yield finding("K600", document, (), "a playbook is a list of plays")
        return
    book = _Playbook(
        document=document,
        remediation=remediation,
        variables=remediation.data.get("variables", {}),
        modules=modules,
    )
    for index, play in enumerate(document.data):
        if not isinstance(play, dict) or "hosts" not in play:
            yield finding("K600", document, (index,), "a play has hosts")
            continue
        yield from _play(book, (index,), play)
    yield from _variables(book)
    yield from _several_writes(document)
    waits_s = sum(_waits_s(document.data, path) for path in document.paths())
    if waits_s > duration_s(remediation.data["ansible"]["timeout"]):
        what = f"the playbook may wait {waits_s:g} s, longer than {remediation.data['ansible']['timeout']}"
        yield finding("K505", remediation, ("ansible", "timeout"), what)


def _several_writes(document: Document) -> Iterator[Problem]:
    """Yield calls that write settings although others have written some, and nothing puts those back (K606)."""
    paths = [path for path in document.paths() if path[-1:] == (_SETTINGS_MODULE,) and not _is_rescued(document, path)]
    for at, path in enumerate(paths):
        task = look_up(document.data, path[:-1])
        looped = isinstance(task, dict) and any(key == "loop" or str(key).startswith("with_") for key in task)
        if at or looped:
            what = "settings are written one after the other: when one fails, those before it stand"
            yield finding("K606", document, path, what, "one call, with the whole list", on_key=True)


def _is_rescued(document: Document, path: Path) -> bool:
    """Return whether a task stands in a block with a rescue, or in what puts things back."""
    around = [(path[:at], key) for at, key in enumerate(path) if key in ("block", "rescue", "always")]
    return any(key != "block" or "rescue" in look_up(document.data, holder) for holder, key in around)


def _waits_s(data: Any, path: Path) -> float:
    """Return the longest that a value makes a run wait by its own account."""
    match path:
        case (*_, "until"):
            task = look_up(data, path[:-1])
            return _seconds(task.get("retries", 3)) * _seconds(task.get("delay", 5))
        case (*_, "ansible.builtin.wait_for"):
            arguments = look_up(data, path)
            return _seconds(arguments.get("timeout", 300)) if isinstance(arguments, dict) else 0.0
    return 0.0


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _play(book: _Playbook, path: Path, play: Mapping[str, Any]) -> Iterator[Problem]:
    document = book.document
    if play.get("gather_facts") is not False:
        at = (*path, "gather_facts") if "gather_facts" in play else path
        yield finding("K601", document, at, "facts are gathered", "gather_facts: false")
    hosts = play["hosts"]
    for host in hosts if isinstance(hosts, list) else [hosts]:
        if _EVERYWHERE.search(str(host)):
            yield finding("K605", document, (*path, "hosts"), f"hosts: {host} takes more than the run's host")
    for key, check, what in (
        ("vars_prompt", "K604", "a prompt waits for ever"),
        ("ignore_errors", "K604", "ignore_errors hides failures"),
        ("roles", "K609", "roles are not checked"),
        ("vars_files", "K609", "variable files are not checked"),
        ("connection", "K610", "the connection is the run's to choose"),
    ):
        if key in play:
            yield finding(check, document, (*path, key), what, on_key=True)
    yield from _tasks(book, path, play)


def _tasks(book: _Playbook, path: Path, holder: Mapping[str, Any]) -> Iterator[Problem]:
    for key in _LISTS:
        tasks = holder.get(key)
        for index, task in enumerate(tasks if isinstance(tasks, list) else ()):
            place = (*path, key, index)
            if not isinstance(task, dict):
                yield finding("K600", book.document, place, "a task is a mapping")
                continue
            yield from _task(book, place, task)
            yield from _tasks(book, place, task)


def _task(book: _Playbook, path: Path, task: Mapping[str, Any]) -> Iterator[Problem]:
    document = book.document
    for key, check, what in (
        ("ignore_errors", "K604", "ignore_errors hides failures"),
        ("ignore_unreachable", "K604", "ignore_unreachable hides failures"),
        ("async", "K604", "async lets the run end before the change does"),
        ("delegate_to", "K610", "delegate_to acts on another host"),
        ("local_action", "K610", "local_action acts on the controller"),
        ("connection", "K610", "the connection is the run's to choose"),
        ("action", "K607", "action hides the module's name"),
    ):
        if key in task and task[key] not in (False, None):
            yield finding(check, document, (*path, key), what, on_key=True)
    for module in task:
        if module not in _KEYWORDS and not str(module).startswith("with_"):
            yield from _module(book, (*path, module), str(module), task)
    for index, condition in enumerate(_listed(task.get("when"))):
        if isinstance(condition, str) and _EXPRESSION.search(condition):
            at = (*path, "when", index) if isinstance(task["when"], list) else (*path, "when")
            what = "a condition is an expression already: braces in it are evaluated twice"
            yield finding("K608", document, at, what, "leave the braces out")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _module(book: _Playbook, path: Path, module: str, task: Mapping[str, Any]) -> Iterator[Problem]:
    document = book.document
    short = module.removeprefix(_BUILTIN)
    if module in book.modules:
        return
    if module == short or "." in short:
        hint = f"write {_BUILTIN}{module}" if "." not in module else "ansible.builtin or playbooks/modules"
        yield finding("K607", document, path, f"module {module!r} is not one of ours", hint, on_key=True)
    if short in _STOPS:
        yield finding("K604", document, path, f"{short} makes the outcome of a run unknowable", on_key=True)
    elif short in _LOADS:
        yield finding("K609", document, path, f"{short} loads what is not checked", "one file", on_key=True)
    elif short in _FETCHES:
        yield finding("K611", document, path, f"{short} needs the network", on_key=True)
    elif short in _UNCHECKED:
        yield from _unchecked(document, path, short, task)
    elif short in _WRITES:
        what = f"{short} changes what no setting names, so it is neither saved nor put back"
        yield finding(
            "K503", document, path, what, "a setting and unveil_setting, or say in an ignore why", on_key=True
        )


def _unchecked(document: Document, path: Path, short: str, task: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a command that a dry run does not show, or a look that a dry run leaves out."""
    if task.get("changed_when") is not False:
        what = f"{short} has no honest check mode: a dry run does not show what it would do"
        yield finding("K602", document, path, what, "a module of our own in playbooks/modules", on_key=True)
    elif task.get("check_mode") is not False:
        what = f"{short} is left out of a dry run, and what depends on it is wrong there"
        yield finding("K603", document, path, what, "check_mode: false, for a command that only looks", on_key=True)


def _variables(book: _Playbook) -> Iterator[Problem]:
    """Yield variables that reach the playbook untamed (K507) or at all though a tenant chose them (K508)."""
    told: set[str] = set()
    for path in book.document.paths():
        value = look_up(book.document.data, path)
        if not isinstance(value, str):
            continue
        for name in sorted(_used(path, value) & set(book.variables)):
            variable = book.variables[name]
            if variable.get("untrusted", False):
                if not _is_message(path):
                    what = f"{name!r} is text that a tenant chose: it may only be shown"
                    yield finding("K508", book.document, path, what, "ansible.builtin.debug: msg")
            elif variable["type"] in ("string", "list") and "pattern" not in variable and name not in told:
                told.add(name)
                what = f"{name!r} is {variable['type']} without a pattern and reaches the playbook"
                at = ("variables", name)
                yield finding("K507", book.remediation, at, what, "pattern: what its text may be", on_key=True)


def _used(path: Path, text: str) -> set[str]:
    """Return the names in the expressions of a value; of ``when`` and its like the whole value is one."""
    keys = [key for key in path if isinstance(key, str)]
    bare = bool(keys) and keys[-1] in _BARE_EXPRESSIONS
    parts = [text] if bare else ["".join(found) for found in _EXPRESSION.findall(text)]
    return {name for part in parts for name in _NAME.findall(part)} | (
        {name for part in parts for name in re.findall(r"vars\[['\"](\w+)['\"]\]", part)}
    )


def _is_message(path: Path) -> bool:
    return path[-2:] in ((f"{_BUILTIN}debug", "msg"), (f"{_BUILTIN}fail", "msg"))
