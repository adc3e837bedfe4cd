"""The files of a knowledge base are read once, bounded, and nothing from outside comes with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge import pack as packing
from unveil.knowledge.pack import MAX_FILE_BYTES, read_pack, stamp_of

if TYPE_CHECKING:
    from pathlib import Path

FILE = "fingerprints/gpu/power_limit_low.yml"


def test_paths_are_relative_and_sorted(kb: Path) -> None:
    pack = read_pack(kb)
    assert list(pack.files) == sorted(pack.files)
    assert FILE in pack.files
    assert pack.shown(FILE) == str(kb / FILE)
    assert pack.under("inventory/filters", ".yml") == ["inventory/filters/night_cap.yml"]


def test_the_digest_is_of_names_and_contents_and_of_nothing_else(kb: Path) -> None:
    first = read_pack(kb).digest
    os.utime(kb / FILE, (1, 1))
    assert read_pack(kb).digest == first
    text = (kb / FILE).read_text()
    (kb / FILE).write_text(f"{text} ")
    assert read_pack(kb).digest != first
    (kb / FILE).write_text(text)
    assert read_pack(kb).digest == first
    (kb / FILE).rename(kb / "fingerprints/gpu/other.yml")
    assert read_pack(kb).digest != first


def test_a_stamp_is_another_one_after_each_kind_of_change(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_SETTLED_S", 0.0)
    stamps = [stamp_of(kb)]
    assert stamps == [stamp_of(kb)]
    text = (kb / FILE).read_text()
    (kb / FILE).write_text(f"{text} ")
    stamps.append(stamp_of(kb))
    (kb / "fingerprints/gpu/new.yml").write_text(f"{text} ")
    stamps.append(stamp_of(kb))
    (kb / "fingerprints/gpu/new.yml").replace(kb / FILE)
    stamps.append(stamp_of(kb))
    (kb / FILE).unlink()
    stamps.append(stamp_of(kb))
    (kb / FILE).mkdir()
    stamps.append(stamp_of(kb))
    assert len(set(stamps)) == len(stamps)
    assert all(stamps)


def test_of_what_has_just_changed_there_is_no_stamp(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_SETTLED_S", 86_400.0)
    assert stamp_of(kb) == ""


def test_a_link_inside_is_followed_and_a_loop_is_not(kb: Path) -> None:
    (kb / "fingerprints/gpu/linked.yml").symlink_to("power_limit_low.yml")
    (kb / "fingerprints/gpu/loop").symlink_to("../gpu")
    pack = read_pack(kb)
    assert pack.files["fingerprints/gpu/linked.yml"] == pack.files[FILE]
    assert [each.check for each in pack.problems] == ["K008"]


def test_a_swapped_data_folder_in_the_way_of_config_maps_is_read(kb: Path) -> None:
    (kb / "fingerprints/..2026").mkdir()
    (kb / FILE).rename(kb / "fingerprints/..2026/power.yml")
    (kb / "fingerprints/..data").symlink_to("..2026")
    (kb / FILE).symlink_to("../..data/power.yml")
    pack = read_pack(kb)
    assert pack.problems == ()
    assert FILE in pack.files


def test_a_link_to_a_folder_outside_is_not_entered(kb: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.yml").write_text("x")
    (kb / "fingerprints/more").symlink_to(tmp_path / "outside")
    pack = read_pack(kb)
    assert not [path for path in pack.files if "secret" in path]
    assert [each.check for each in pack.problems] == ["K008"]


def test_a_link_to_nowhere_is_told(kb: Path) -> None:
    (kb / "fingerprints/gone.yml").symlink_to("nowhere.yml")
    assert [each.what for each in read_pack(kb).problems] == ["cannot be read: No such file or directory"]


def test_what_everyone_may_write_is_a_warning(kb: Path) -> None:
    (kb / FILE).chmod(0o666)
    (kb / "fingerprints/gpu").chmod(0o777)
    assert [(each.check, str(each.gravity)) for each in read_pack(kb).problems] == [("K009", "warning")] * 2


@pytest.mark.parametrize(("size", "read"), [(MAX_FILE_BYTES, True), (MAX_FILE_BYTES + 1, False)])
def test_the_limit_on_size_is_exact(kb: Path, size: int, read: bool) -> None:
    (kb / FILE).write_bytes(b"#" * size)
    assert (FILE in read_pack(kb).files) is read


def test_a_root_that_is_a_link_keeps_its_name_in_messages(kb: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(kb)
    pack = read_pack(link)
    assert pack.shown(FILE) == str(link / FILE)
    assert pack.real == kb.resolve()
    assert pack.digest == read_pack(kb).digest
