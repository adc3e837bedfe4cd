"""Every check that a knowledge base has to pass: its id, what it asks, and why. One line of sight for ``kb lint``.

The code of the checks is in `unveil/knowledge/rules`; what stands here is what ``--list-checks`` and ``--explain``
print. Ids are for ever: a check that goes leaves its number unused.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.knowledge.yaml_positions import Document, Ignore, Path

_ERROR, _WARNING, _INFO = Gravity.ERROR, Gravity.WARNING, Gravity.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        silenceable: whether ``# unveil-ignore: ID reason`` silences it. What keeps a host safe is not.
    """

    id: str
    title: str
    explanation: str
    gravity: Gravity = Gravity.ERROR
    silenceable: bool = False


def _check(id_: str, gravity: Gravity, title: str, explanation: str, *, silenceable: bool = False) -> Check:
    return Check(id=id_, title=title, explanation=explanation, gravity=gravity, silenceable=silenceable)


_LOAD = (
    _check("K001", _ERROR, "not YAML", "The file is not one YAML 1.2 document in UTF-8."),
    _check(
        "K002", _ERROR, "duplicate key",
        "A key stands twice in one mapping. Most readers silently keep the last one; here the file is refused.",
    ),
    _check(
        "K003", _ERROR, "scalar that YAML 1.1 and 1.2 read differently",
        "on, no, 012, 1:30, 1_000 and unquoted dates mean one thing to YAML 1.1 and another to YAML 1.2. Quote text, "
        "write true or false, drop leading zeros. An unquoted date is read as text and is only a warning.",
        silenceable=True,
    ),
    _check("K004", _ERROR, "unknown key", "The format has no such key. None is ignored: a typo would be, too."),
    _check("K005", _ERROR, "not what the format says", "A value has the wrong type, is out of bounds or is missing."),
    _check(
        "K006", _ERROR, "tab, control or direction-changing character",
        "Such characters make a file read differently from how it looks, or send escape codes to a terminal.",
    ),
    _check(
        "K007", _ERROR, "too many values",
        "Aliases, once followed, or nesting make more values than an honest file has (an alias bomb).",
    ),
    _check(
        "K008", _ERROR, "file that is not read",
        "Files over one megabyte, what is beyond a hundred in all, symbolic links that leave the knowledge base, pipes "
        "and devices are not read.",
    ),
    _check(
        "K009", _WARNING, "writable by everyone",
        "Whoever can write the knowledge base decides what runs as root. Take the permission away: chmod o-w.",
    ),
    _check(
        "K010", _ERROR, "ignore comment that cannot hold",
        "An ignore names one check that may be silenced, and says why: # unveil-ignore: K301 reason.",
    ),
    _check("K011", _ERROR, "no knowledge base", "The folder lacks fingerprints/ or playbooks/, or has no fingerprint."),
    _check(
        "K012", _WARNING, "file that nobody reads",
        "Only names that end in .yml count, below fingerprints/, playbooks/NAME/ and inventory/.", silenceable=True,
    ),
    _check("K013", _INFO, "ignore comment that silences nothing", "The finding is gone: remove the comment."),
)  # fmt: skip

_IDENTITY = (
    _check(
        "K101", _ERROR, "id is not a UUIDv4",
        "The id outlives renames and is never used again. Make one: python3 -c 'import uuid; print(uuid.uuid4())'.",
    ),
    _check(
        "K104", _WARNING, "id that changed hands",
        "An id is never used again: whoever looks for the old one would find another. Told with --against REVISION.",
        silenceable=True,
    ),
    _check("K102", _ERROR, "id or name used twice", "Names and ids are unique over the whole knowledge base."),
    _check(
        "K103", _ERROR, "name and place differ",
        "A fingerprint lies in fingerprints/SUBSYSTEM/NAME.yml, a remediation in playbooks/NAME/remediation.yml.",
    ),
    _check("K107", _WARNING, "title used twice", "Two titles that read alike cannot be told apart.", silenceable=True),
    _check(
        "K108", _WARNING, "status that skips or goes back",
        "experimental, test, stable, deprecated: in this order. Whoever proves a fingerprint on real hosts takes it "
        "one step further. Told with --against REVISION.", silenceable=True,
    ),
    _check(
        "K109", _WARNING, "deprecated without a successor",
        "Say in metadata.replaced_by which fingerprint sees it now, or none.", silenceable=True,
    ),
    _check(
        "K110", _WARNING, "no owner", "Someone answers for its false alarms: name a team in owner.", silenceable=True
    ),
)  # fmt: skip

_SIGNATURE = (
    _check("K201", _ERROR, "clause not used", "A clause that the condition does not name does nothing."),
    _check("K202", _ERROR, "condition names an unknown clause", "Every name and pattern must meet a clause."),
    _check("K203", _ERROR, "unknown feature", "The catalogue has no such feature, so it would be unknown for ever."),
    _check(
        "K205", _WARNING, "threshold out of range",
        "A share lies between 0 and 1, so this clause is always or never true.", silenceable=True,
    ),
    _check(
        "K206", _ERROR, "condition that always or never holds",
        "Its clauses are laid on one line for each thing that they ask about, and all combinations are tried.",
        silenceable=True,
    ),
    _check(
        "K207", _WARNING, "comparison that says nothing",
        "At the end of what a feature can be, a clause always or never holds; and what is measured equals a number "
        "only by chance.", silenceable=True,
    ),
    _check(
        "K208", _WARNING, "for is no whole number of seconds",
        "Windows come each second; shorter steps cannot be told.", silenceable=True,
    ),
    _check(
        "K209", _ERROR, "acts by itself on what is merely unusual here",
        "Only this host's own past says that something is wrong. Before a fix runs by itself a fact or a limit has to "
        "say so, too.",
    ),
    _check(
        "K210", _WARNING, "one clause, and yet a fix",
        "A symptom alone is a guess, a setting alone may cost nothing. Ask for both before something is changed.",
        silenceable=True,
    ),
    _check(
        "K211", _WARNING, "two fingerprints of one signature", "Both fire at once, and both ask for a fix.",
        silenceable=True,
    ),
    _check("K212", _ERROR, "shares that cannot add up", "The shares of one window are at most one together.",
           silenceable=True),
    _check(
        "K213", _WARNING, "decided by a tenant's text",
        "Who names a container decides whether it matches: no fault hides behind that, and no fix should follow it.",
        silenceable=True,
    ),
    _check(
        "K214", _WARNING, "number that a site would choose",
        "A fix that writes 10 everywhere fits one site. Make it a variable from site.NAME, with the number as its "
        "default. -1, 0 and 1 are switches.", silenceable=True,
    ),
    _check("K216", _ERROR, "unknown fact", "The catalogue has no such fact, so it would be unknown for ever."),
    _check(
        "K217", _ERROR, "condition cannot be read",
        "A condition joins clause names with and, or, not, parentheses, N of PATTERN and all of PATTERN.",
    ),
    _check(
        "K218", _ERROR, "operator does not fit the fact",
        "Numbers are compared with lt lte gt gte eq neq, everything else with eq neq in not_in and its own type.",
    ),
    _check(
        "K219", _ERROR, "wrong entity",
        "A feature of NICs has no value for a cgroup. Group by the entity that has it, or use a host-level one.",
    ),
    _check(
        "K220", _ERROR, "comparison that cannot be made",
        "A slope and a ratio are compared with numbers, a ratio also with that of the peers. A host has no peers. What "
        "is divided by is of the same entity or of the host.",
    ),
)  # fmt: skip

_CORRELATION = (
    _check(
        "K221", _ERROR, "correlation that cannot hold",
        "temporal and temporal_ordered are about at least two fingerprints; value_count and event_count need a "
        "condition, and field is for value_count.",
    ),
)  # fmt: skip

_METADATA = (
    _check(
        "K301", _ERROR, "no false positives named",
        "Every signature has benign look-alikes. Say which, so that the person on call can rule them out.",
        silenceable=True,
    ),
    _check(
        "K302", _WARNING, "reference that changes",
        "A link to a branch shows another text after the next commit. Name a commit or a tag.", silenceable=True,
    ),
    _check("K303", _WARNING, "description says nothing", "Say what is wrong, why it costs and how it shows.",
           silenceable=True),
    _check(
        "K304", _WARNING, "critical but not proven",
        "Level critical wakes people up; it is for fingerprints of status stable.", silenceable=True,
    ),
)  # fmt: skip

_LINKS = (
    _check("K401", _ERROR, "link to nothing", "A fingerprint, remediation or clause is named that does not exist."),
    _check(
        "K402", _ERROR, "fingerprint and remediation do not fit",
        "Both name each other, and each variable comes from something that a match of the fingerprint binds.",
    ),
    _check("K403", _WARNING, "orphan remediation", "No fingerprint leads to it.", silenceable=True),
    _check(
        "K404", _WARNING, "filter expired or about to",
        "An exception that outlived its reason hides faults. Remove it or renew it with a new date.", silenceable=True,
    ),
    _check(
        "K405", _ERROR, "folder without remediation.yml",
        "Each folder of playbooks/ but modules/ is one remediation. A half-copied tree looks like this, too.",
    ),
    _check(
        "K407", _WARNING, "fixes that undo each other",
        "Two fixes write one setting differently for different faults. When mending one fault brings the other, they "
        "take turns for ever, as far as cooldown and attempts let them.", silenceable=True,
    ),
    _check("K406", _ERROR, "site value missing", "Give it in inventory/values.yml, or give the variable a default."),
)  # fmt: skip

_SAFETY = (
    _check(
        "K501", _ERROR, "automatic without the safeguards",
        "mode auto needs status stable, a reversible change, no interrupted workload, no reboot, rollback when "
        "verification fails, and a limit on hosts.",
    ),
    _check("K502", _ERROR, "verification cannot finish", "verify.within covers settings_hold_for and "
           "fingerprint_clear_for, and something that must improve or clear is named."),
    _check(
        "K503", _WARNING, "changes what no setting names",
        "The engine saves and puts back what is under settings. What a playbook writes beside that stays after a "
        "rollback: say why that is right, or declare it.", silenceable=True,
    ),
    _check(
        "K505", _ERROR, "timeout shorter than the waits",
        "until waits retries times delay, wait_for its timeout. A run that is cut off in the middle is undone.",
    ),
    _check(
        "K504", _ERROR, "playbook missing or outside",
        "ansible.apply is a file in the remediation's own folder, not a link out of it.",
    ),
    _check("K506", _ERROR, "cooldown shorter than verification", "The next attempt would disturb the judgement."),
    _check(
        "K507", _ERROR, "text without a pattern",
        "A variable of type string or list that reaches a setting's address, its value or the playbook needs a "
        "pattern that its whole text must match.",
    ),
    _check(
        "K508", _ERROR, "untrusted text used",
        "Tenants choose the names of their cgroups, containers and jobs. Such text is shown only: it may stand in "
        "the message of a debug task, and nowhere else.",
    ),
    _check("K509", _ERROR, "pattern cannot be used", "The pattern of a variable is a Python regular expression, "
           "without a repetition of nothing but a repetition: a tenant's name would keep the watcher busy for ever."),
    _check("K510", _ERROR, "default breaks its own rule", "The default has the variable's type and obeys its bounds."),
    _check("K511", _ERROR, "unknown variable in a setting", "Addresses and values use declared variables, and item "
           "where for_each is given."),
)  # fmt: skip

_PLAYBOOK = (
    _check("K600", _ERROR, "not a playbook", "A playbook is a list of plays, each with hosts and tasks."),
    _check("K601", _ERROR, "gathers facts", "gather_facts: false. It costs seconds, and values are resolved before."),
    _check(
        "K602", _ERROR, "no honest check mode",
        "command, shell and raw do nothing in a dry run, so nobody sees what they would do. Write a module, or declare "
        "a setting.",
    ),
    _check(
        "K603", _ERROR, "look that a dry run leaves out",
        "A command that only looks (changed_when: false) needs check_mode: false, or a dry run goes on without it.",
    ),
    _check(
        "K604", _ERROR, "may hang, hide or reboot",
        "ignore_errors, async, pause, prompts and reboots make the outcome of a run unknowable.",
    ),
    _check("K605", _ERROR, "plays on hosts it was not asked to", "hosts comes from the run, never all or a pattern."),
    _check(
        "K606", _WARNING, "settings written in several steps",
        "One call of unveil_setting writes all of a plan or puts back what it wrote; between two calls half a change "
        "can stand. Pass the whole list, or give the block that holds them a rescue.",
    ),
    _check(
        "K607", _ERROR, "module from elsewhere",
        "Modules are written in full (ansible.builtin.NAME), or are our own from playbooks/modules.",
    ),
    _check("K608", _ERROR, "braces in a condition", "when is an expression already. With braces, what a variable holds "
           "is evaluated, too: text becomes code."),
    _check("K609", _ERROR, "loads what is not in the file", "Roles, includes and variable files are not checked, so "
           "they are not used: a remediation is one file."),
    _check("K610", _ERROR, "acts on another host", "delegate_to, local_action and connection escape the run's limits."),
    _check(
        "K699", _WARNING, "found by ansible-lint",
        "Told with --ansible-lint where ansible-lint is installed: its rule's name stands in the finding. Silence it "
        "in the playbook, as ansible-lint has it: # noqa: RULE.",
    ),
    _check("K611", _ERROR, "downloads", "A fix that needs the network fails when the network is the fault."),
)  # fmt: skip

_PACK = (
    _check(
        "K701", _WARNING, "not as it was packed",
        "A file of an installed pack was edited, added or taken away: the next installation undoes that. Change the "
        "source, pack and install it.", silenceable=True,
    ),
    _check(
        "K705", _WARNING, "nobody reviews it",
        "The repository has a CODEOWNERS, and no line of it names an owner for this path.", silenceable=True,
    ),
)  # fmt: skip

_TESTS = (
    _check("K702", _ERROR, "series cannot be read", "VALUExCOUNT, START+STEPxCOUNT and _ for missing, with blanks "
           "between: \"0.4x10\", \"0+10x20\", \"_x3 1\"."),
    _check("K706", _ERROR, "case with a recording is wrong", "A case that names a recording is about a stretch of it, "
           "{file, from, to} in seconds after it began, and makes nothing up beside it."),
    _check("K707", _WARNING, "stable without a proof", "A case expects it on a recording, or metadata: {proof: "
           "FILE::TEST} names the test that saw it on a real kernel."),
    _check(
        "K704", _WARNING, "fingerprint not tested",
        "Beside NAME.yml stands NAME.test.yml with a case that matches and one that does not.", silenceable=True,
    ),
)  # fmt: skip

CHECKS: dict[str, Check] = {
    check.id: check
    for check in (
        *_LOAD, *_IDENTITY, *_SIGNATURE, *_CORRELATION, *_METADATA, *_LINKS, *_SAFETY, *_PLAYBOOK, *_PACK, *_TESTS,
    )
}  # fmt: skip

TOLD_LATER = frozenset(("K104", "K108", "K701", "K705"))
"""Of a revision, or of what stands around: told by lint alone, so the loader cannot know an idle ignore of them."""


def finding(check: str, document: Document, path: Path, what: str, hint: str = "", *, on_key: bool = False) -> Problem:
    """Return a problem at the place of a value (or of its key) in a document, as grave as its check is."""
    line, column = document.at_key(path) if on_key else document.at(path)
    return Problem(
        file=document.file, line=line, column=column, check=check, what=what, hint=hint, gravity=CHECKS[check].gravity
    )


def file_finding(check: str, file: str, what: str, hint: str = "") -> Problem:
    """Return a problem that is about a whole file or folder."""
    return Problem(file=file, line=1, column=1, check=check, what=what, hint=hint, gravity=CHECKS[check].gravity)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``did you mean …?`` for a misspelt name, empty when nothing is near."""
    text, names = str(name), list(known)
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.6)
    # gpu_uuid and gpu are far apart by letters, and yet it is plain what was meant.
    close = close or [each for each in names if len(each) > 2 and (text.startswith(each) or each.startswith(text))]
    return f"did you mean {close[0]}?" if close and text else ""


def silence(document: Document, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Apply the ignore comments of a document to its problems, and report comments that cannot hold."""
    remaining = list(problems)
    for ignore in document.ignores:
        check = CHECKS.get(ignore.check)
        if check is None or not check.silenceable:
            what = f"{ignore.check or 'no check'} cannot be silenced" if check else f"no check {ignore.check!r}"
            hint = "mend the finding" if check else nearest(ignore.check, CHECKS)
            remaining.append(_about(document, ignore, "K010", what, hint))
        elif not ignore.reason:
            hint = f"# unveil-ignore: {check.id} why it is right here"
            remaining.append(_about(document, ignore, "K010", "the ignore gives no reason", hint))
        else:
            kept = [each for each in remaining if not _covered(each, ignore)]
            if len(kept) == len(remaining) and check.id not in TOLD_LATER:
                kept.append(_about(document, ignore, "K013", f"there is no {check.id} here to silence"))
            remaining = kept
    return tuple(remaining)


def unsilenced(document: Document, problems: Iterable[Problem]) -> list[Problem]:
    """Return what was told later (`TOLD_LATER`) about a document and is not silenced in it."""
    ignores = [ignore for ignore in document.ignores if ignore.reason]
    return [each for each in problems if not any(_covered(each, ignore) for ignore in ignores)]


def _covered(problem: Problem, ignore: Ignore) -> bool:
    return problem.check == ignore.check and (0 in ignore.lines or problem.line in ignore.lines)


def _about(document: Document, ignore: Ignore, check: str, what: str, hint: str = "") -> Problem:
    return replace(file_finding(check, document.file, what, hint), line=ignore.line, column=ignore.column)
