"""ansible-lint as it is installed, and as it is not."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge import ansible_lint
from unveil.knowledge.ansible_lint import find, judge_playbooks
from unveil.knowledge.linting import lint_playbooks
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from pathlib import Path

PLAYBOOK = "playbooks/raise_quota/apply.yml"


def program(folder: Path, body: str) -> str:
    path = folder / "ansible-lint"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("print('[]')", ""), ("print('{')", "ansible-lint said what cannot be understood"),
        ("import sys; sys.exit('no such project')", "ansible-lint failed: no such project"),
        ("print('{}')", "ansible-lint failed"), ("print('[{}, 7]')", ""),
    ],
)  # fmt: skip
def test_one_that_cannot_say_anything_is_told_with_its_reason(kb: Path, tmp_path: Path, body: str, why: str) -> None:
    assert judge_playbooks(program(tmp_path, body), kb, [PLAYBOOK]) == ((), why)


def test_one_that_is_not_there_cannot_be_run(kb: Path, tmp_path: Path) -> None:
    assert judge_playbooks(str(tmp_path / "none"), kb, [PLAYBOOK])[1].startswith("ansible-lint cannot be run")
    assert judge_playbooks(str(tmp_path / "none"), kb, []) == ((), "")


def test_what_it_finds_has_its_place_its_rule_and_is_a_warning(kb: Path, tmp_path: Path) -> None:
    found = (
        '[{"check_name": "name[missing]", "description": "All tasks should be named.", "url": "https://x", "location": '
        '{"path": "playbooks/raise_quota/apply.yml", "positions": {"begin": {"line": 6, "column": 7}}}}, '
        '{"check_name": "yaml", "description": "y", "location": {"path": "p.yml", "lines": {"begin": 3}}}]'
    )
    problems, _ = judge_playbooks(program(tmp_path, f"print('''{found}''')"), kb, [PLAYBOOK])
    assert [str(each).replace(f"{kb}/", "") for each in problems] == [
        f"{PLAYBOOK}:6:7: warning K699: name[missing]: All tasks should be named. (https://x)",
        "p.yml:3:1: warning K699: yaml: y",
    ]
    assert {each.gravity for each in problems} == {Gravity.WARNING}


def test_it_is_asked_once_of_the_same_playbooks(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    counter = tmp_path / "asked"
    body = f"open({str(counter)!r}, 'a').write('x'); print('[]')"
    stand_in = program(tmp_path, body)
    monkeypatch.setattr(ansible_lint, "find", lambda: stand_in)
    assert lint_playbooks(kb) == lint_playbooks(kb) == ((), "")
    assert counter.read_text() == "x"
    (kb / PLAYBOOK).write_text((kb / PLAYBOOK).read_text() + "# edited\n")
    lint_playbooks(kb)
    assert counter.read_text() == "xx"


def test_where_there_is_none_that_is_said(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ansible_lint, "find", lambda: None)
    assert lint_playbooks(kb) == ((), "ansible-lint is not installed")


@pytest.mark.slow
@pytest.mark.skipif(find() is None, reason="ansible-lint is not installed")
def test_the_real_one_is_understood(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = kb / PLAYBOOK
    path.write_text(path.read_text().replace("    - name: Say for whom\n      ansible", "    - ansible"))
    problems, why = lint_playbooks(kb)
    assert why == ""
    assert "K699: name[missing]" in " ".join(map(str, problems))


def test_it_sees_nothing_of_what_lies_beside_the_playbooks(kb: Path, tmp_path: Path) -> None:
    for name in (".ansible-lint", "ansible.cfg", "playbooks/raise_quota/filter_plugins.py"):
        (kb / name).write_text("")
    body = (
        "import json, os, sys; at = sys.argv.index('-c') + 1\n"
        "seen = sorted(os.path.join(f, n) for f, _, names in os.walk('.') for n in names)\n"
        "what = json.dumps([seen, open(sys.argv[at]).read(), open(os.environ['ANSIBLE_CONFIG']).read()])\n"
        "place = {'path': 'p', 'lines': {'begin': 1}}\n"
        "print(json.dumps([{'check_name': 'x', 'description': what, 'location': place}]))"
    )
    ((found,), why) = judge_playbooks(program(tmp_path, body), kb, [PLAYBOOK])
    assert why == ""
    seen, *said = json.loads(found.what.removeprefix("x: "))
    assert seen == ["./ansible.cfg", "./nothing.yml", f"./{PLAYBOOK}"]
    assert said == ["{}\n", ""]
