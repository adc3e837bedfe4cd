"""A playbook stays on its host, ends, and does nothing that is not checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PLAYBOOK = "playbooks/raise_quota/apply.yml"

TWICE = """\
    - name: Write the settings again
      unveil_setting:
        settings: "{{ unveil_settings }}"
    - name: Say"""
RESCUED = """\
    - name: One after the other, and back when one fails
      block:
        - name: Write the first ones
          unveil_setting:
            settings: "{{ unveil_settings[:1] }}"
        - name: Write the others
          unveil_setting:
            settings: "{{ unveil_settings[1:] }}"
      rescue:
        - name: Put back what was there
          unveil_setting:
            settings: []
"""

MISTAKES = [
    (PLAYBOOK, "gather_facts: false", "gather_facts: true", [
        "4:17: error K601: facts are gathered (gather_facts: false)",
    ]),
    (PLAYBOOK, "  gather_facts: false\n", "", [
        "2:3: error K601: facts are gathered (gather_facts: false)",
    ]),
    (PLAYBOOK, "\"{{ unveil_target | default('localhost') }}\"", "all", [
        "3:10: error K605: hosts: all takes more than the run's host",
    ]),
    (PLAYBOOK, "      unveil_setting:", "      ignore_errors: true\n      unveil_setting:", [
        "7:7: error K604: ignore_errors hides failures",
    ]),
    (PLAYBOOK, "ansible.builtin.debug:", "ansible.builtin.pause:", [
        "10:7: error K604: pause makes the outcome of a run unknowable",
        "11:14: error K508: 'tenant' is text that a tenant chose: it may only be shown (ansible.builtin.debug: msg)",
    ]),
    (PLAYBOOK, "ansible.builtin.debug:\n        msg", "ansible.builtin.shell:\n        cmd", [
        ("10:7: error K602: shell has no honest check mode: a dry run does not show what it would do "
         "(a module of our own in playbooks/modules)"),
        "11:14: error K508: 'tenant' is text that a tenant chose: it may only be shown (ansible.builtin.debug: msg)",
    ]),
    (PLAYBOOK, "unveil_setting:\n", "community.general.xattr:\n", [
        "7:7: error K607: module 'community.general.xattr' is not one of ours (ansible.builtin or playbooks/modules)",
    ]),
    (PLAYBOOK, "    - name: Say", TWICE, [
        ("10:7: warning K606: settings are written one after the other: when one fails, those before it stand "
         "(one call, with the whole list)"),
    ]),
    (PLAYBOOK, "      unveil_setting:", "      loop: [1, 2]\n      unveil_setting:", [
        ("8:7: warning K606: settings are written one after the other: when one fails, those before it stand "
         "(one call, with the whole list)"),
    ]),
    (PLAYBOOK, "    - name: Write the settings\n      unveil_setting:\n        settings: \"{{ unveil_settings }}\"\n",
     RESCUED, []),
    (PLAYBOOK, "ansible.builtin.debug:", "debug:", [
        "10:7: error K607: module 'debug' is not one of ours (write ansible.builtin.debug)",
        "11:14: error K508: 'tenant' is text that a tenant chose: it may only be shown (ansible.builtin.debug: msg)",
    ]),
    (PLAYBOOK, "      ansible.builtin.debug:\n        msg: \"{{ tenant }} in {{ cgroup }}\"",
     "      ansible.builtin.command: {argv: [/bin/true]}\n      changed_when: false", [
        ("10:7: error K603: command is left out of a dry run, and what depends on it is wrong there "
         "(check_mode: false, for a command that only looks)"),
    ]),
    (PLAYBOOK, "      ansible.builtin.debug:\n        msg: \"{{ tenant }} in {{ cgroup }}\"",
     "      ansible.builtin.command: {argv: [/bin/true]}\n      changed_when: false\n      check_mode: false", [
    ]),
    (PLAYBOOK, "      ansible.builtin.debug:\n        msg: \"{{ tenant }} in {{ cgroup }}\"",
     "      ansible.builtin.copy: {dest: /etc/x, content: y}", [
        ("10:7: warning K503: copy changes what no setting names, so it is neither saved nor put back "
         "(a setting and unveil_setting, or say in an ignore why)"),
    ]),
    (PLAYBOOK, "      ansible.builtin.debug:", "      when: \"{{ share > 0 }}\"\n      ansible.builtin.debug:", [
        ("10:13: error K608: a condition is an expression already: braces in it are evaluated twice "
         "(leave the braces out)"),
    ]),
    (PLAYBOOK, "      ansible.builtin.debug:",
     "      until: share > 0\n      retries: 20\n      ansible.builtin.debug:", [
        "playbooks/raise_quota/remediation.yml:13:38: error K505: the playbook may wait 100 s, longer than 60s",
    ]),
    (PLAYBOOK, "---\n", "", [
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_playbook_that_escapes_its_bounds_is_refused(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
