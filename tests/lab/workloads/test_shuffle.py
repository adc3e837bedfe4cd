"""Two sides of a shuffle, at first in this process; at last both as processes, of which one is told to end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import RunFailedError
from unveil.lab.units import read_units
from unveil.lab.workloads import shuffle
from unveil.lab.workloads.shuffle import HEAD, RECORD, Job, Peer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Records = NDArray[np.void]

KEYS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1)), max_size=60)


def records(keys: Sequence[int], side: int) -> Records:
    """Return records of these keys, each with a text that tells where it comes from."""
    made = np.zeros(len(keys), RECORD)
    made["key"] = keys
    made["text"] = [f"{side} {number}".encode() for number in range(len(keys))]
    return made


def cut(whole: Records, length: int) -> list[Records]:
    return [whole[at : at + length] for at in range(0, len(whole), length)]


def first_of_each(whole: Records) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for key, text in whole.tolist():
        found.setdefault(key, text)
    return found


@pytest.fixture
def address() -> str:
    """Give an address of this machine that no other process of tests has."""
    return str(IPv4Address(0x7F400000 | os.getpid() & 0x3FFFFF))


@settings(max_examples=50)
@given(keys=st.tuples(KEYS, KEYS), lengths=st.tuples(st.integers(1, 70), st.integers(1, 70)))
def test_each_record_is_on_the_side_of_its_key_once_and_in_order(
    keys: tuple[list[int], list[int]], lengths: tuple[int, int]
) -> None:
    shards = [records(mine, side) for side, mine in enumerate(keys)]
    ends = socket.socketpair()
    with ends[0], ends[1], ThreadPoolExecutor(4) as pool:
        sides = [
            pool.submit(shuffle.shuffle, side, Peer(ends[side]), cut(shards[side], lengths[side]), pool)
            for side in (0, 1)
        ]
        results = [side.result() for side in sides]
    assert sum(taken for _, taken in results) == sum(len(shard) for shard in shards)
    kept = [result for result, _ in results]
    for side, result in enumerate(kept):
        shuffle.verify(result, side)
        assert result["key"].tolist() == sorted(result["key"].tolist())
    assert first_of_each(np.concatenate(kept)) == first_of_each(np.concatenate(shards))


def test_what_is_wrong_with_a_result_is_told() -> None:
    ordered = records(range(1, 40), 0)
    mine = ordered[shuffle.owner(ordered["key"]) == 0]
    assert 0 < len(mine) < len(ordered)
    shuffle.verify(mine, 0)
    for wrong, what in ((mine[::-1], "order"), (mine[[0, 0, 1]], "twice"), (ordered, "other side")):
        with pytest.raises(RunFailedError, match=what):
            shuffle.verify(wrong, 0)


def test_records_that_are_lost_between_the_sides_are_missed() -> None:
    ends = socket.socketpair()
    with ends[0], ends[1]:
        Peer(ends[0]).give(records(range(3), 0))
        Peer(ends[0]).tell(HEAD.pack(0, 4))
        with pytest.raises(RunFailedError, match="3 records came in of 4"):
            Peer(ends[1]).given()


def test_a_peer_that_ends_within_a_block_is_lost() -> None:
    ends = socket.socketpair()
    with ends[1]:
        with ends[0]:
            Peer(ends[0]).tell(HEAD.pack(100, 3) + b"too little")
        with pytest.raises(RunFailedError, match="the other side of the shuffle is lost"):
            Peer(ends[1]).given()


def test_a_shard_is_the_same_each_time_has_keys_of_both_sides_and_is_read_round_and_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2 * shuffle.BLOCK
    monkeypatch.setattr(shuffle, "SHARD", size)
    contents = []
    for name, number in (("one", 0), ("other", 0), ("second", 1)):
        with (tmp_path / name).open("w+b") as file:
            shuffle.make_shard(file, number)
            contents.append(np.concatenate(list(shuffle.blocks(file, 0, size))))
            wrapped = list(shuffle.blocks(file, size - 5, 9))
        assert [len(block) for block in wrapped] == [5, 4]
        assert (np.concatenate(wrapped) == contents[-1][np.arange(-5, 4)]).all()
    assert (contents[0] == contents[1]).all()
    assert (contents[0] != contents[2]).any()
    assert 0.45 < shuffle.owner(contents[0]["key"]).mean() < 0.55
    assert len(np.unique(contents[0]["key"])) < size


def test_jobs_are_the_same_for_both_sides_and_have_room_on_a_disk() -> None:
    one, other = (list(islice(shuffle.jobs(), 60)) for _ in range(2))
    assert one == other
    for six in (one[at : at + 6] for at in range(0, 60, 6)):
        assert sorted(job.kind for job in six) == ["large"] * 2 + ["small"] * 4
    most = max(job.most * job.rounds for job in one) * shuffle.BLOCK
    assert 2 * (shuffle.SHARD + most) * RECORD.itemsize < 500e6, "of both sides, whatever was no duplicate"


def test_sides_do_their_jobs_and_leave_nothing(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shuffle, "BLOCK", 500)
    monkeypatch.setattr(shuffle, "SHARD", 3 * 500)
    monkeypatch.setattr(shuffle, "BLOCK_SLEEP_S", 0.0)
    todo = [
        Job(kind="small", least=2, most=2, rounds=3, pause_s=0.0),
        Job(kind="large", least=3, most=5, rounds=2, pause_s=0.0),
    ]
    folder = tmp_path / "scratch"
    folder.mkdir()
    with ThreadPoolExecutor(2) as pool:
        for side in [pool.submit(shuffle.run, number, address, folder, todo) for number in (0, 1)]:
            side.result()
    assert not list(folder.iterdir())
    told = tmp_path / "units"
    told.write_text(capsys.readouterr().out)
    phases = [unit.phase for unit in read_units(told)]
    assert (phases.count("small"), phases.count("closing")) == (2 * 3 * 2, 2 * 2)
    assert 2 * 2 * 3 <= phases.count("large") <= 2 * 2 * 5


def test_a_side_whose_peer_goes_ends_and_says_so(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "SHARD", shuffle.BLOCK)
    with ThreadPoolExecutor(1) as pool:
        side = pool.submit(shuffle.run, 0, address, tmp_path, shuffle.jobs())
        with shuffle.joined(1, address):
            pass
        with pytest.raises(RunFailedError, match="the other side of the shuffle is lost"):
            side.result()
    assert not list(tmp_path.iterdir())


def test_a_side_whose_peer_does_not_come_says_so(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "SHARD", shuffle.BLOCK)
    monkeypatch.setattr(shuffle, "PATIENCE_S", 0.01)
    for number in (0, 1):
        with pytest.raises(RunFailedError, match="the other side of the shuffle does not come"):
            shuffle.run(number, address, tmp_path, [])


@pytest.fixture
def started(address: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Give both sides, as processes that run."""
    environment = {"PYTHONPATH": str(Path(shuffle.__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", shuffle.__name__, number, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=tmp_path, env=environment,
        )
        for number in ("0", "1")
    ]  # fmt: skip
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_after_sigterm_nothing_is_left_and_the_other_side_has_one_clear_line(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    first, second = started
    assert first.stdout is not None
    assert all('"phase": "' in first.stdout.readline() for _ in range(3))
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=200)
    assert (first.returncode, errors) == (0, "")
    _, errors = second.communicate(timeout=200)
    assert second.returncode == 1
    assert errors.startswith("the other side of the shuffle is lost: ")
    assert errors.count("\n") == 1
    assert not list(tmp_path.iterdir())
