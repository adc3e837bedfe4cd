"""The embedding job's documents, its store and its vectors."""

from __future__ import annotations

import socket
import threading
import zlib
from typing import TYPE_CHECKING

import numpy as np

from unveil.lab.workloads import embedding

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_objects_are_the_same_each_time_of_all_sizes_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "SIZES_KB", (4, 8))
    monkeypatch.setattr(embedding, "COPIES", 2)
    paths = embedding.objects(tmp_path / "one")
    contents = [path.read_bytes() for path in paths]
    assert contents == [path.read_bytes() for path in embedding.objects(tmp_path / "other")]
    assert [len(zlib.decompress(content)) >> 10 for content in contents] == [4, 8, 4, 8]
    assert contents[0] != contents[2]
    paths[0].write_bytes(b"kept")
    assert embedding.objects(tmp_path / "one")[0].read_bytes() == b"kept"


def test_each_chunk_of_a_document_has_a_vector() -> None:
    weights = (np.ones((512, 8), np.float32),)
    text = bytes(range(128)) * 96
    vectors = np.frombuffer(embedding.embed(text + b"less than a chunk", weights), np.float16)
    assert vectors.shape == (len(text) // embedding.CHUNK * 8,)
    assert np.isfinite(vectors).all()


def test_what_is_received_is_whole_or_nothing() -> None:
    here, there = socket.socketpair()

    def send() -> None:
        with there:
            there.sendall(b"a" * 3000)
            there.sendall(b"half of one")

    sender = threading.Thread(target=send)
    sender.start()
    with here:
        assert embedding.receive(here, 3000) == b"a" * 3000
        assert embedding.receive(here, 3000) == b""
    sender.join()
