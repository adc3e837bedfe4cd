"""The knowledge base in use: last known good, stale with the reason, and how far automation may go."""

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.knowledge import KnowledgeInUse
from unveil.errors import RefusedError, UnreadableError
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.knowledge import KnowledgeState


def poll(knowledge: KnowledgeInUse, *, seconds: float = 60.0) -> tuple[KnowledgeState, bool]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state, replaced = knowledge.poll(time.time())
        if state is not None:
            return state, replaced
        time.sleep(0.02)
    pytest.fail("nothing was seen")


def test_an_edit_is_in_use_when_it_is_good_and_only_said_when_it_is_not(kb: Path) -> None:
    file = kb / "fingerprints/memory/some_dirt.yml"
    good = file.read_text()
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        assert knowledge.poll(2.0) == (None, False)
        first = knowledge.current
        assert (first.generation, len(first.fingerprints)) == (1, 1)
        file.write_text("kind: [")
        state, replaced = poll(knowledge)
        assert not replaced
        assert state.stale_since_s is not None
        assert "some_dirt.yml" in state.problems[0]
        assert knowledge.current is first
        assert knowledge.state is state
        file.write_text(good.replace("level: low", "level: high"))
        knowledge.rescan()
        state, replaced = poll(knowledge)
        assert replaced
        assert (state.generation, state.stale_since_s) == (2, None)
        assert knowledge.current.fingerprints[0].level == "high"


def test_a_folder_that_cannot_be_used_from_the_start_is_stale_and_empty_until_it_can(kb: Path) -> None:
    file = kb / "fingerprints/memory/some_dirt.yml"
    good = file.read_text()
    file.write_text("kind: [")
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        assert knowledge.current.fingerprints == ()
        assert knowledge.state.stale_since_s == 1.0
        assert knowledge.state.problems
        file.write_text(good)
        _, replaced = poll(knowledge)
        assert replaced
        assert len(knowledge.current.fingerprints) == 1


def test_no_folder_at_all_is_an_error_of_whoever_named_it(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="not a folder"):
        KnowledgeInUse(str(tmp_path / "absent"), now_s=1.0)


def test_a_folder_without_any_knowledge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="is no knowledge base: there is no"):
        KnowledgeInUse(str(tmp_path), now_s=1.0)
    for name in ("fingerprints", "playbooks"):
        (tmp_path / name).mkdir()
    with pytest.raises(UnreadableError, match="is no knowledge base: there is no fingerprint"):
        KnowledgeInUse(str(tmp_path), now_s=1.0)


def test_a_profile_may_name_groups_of_the_inventory(kb: Path) -> None:
    (kb / "inventory/hosts.yml").write_text("all: {children: {lab: {hosts: {'n[1:9]': {}}}}}\n")
    (kb / "inventory/profiles.yml").write_text(
        "apiVersion: unveil/v1\nkind: Profiles\ndefault: observe\nprofiles:\n"
        "  - {name: lab, mode: manual, groups: [lab]}\n"
    )
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        (remediation,) = knowledge.current.remediations
        assert knowledge.mode(remediation, profile="site", host="n7") is Mode.MANUAL
        assert knowledge.mode(remediation, profile="site", host="m7") is Mode.OBSERVE


def test_the_profile_of_the_watcher_or_of_the_site_only_ever_lowers_what_a_remediation_allows(kb: Path) -> None:
    (kb / "inventory/profiles.yml").write_text(
        "apiVersion: unveil/v1\nkind: Profiles\ndefault: observe\nprofiles:\n"
        "  - {name: lab, mode: auto, hosts: ['lab-*']}\n"
    )
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        (remediation,) = knowledge.current.remediations
        modes = {
            profile: knowledge.mode(remediation, profile=profile, host="h") for profile in ("observe", "manual", "auto")
        }
        assert modes == {"observe": Mode.OBSERVE, "manual": Mode.MANUAL, "auto": Mode.APPROVE}
        assert knowledge.mode(remediation, profile="site", host="elsewhere") is Mode.OBSERVE
        assert knowledge.mode(remediation, profile="site", host="lab-1") is Mode.APPROVE


def test_what_is_played_must_be_what_was_judged_even_while_the_files_on_disk_cannot_be_used(kb: Path) -> None:
    playbook, module = kb / "playbooks/some_fix/apply.yml", kb / "playbooks/modules/unveil_setting.py"
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        fix = knowledge.current.remediations[0]
        plan: Any = SimpleNamespace(
            remediation=fix.name, remediation_revision=fix.revision, fingerprint=fix.remediates[0]
        )
        gone: Any = SimpleNamespace(remediation="gone", remediation_revision="1")

        def digests() -> dict[str, str]:
            return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (playbook, module)}

        knowledge.refuse_altered(plan, digests())
        (kb / "fingerprints/memory/some_dirt.yml").write_text("kind: [")  # nothing is taken up any more
        knowledge.refuse_altered(plan, digests())
        for path in (playbook, module):
            good = path.read_text()
            path.write_text(f"{good}\n# another\n")
            with pytest.raises(RefusedError, match="not what they were"):
                knowledge.refuse_altered(plan, digests())
            played = digests()
            path.write_text(good)
            with pytest.raises(RefusedError, match="not what they were"):
                knowledge.refuse_altered(plan, played)  # put back since, but that is what would be played
            knowledge.refuse_altered(plan, digests())
        (kb / "playbooks/some_fix/library").mkdir()
        (kb / "playbooks/some_fix/library/unveil_setting.py").write_text("planted")
        with pytest.raises(RefusedError, match="not what they were"):
            knowledge.refuse_altered(plan, digests())
        with pytest.raises(RefusedError, match="not what they were"):
            knowledge.refuse_altered(gone, digests())


@pytest.mark.parametrize(
    "said_in", ["playbooks/some_fix/remediation.yml", "fingerprints/memory/some_dirt.yml", "inventory/values.yml"]
)
def test_nothing_is_played_on_the_word_of_a_file_that_others_may_write(kb: Path, said_in: str) -> None:
    (kb / "inventory/values.yml").write_text("apiVersion: unveil/v1\nkind: SiteValues\nvalues: {}\n")
    with closing(KnowledgeInUse(str(kb), now_s=1.0)) as knowledge:
        fix = knowledge.current.remediations[0]
        plan: Any = SimpleNamespace(
            remediation=fix.name, remediation_revision=fix.revision, fingerprint=fix.remediates[0]
        )
        knowledge.refuse_altered(plan, {})
        (kb / said_in).chmod(0o666)
        with pytest.raises(RefusedError, match=f"{said_in} may be written by others"):
            knowledge.refuse_altered(plan, {})
