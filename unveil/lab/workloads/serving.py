"""A language-model server and its clients: a small transformer with random weights, decoded token by token.

    python -m unveil.lab.workloads.serving server ADDRESS
    python -m unveil.lab.workloads.serving clients ADDRESS

A request brings a prompt; the server runs one prefill over it and a few decode steps over a key-value arena, and a
sleep stands for the GPU. The clients come in two phases, busy and quiet, as users do.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import threading
import time

from unveil.lab.units import done
from unveil.lab.workloads.training import arena

PORT = 8099
PROMPT, VOCABULARY, WIDTH, TOKENS = 64, 4096, 256, 4
KV_MB = 8
ANSWER = 96 << 10
CLIENTS = 3
BUSY_S, QUIET_S = 24.0, 16.0
THINK_BUSY_S, THINK_QUIET_S = 0.03, 0.15
DECODE_SLEEP_S = 0.02


def server(address: str) -> None:
    """Serve until killed."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    embedding, head = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)
    one_at_a_time = threading.Lock()

    def generate(prompt: bytes) -> bytes:
        tokens = torch.tensor([list(prompt)], dtype=torch.long)
        with torch.no_grad(), arena(KV_MB) as cache:
            cache[::4096] = b"\x01" * (KV_MB << 8)
            for _ in range(TOKENS):
                following = head(model(embedding(tokens))[:, -1]).argmax(-1, keepdim=True)
                tokens = torch.cat([tokens[:, 1:], following % 256], 1)
        return bytes(tokens[0].tolist())

    def answer(connection: socket.socket) -> None:
        with connection:
            while True:
                prompt = _read(connection, PROMPT)
                if not prompt:
                    return
                begin = time.monotonic()
                with one_at_a_time:
                    text = generate(prompt)
                time.sleep(DECODE_SLEEP_S)
                connection.sendall(text.ljust(ANSWER, b"\0"))
                done("request", time.monotonic() - begin)

    with socket.create_server((address, PORT)) as listening:
        while True:
            threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()


def _read(connection: socket.socket, count: int) -> bytes:
    """Read exactly so many bytes; nothing when the other side ended."""
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def clients(address: str) -> None:
    """Ask until killed."""
    begin = time.monotonic()

    def one(number: int) -> None:
        dice = random.Random(number)  # noqa: S311  # a workload, the same each time
        while True:
            try:
                with socket.create_connection((address, PORT), timeout=60) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    while True:
                        busy = (time.monotonic() - begin) % (BUSY_S + QUIET_S) < BUSY_S
                        time.sleep(dice.expovariate(1 / (THINK_BUSY_S if busy else THINK_QUIET_S)))
                        asked = time.monotonic()
                        connection.sendall(struct.pack("<I", dice.getrandbits(32)) * (PROMPT // 4))
                        if not _read(connection, ANSWER):
                            break
                        done("busy" if busy else "quiet", time.monotonic() - asked)
            except OSError:
                time.sleep(0.2)  # the server is not up yet

    for number in range(CLIENTS):
        threading.Thread(target=one, args=(number,), daemon=True).start()
    while os.getppid() > 1:
        time.sleep(1)


if __name__ == "__main__":
    {"server": server, "clients": clients}[sys.argv[1]](sys.argv[2])
