from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from unveil.errors import RefusedError
from unveil.execution.remote import Remote, Wanted, answers_in, putting_back, reading
from unveil.execution.request import EVENTS, RunEvent
from unveil.records.codec import encode

if TYPE_CHECKING:
    from pathlib import Path


def test_zeros_of_a_coupled_pair_are_put_back_last_and_only_what_we_wrote() -> None:
    saved = {"sysctl:vm.dirty_ratio": "0", "sysctl:vm.dirty_bytes": "4096", "sysctl:vm.swappiness": "60"}
    written = {"sysctl:vm.dirty_ratio": "20", "sysctl:vm.dirty_bytes": "0"}
    assert putting_back(saved, written) == (
        Wanted(address="sysctl:vm.dirty_bytes", value="4096", expect="0"),
        Wanted(address="sysctl:vm.dirty_ratio", value="0", expect="20"),
    )
    assert reading(["a"]) == (Wanted(address="a"),)


def test_what_each_host_said_is_kept_apart(tmp_path: Path) -> None:
    events = [
        RunEvent(counter=1, kind="runner_on_ok", host="h1", contents={"a": "1", "b": None}),
        RunEvent(counter=2, kind="runner_on_unreachable", host="h2", failed=True, message="no route"),
        RunEvent(counter=3, kind="runner_on_failed", host="h3", task="Look", failed=True, message="broken"),
        RunEvent(counter=4, kind="runner_on_ok", host="h1", changed=True),
        RunEvent(counter=5, kind="playbook_on_stats"),
    ]
    (tmp_path / EVENTS).write_text("".join(json.dumps(encode(event)) + "\n" for event in events))
    answers = answers_in(tmp_path)
    assert answers["h1"].contents == {"a": "1", "b": None}
    assert answers["h1"].changed == 1
    assert answers["h2"].failure == "cannot be reached: no route"
    assert answers["h3"].failure == "Look: broken"


@pytest.mark.ansible
@pytest.mark.slow
def test_settings_of_a_host_are_read_written_as_expected_and_left_when_someone_else_wrote(
    tmp_path: Path, tree: Path
) -> None:
    # The module acts on the tree: `root` of the request is /, so the addresses' own root is what is faked here.
    from pathlib import Path as Place

    modules = Place(__file__).parents[2] / "playbooks/modules"
    inventory = tmp_path / "hosts"
    inventory.write_text("h1 ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n")
    remote = Remote(tmp_path / "asked", str(inventory), modules)
    answers = remote.ask("h1", {"*": reading(["sysctl:vm.dirty_ratio", "sysctl:vm.no_such"])})
    assert answers["h1"].contents["sysctl:vm.no_such"] is None
    assert answers["h1"].contents["sysctl:vm.dirty_ratio"] is not None
    with pytest.raises(RefusedError, match="no host answered"):
        remote.ask("nobody", {"*": reading(["sysctl:vm.dirty_ratio"])})
    assert not list((tmp_path / "asked").glob("*/request.json")) or remote.end_left_behind() == 0


def test_an_inventory_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    from pathlib import Path as Place

    modules = Place(__file__).parents[2] / "playbooks/modules"
    inventory = tmp_path / "hosts"
    inventory.write_text("h1 ansible_connection=local\n")
    beside = tmp_path / "group_vars/all.yml"
    beside.parent.mkdir()
    beside.write_text("ansible_ssh_common_args: -o ProxyCommand=id\n")
    for path in (inventory, beside):
        path.chmod(0o666)
        with pytest.raises(RefusedError, match="written by others"):
            Remote(tmp_path / "asked", str(inventory), modules).ask("h1", {"*": reading(["sysctl:vm.swappiness"])})
        path.chmod(0o644)
