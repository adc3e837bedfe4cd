"""Reinforcement learning: actors play a simulated game with a copy of a policy, a learner trains it on what they play.

    python -m unveil.lab.workloads.rollouts learner ADDRESS ACTORS
    python -m unveil.lab.workloads.rollouts actor ADDRESS NUMBER

A round begins when the learner lets all actors go, every few rounds with new weights. Each actor plays whole episodes,
of lengths that nobody foresees, until it has enough steps, and sends each episode when it is over; a sleep stands for
what draws the frames. Once the last actor has delivered, the learner makes a few steps of SGD on all of it, and now and
then writes a checkpoint. So all wait for the slowest one, and then for the learner.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import selectors
import signal
import socket
import struct
import sys
import time
from array import array
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from unveil.lab.units import done
from unveil.lab.workloads.embedding import receive
from unveil.lab.workloads.training import arena

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    import torch

PORT = 8066
PATIENCE_S = 120  # with a side that says nothing
LENGTHS = (6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 23, 26, 30, 36, 48)
"""Of episodes, in steps; an actor plays them in an order of its own, all before any comes again."""
ENOUGH = 48  # steps of an actor for a round; the episode that it is in is played to its end
SIZE, BODIES, MOVES = 64, 12, 24  # pixels of a frame's side; what moves in it, so often between two frames
FRAME = SIZE * SIZE
PUSHES = ((0.0, 0.0), (-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0))  # what each action does
HIDDEN, PASSES, PIECES = 128, 2, 4  # of the policy; over a batch, in so many pieces
DISCOUNT = 0.95
DRAW_SLEEP_S, LEARN_SLEEP_S = 0.002, 0.03
NEW_WEIGHTS_EVERY, CHECKPOINT_EVERY, KEPT = 4, 12, 2  # rounds, rounds, checkpoints
CHECKPOINT = "rollouts.checkpoint"
HEAD = struct.Struct("<II")  # steps of an episode; whether it is the last one of its round
STEP = FRAME + 1 + 4  # bytes: a frame, an action, a reward


class World:
    """A box in which bodies push each other away; the first one is steered, and is to come near the last one."""

    def __init__(self, dice: random.Random) -> None:
        self._bodies = [
            [dice.uniform(4, SIZE - 4), dice.uniform(4, SIZE - 4), dice.uniform(-1, 1), dice.uniform(-1, 1)]
            for _ in range(BODIES)
        ]

    def step(self, action: int) -> float:
        """Move everything, and return the reward: minus one (in opposite corners, more) to 0."""
        steered, aim = self._bodies[0], self._bodies[-1]
        steered[2] += PUSHES[action][0]
        steered[3] += PUSHES[action][1]
        for _ in range(MOVES):
            self._move()
        return -math.hypot(steered[0] - aim[0], steered[1] - aim[1]) / SIZE

    def _move(self) -> None:
        bodies = self._bodies
        for number, one in enumerate(bodies):
            for other in bodies[number + 1 :]:
                x, y = one[0] - other[0], one[1] - other[1]
                push = 1.0 / (x * x + y * y + 4.0)
                one[2] += x * push
                one[3] += y * push
                other[2] -= x * push
                other[3] -= y * push
        for body in bodies:
            for axis in (0, 1):
                speed = max(-2.0, min(2.0, body[axis + 2]))
                at = body[axis] + speed / MOVES
                if not 3.0 <= at <= SIZE - 4.0:
                    at, speed = max(3.0, min(SIZE - 4.0, at)), -speed
                body[axis], body[axis + 2] = at, speed

    def frame(self) -> bytearray:
        """Draw what is to be seen, a byte a pixel."""
        pixels = bytearray(FRAME)
        for number, (x, y, _, _) in enumerate(self._bodies):
            row = bytes((255 - 16 * number,)) * 5
            for line in range(int(y) - 2, int(y) + 3):
                at = line * SIZE + int(x) - 2
                pixels[at : at + 5] = row
        return pixels


def lengths(dice: random.Random) -> Iterator[int]:
    """Give the length of one episode after the other."""
    while True:
        yield from dice.sample(LENGTHS, len(LENGTHS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What was seen, done and earned in it: a frame, a byte and a 32-bit float a step."""

    frames: bytes
    actions: bytes
    rewards: bytes

    def packed(self, *, last: bool) -> bytes:
        """Return it as it is sent; *last* says that the actor has delivered."""
        return HEAD.pack(len(self.actions), last) + self.frames + self.actions + self.rewards


@dataclass(slots=True)
class Delivery:
    """What has come from one actor in a round."""

    episodes: list[Episode] = field(default_factory=list)
    whole: bool = False
    _rest: bytearray = field(default_factory=bytearray)

    def take(self, part: bytes) -> None:
        """Take what came next, wherever it was cut."""
        self._rest += part
        while len(self._rest) >= HEAD.size:
            steps, last = HEAD.unpack_from(self._rest)
            end = HEAD.size + steps * STEP
            if len(self._rest) < end:
                return
            seen = HEAD.size + steps * FRAME
            whole = bytes(self._rest[:end])
            self.episodes.append(
                Episode(
                    frames=whole[HEAD.size : seen], actions=whole[seen : seen + steps], rewards=whole[seen + steps :]
                )
            )
            self.whole = self.whole or bool(last)
            del self._rest[:end]


def gather(actors: Sequence[socket.socket]) -> list[Episode]:
    """Return what all actors deliver, as soon as the last one has.

    Raises:
        OSError: one of them is gone, or silent.
    """
    deliveries = [Delivery() for _ in actors]
    with selectors.DefaultSelector() as selector:
        for actor, delivery in zip(actors, deliveries, strict=True):
            selector.register(actor, selectors.EVENT_READ, (actor, delivery))
        while selector.get_map():
            ready = selector.select(PATIENCE_S)
            if not ready:
                raise TimeoutError("no actor delivers")
            for key, _ in ready:
                actor, delivery = key.data
                part = actor.recv(1 << 18)
                if not part:
                    raise ConnectionResetError("an actor is gone")
                delivery.take(part)
                if delivery.whole:
                    selector.unregister(actor)
    return [episode for delivery in deliveries for episode in delivery.episodes]


def network() -> torch.nn.Sequential:
    """Return a policy with random weights, the same each time: a frame in, a number for each action and a value out."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(FRAME, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, len(PUSHES) + 1),
    )  # fmt: skip


def weights(policy: torch.nn.Sequential) -> bytes:
    """Return all weights, as they are sent."""
    import torch

    return bytes(torch.nn.utils.parameters_to_vector(policy.parameters()).detach().numpy().tobytes())


def load(policy: torch.nn.Sequential, sent: bytes) -> None:
    """Have a policy use weights that were sent."""
    import torch

    torch.nn.utils.vector_to_parameters(torch.frombuffer(bytearray(sent), dtype=torch.float32), policy.parameters())


def chances(policy: torch.nn.Sequential, frame: bytearray) -> list[float]:
    """Return how likely the policy does each action when it sees a frame."""
    import torch

    with torch.inference_mode():
        seen = torch.frombuffer(frame, dtype=torch.uint8).float() / 255
        return [float(chance) for chance in torch.softmax(policy(seen)[:-1], 0).tolist()]


def play(likely: Callable[[bytearray], Sequence[float]], length: int, dice: random.Random) -> Episode:
    """Play one episode, in a world of its own, by what is likely to be done at each frame."""
    world = World(dice)
    frames, actions, rewards = bytearray(), bytearray(), array("f")
    for _ in range(length):
        frame = world.frame()
        time.sleep(DRAW_SLEEP_S)
        action = dice.choices(range(len(PUSHES)), likely(frame))[0]
        frames += frame
        actions.append(action)
        rewards.append(world.step(action))
    return Episode(frames=bytes(frames), actions=bytes(actions), rewards=rewards.tobytes())


def gains(rewards: Sequence[float]) -> list[float]:
    """Return for each step what was earned from then on, later discounted; of a steady reward, that reward."""
    gained, following = [], 0.0
    for reward in reversed(rewards):
        following = (1 - DISCOUNT) * reward + DISCOUNT * following
        gained.append(following)
    return gained[::-1]


def learn(policy: torch.nn.Sequential, optimiser: torch.optim.Optimizer, episodes: Sequence[Episode]) -> None:
    """Make some steps of SGD on a batch: an advantage actor-critic, held back so that it stays finite for days."""
    import numpy as np
    import torch

    steps = sum(len(episode.actions) for episode in episodes)
    held = arena(math.ceil(4 * steps * FRAME / (1 << 20)))
    frames = np.frombuffer(held, np.float32, steps * FRAME).reshape(steps, FRAME)
    np.divide(
        np.frombuffer(b"".join(episode.frames for episode in episodes), np.uint8).reshape(steps, FRAME),
        np.float32(255), out=frames,
    )  # fmt: skip
    actions = torch.tensor(list(b"".join(episode.actions for episode in episodes)))
    earned = torch.tensor([gain for episode in episodes for gain in gains(array("f", episode.rewards))])
    for _ in range(PASSES):
        for rows in torch.randperm(steps).chunk(PIECES):
            out = policy(torch.from_numpy(frames)[rows])
            logs = torch.log_softmax(out[:, :-1], 1)
            surprise = earned[rows] - out[:, -1]
            chosen = logs.gather(1, actions[rows, None])[:, 0]
            spread = (logs.exp() * logs).sum(1).mean()
            optimiser.zero_grad()
            (surprise.pow(2).mean() - (chosen * surprise.detach()).mean() + 0.01 * spread).backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimiser.step()
    time.sleep(LEARN_SLEEP_S)


def checkpoint(folder: Path, save: Callable[[IO[bytes]], None], number: int) -> None:
    """Have a checkpoint written durably, in place of the oldest one."""
    part = folder / f"{CHECKPOINT}.part"
    with part.open("wb") as file:
        save(file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(folder / f"{CHECKPOINT}.{number % KEPT}")


def learner(address: str, count: int, folder: Path) -> None:
    """Train until it is told to end; of its checkpoints nothing stays then."""
    import torch

    policy = network()
    optimiser = torch.optim.SGD(policy.parameters(), lr=1e-3, momentum=0.9)
    learnt = 0

    def save(file: IO[bytes]) -> None:
        torch.save({"policy": policy.state_dict(), "optimiser": optimiser.state_dict(), "rounds": learnt}, file)

    try:
        with socket.create_server((address, PORT)) as listening:
            while True:
                with ExitStack() as stack:
                    actors = [stack.enter_context(listening.accept()[0]) for _ in range(count)]
                    for episodes, begin in rounds(actors, partial(weights, policy)):
                        learn(policy, optimiser, episodes)
                        learnt += 1
                        if learnt % CHECKPOINT_EVERY == 0:
                            checkpoint(folder, save, learnt // CHECKPOINT_EVERY)
                        done("round", time.monotonic() - begin)
    finally:
        for path in folder.glob(f"{CHECKPOINT}.*"):
            path.unlink()


def rounds(actors: Sequence[socket.socket], new: Callable[[], bytes]) -> Iterator[tuple[list[Episode], float]]:
    """Let the actors go, round by round; give what they played, and when they began. Without one of them it ends.

    Args:
        new: gives the weights of now, which are sent in the first round and every few rounds.
    """
    for actor in actors:
        actor.settimeout(PATIENCE_S)
        actor.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in itertools.count():
        begin = time.monotonic()
        sent = new() if number % NEW_WEIGHTS_EVERY == 0 else b""
        try:
            for actor in actors:
                actor.sendall(struct.pack("<I", len(sent)) + sent)
            episodes = gather(actors)
        except OSError:
            return  # all of them begin anew
        yield episodes, begin


def actor(address: str, number: int) -> None:
    """Play until it is told to end."""
    policy = network()
    dice = random.Random(number)  # noqa: S311  # a workload, the same each time
    coming = (play(partial(chances, policy), length, dice) for length in lengths(dice))
    while True:
        with suppress(OSError), socket.create_connection((address, PORT), timeout=PATIENCE_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            deliver(connection, coming, partial(load, policy))
        time.sleep(0.2)  # the learner is not up yet, or not any more


def deliver(connection: socket.socket, coming: Iterator[Episode], use: Callable[[bytes], None]) -> None:
    """Play enough whenever the learner lets this actor go, until it has ended.

    Args:
        coming: one episode after the other, each played when it is asked for.
        use: takes new weights.
    """
    while order := receive(connection, 4):
        (size,) = struct.unpack("<I", order)
        sent = receive(connection, size)
        if len(sent) < size:
            return
        if sent:
            use(sent)
        played = 0
        while played < ENOUGH:
            episode = next(coming)
            played += len(episode.actions)
            connection.sendall(episode.packed(last=played >= ENOUGH))


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    if sys.argv[1] == "learner":
        learner(sys.argv[2], int(sys.argv[3]), Path())
    else:
        actor(sys.argv[2], int(sys.argv[3]))
