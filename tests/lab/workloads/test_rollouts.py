"""What actors play and deliver, and what a learner makes of it; at last both, as processes that are told to end."""

from __future__ import annotations

import itertools
import math
import random
import signal
import socket
import subprocess
import sys
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from unveil.lab.running import ACTORS, WORKLOADS
from unveil.lab.units import read_units
from unveil.lab.workloads import rollouts
from unveil.lab.workloads.rollouts import Delivery, Episode, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


def episode(steps: int, kind: int = 1) -> Episode:
    frames = bytes((kind,)) * (steps * rollouts.FRAME)
    rewards = array("f", [-0.5 * kind] * steps)
    return Episode(frames=frames, actions=bytes((kind,)) * steps, rewards=rewards.tobytes())


def connected() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = socket.create_connection(listening.getsockname())
        return listening.accept()[0], there


def test_a_world_is_the_same_each_time_for_a_seed_and_everything_stays_in_it() -> None:
    worlds = [World(random.Random(seed)) for seed in (1, 1, 2)]
    for step in range(50):
        rewards = [world.step(step // 10 % len(rollouts.PUSHES)) for world in worlds]
        frames = [world.frame() for world in worlds]
        assert rewards[0] == rewards[1]
        assert frames[0] == frames[1]
        assert frames[0] != frames[2]
        assert all(len(frame) == rollouts.FRAME for frame in frames)
        assert all(-math.sqrt(2) <= reward <= 0 for reward in rewards)
    assert len({bytes(frame) for frame in frames}) == 2


def test_all_lengths_of_episodes_come_before_any_comes_again_in_an_order_of_each_actor_s_own() -> None:
    told = [list(islice(rollouts.lengths(random.Random(seed)), 2 * len(rollouts.LENGTHS))) for seed in (0, 0, 1)]
    assert told[0] == told[1] != told[2]
    for half in (told[0][: len(rollouts.LENGTHS)], told[0][len(rollouts.LENGTHS) :]):
        assert sorted(half) == list(rollouts.LENGTHS)


@pytest.mark.parametrize("pieces", [1, 5, rollouts.STEP, 100_000])
def test_a_delivery_is_read_whole_wherever_it_was_cut(pieces: int) -> None:
    played = [episode(1), episode(2, 3)]
    sent = played[0].packed(last=False) + played[1].packed(last=True)
    delivery = Delivery()
    for at in range(0, len(sent), pieces):
        assert not delivery.whole
        delivery.take(sent[at : at + pieces])
    assert delivery.whole
    assert delivery.episodes == played


def test_a_round_ends_when_the_last_actor_has_delivered_and_not_without_one_that_is_gone() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    played = [[episode(5, number + 1), episode(30, number + 1)] for number in range(3)]

    def send(there: socket.socket, mine: list[Episode]) -> None:
        for each in mine:
            there.sendall(each.packed(last=each is mine[-1]))

    senders = [
        threading.Thread(target=send, args=(there, mine)) for (_, there), mine in zip(pairs, played, strict=True)
    ]
    for sender in senders:
        sender.start()
    gathered = rollouts.gather([here for here, _ in pairs])
    assert gathered == [each for mine in played for each in mine]
    for sender in senders:
        sender.join()
    pairs[1][1].close()
    with pytest.raises(ConnectionResetError):
        rollouts.gather([here for here, _ in pairs])
    for pair in pairs:
        for end in pair:
            end.close()


def test_what_comes_later_counts_less() -> None:
    assert rollouts.gains([-1.0] * 400)[0] == pytest.approx(-1.0)
    early, late = rollouts.gains([-1.0, 0.0, 0.0]), rollouts.gains([0.0, 0.0, -1.0])
    assert early[0] < late[0] < 0 == early[1]


def test_as_many_actors_are_started_as_the_learner_waits_for() -> None:
    learner, *actors = WORKLOADS["rollouts"]
    assert learner.arguments[-1] == str(len(actors)) == str(ACTORS)
    assert [program.arguments[-1] for program in actors] == [str(number) for number in range(ACTORS)]
    assert {program.side for program in actors} != {learner.side}


def test_an_episode_is_played_by_what_is_likely_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def always_left(frame: bytearray) -> list[float]:
        assert len(frame) == rollouts.FRAME
        return [0.0, 1.0, 0.0, 0.0, 0.0]

    played = [rollouts.play(always_left, length, random.Random(length)) for length in (3, 9, 9)]
    assert [each.actions for each in played] == [bytes((1,)) * length for length in (3, 9, 9)]
    assert [len(each.packed(last=True)) for each in played[:2]] == [8 + 3 * rollouts.STEP, 8 + 9 * rollouts.STEP]
    assert played[1] == played[2]
    assert played[0].frames != played[1].frames[: 3 * rollouts.FRAME]


def test_each_actor_plays_enough_each_round_and_gets_new_weights_every_few_rounds() -> None:
    used: list[list[bytes]] = [[], []]

    def act(number: int, there: socket.socket) -> None:
        with there:
            coming = (episode(length, number + 1) for length in rollouts.lengths(random.Random(number)))
            rollouts.deliver(there, coming, used[number].append)

    new = (f"weights {number}".encode() for number in itertools.count())
    with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        pairs = [connected() for _ in used]
        actors = [pool.submit(act, number, there) for number, (_, there) in enumerate(pairs)]
        here = [stack.enter_context(end) for end, _ in pairs]
        for episodes, _ in islice(rollouts.rounds(here, partial(next, new)), rollouts.NEW_WEIGHTS_EVERY + 1):
            for kind in (1, 2):
                steps = [len(each.actions) for each in episodes if each.actions[0] == kind]
                assert sum(steps[:-1]) < rollouts.ENOUGH <= sum(steps)
    for actor in actors:
        actor.result()
    assert used == [[b"weights 0", b"weights 1"]] * 2


def test_rounds_end_when_an_actor_is_gone() -> None:
    with ExitStack() as stack:
        pairs = [connected() for _ in range(2)]
        pairs[1][1].close()
        for pair in pairs:
            for end in pair:
                stack.enter_context(end)
        assert list(rollouts.rounds([here for here, _ in pairs], lambda: b"weights")) == []


def written(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def test_no_more_checkpoints_than_the_newest_are_kept_and_each_is_whole(tmp_path: Path) -> None:
    for number in range(1, 6):
        rollouts.checkpoint(tmp_path, partial(written, b"%d" % number), number)
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"4", b"5"]


@pytest.fixture
def policy() -> torch.nn.Sequential:
    pytest.importorskip("torch")
    return rollouts.network()


def test_weights_arrive_as_they_were_sent(policy: torch.nn.Sequential) -> None:
    import torch

    other = rollouts.network()
    assert rollouts.weights(other) == rollouts.weights(policy), "the same each time"
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    assert rollouts.weights(other) != rollouts.weights(policy)
    rollouts.load(policy, rollouts.weights(other))
    assert rollouts.weights(other) == rollouts.weights(policy)


def test_what_was_played_is_learnt_from(policy: torch.nn.Sequential, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    likely = partial(rollouts.chances, policy)
    assert sum(likely(World(random.Random(1)).frame())) == pytest.approx(1.0)
    played = [rollouts.play(likely, length, random.Random(length)) for length in (3, 9)]
    assert played[0] == rollouts.play(likely, 3, random.Random(3))
    before = rollouts.weights(policy)
    optimiser = torch.optim.SGD(policy.parameters(), lr=1e-3, momentum=0.9)
    rollouts.learn(policy, optimiser, played)
    assert rollouts.weights(policy) != before
    assert all(torch.isfinite(parameter).all() for parameter in policy.parameters())


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Give a learner and two actors that run, on an address that nobody else has."""
    pytest.importorskip("torch")
    address = "127.213.47.1"
    words = [sys.executable, "-m", rollouts.__name__]
    each = (("learner", address, "2"), ("actor", address, "0"), ("actor", address, "1"))
    environment = {"PYTHONPATH": str(Path(rollouts.__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*words, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env=environment,
        )
        for arguments in each
    ]  # fmt: skip
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_rounds_are_told_and_after_sigterm_nothing_is_left(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    import torch

    learner = started[0]
    assert learner.stdout is not None
    told = tmp_path / "units"
    told.write_text("".join(learner.stdout.readline() for _ in range(rollouts.CHECKPOINT_EVERY + 1)))
    units = read_units(told)
    assert len(units) == rollouts.CHECKPOINT_EVERY + 1
    assert all(unit.phase == "round" and unit.seconds > 0 for unit in units)
    kept = torch.load(tmp_path / f"{rollouts.CHECKPOINT}.1")
    assert kept["rounds"] % rollouts.CHECKPOINT_EVERY == 0 < kept["rounds"]
    assert kept["policy"].keys() == rollouts.network().state_dict().keys()
    for process in started:
        process.send_signal(signal.SIGTERM)
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["units"]
