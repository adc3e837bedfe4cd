"""Playbooks that share a start: each for its host alone, with variables that are data, and ended as one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution.request import Status
from unveil.execution.several import Part, play_several

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "{{ lookup('pipe', 'touch pwned') }}"
PLAY = """\
- hosts: "{{ unveil_target | default('localhost') }}"
  gather_facts: false
  tasks:
    - name: Say it
      ansible.builtin.debug: {msg: "{{ word }}"}
"""


def parts(kit: Any, tmp_path: Path, **words: str) -> dict[str, Part]:
    found = {}
    for name, word in words.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "apply.yml").write_text(PLAY)
        plan = kit.plan(tmp_path / name / "apply.yml", variables={"word": word} if word else {})
        found[name] = Part(plan=plan, host_root=str(tmp_path))
    return found


@pytest.mark.slow
@pytest.mark.ansible
def test_each_has_its_own_variables_as_data_and_one_that_lacks_its_own_ends_all(kit: Any, tmp_path: Path) -> None:
    these = parts(kit, tmp_path, one="a word", two=HOSTILE, three="", four="never said")
    result, answers = play_several(
        these, tmp_path / "run", kit.modules, check=False, strict=False, stop=threading.Event()
    )
    assert result is not None
    assert result.status is Status.FAILED
    assert {name: bool(answer.failure) for name, answer in answers.items()} == {
        "one": False, "two": False, "three": True,
    }  # fmt: skip
    assert "word" in answers["three"].failure, "what another part is given is not there"
    assert list(tmp_path.rglob("pwned")) == []


@pytest.mark.slow
@pytest.mark.ansible
def test_in_strict_mode_a_template_in_data_fails_and_a_stop_ends_all(kit: Any, tmp_path: Path) -> None:
    these = parts(kit, tmp_path, one="a word", two=HOSTILE)
    stop = threading.Event()
    result, answers = play_several(these, tmp_path / "run", kit.modules, check=True, strict=True, stop=stop)
    assert result is not None
    assert result.check
    assert (answers["one"].failure, bool(answers["two"].failure)) == ("", True)
    stop.set()
    stopped, _ = play_several(these, tmp_path / "stopped", kit.modules, check=True, strict=True, stop=stop)
    assert stopped is None or stopped.status is Status.CANCELED
