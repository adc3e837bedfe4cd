"""One rank of a data-parallel training job: PyTorch on the CPU, gloo over the network; a sleep stands for the GPU.

    python -m unveil.lab.workloads.training RANK MASTER-ADDRESS [SLEEP]

Each step reads its batch from a data set on disk, gathers from an embedding table that asks for huge pages, fills an
arena of activations, runs forward and backward, and averages the gradients with the other rank. Now and then it
evaluates, and writes a checkpoint and loads it again.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from pathlib import Path

from unveil.lab.units import done

BATCH, WIDTH, LOOKUPS = 128, 512, 12_800
TABLE_MB, ARENA_MB, DATA_MB, CHECKPOINT_MB = 256, 16, 256, 24
CYCLE, EVALUATION = 60, 50  # steps: the last ten of sixty only look forward
CHECKPOINT_S = 14.0
TRAIN_SLEEP_S, EVALUATE_SLEEP_S = 0.045, 0.02


def data_set(path: Path) -> int:
    """Make the data set where it is not there yet; return its size in bytes."""
    size = DATA_MB << 20
    if not path.exists() or path.stat().st_size != size:
        part = path.with_suffix(f".{os.getpid()}")
        with part.open("wb") as file:
            for _ in range(DATA_MB):
                file.write(os.urandom(1 << 20))
        part.rename(path)
    return size


def arena(megabytes: int) -> mmap.mmap:
    """Return fresh anonymous memory that asks for huge pages."""
    memory = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def checkpoint(path: Path) -> None:
    """Write a checkpoint durably."""
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for _ in range(CHECKPOINT_MB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())


def main(rank: int, master: str, sleep_s: float = TRAIN_SLEEP_S) -> None:  # noqa: PLR0915  # one step, from top to bottom
    """Train until killed."""
    import numpy as np
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(rank)
    random = np.random.default_rng(rank)
    size = data_set(Path("dataset.bin"))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")  # else gloo takes what the host's name resolves to
    dist.init_process_group("gloo", init_method=f"tcp://{master}:29511", rank=rank, world_size=2)
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 768), torch.nn.GELU(), torch.nn.Linear(768, WIDTH), torch.nn.GELU(),
        torch.nn.Linear(WIDTH, 256),
    )  # fmt: skip
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)
    table = arena(TABLE_MB)
    rows = np.frombuffer(table, np.float32).reshape(-1, 64)
    rows[:] = 0.01
    saved = time.monotonic()
    step, offset = 0, rank * size // 2
    with Path("dataset.bin").open("rb", buffering=0) as data:
        while True:
            begin = time.monotonic()
            offset = (offset + BATCH * WIDTH) % (size - BATCH * WIDTH)
            raw = os.pread(data.fileno(), BATCH * WIDTH, offset)
            batch = torch.from_numpy(np.frombuffer(raw, np.uint8).astype(np.float32).reshape(BATCH, WIDTH) / 255)
            chosen = random.integers(0, len(rows), LOOKUPS)
            wanted = torch.from_numpy(rows[chosen].reshape(BATCH, -1, 64).sum(1))
            with arena(ARENA_MB) as activations:
                activations[::4096] = b"\x01" * (ARENA_MB << 8)
            step += 1
            if step % CYCLE >= EVALUATION:
                with torch.no_grad():
                    net(batch)
                time.sleep(EVALUATE_SLEEP_S)
                done("evaluate", time.monotonic() - begin)
                continue
            out = net(batch)
            optimiser.zero_grad()
            ((out[:, :64] - wanted).pow(2).mean() + 0.01 * out.pow(2).mean()).backward()
            time.sleep(sleep_s)
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
            optimiser.step()
            done("train", time.monotonic() - begin)
            if step % CYCLE == 1:
                due = torch.tensor([float(time.monotonic() - saved > CHECKPOINT_S)])
                dist.broadcast(due, 0)
                if due.item():
                    saved = time.monotonic()
                    if rank == 0:
                        checkpoint(Path("checkpoint.bin"))
                    dist.barrier()
                    del rows
                    table.close()
                    table = arena(TABLE_MB)
                    rows = np.frombuffer(table, np.float32).reshape(-1, 64)
                    rows[:] = 0.01


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *map(float, sys.argv[3:]))
