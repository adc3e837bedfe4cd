"""The control socket serves its owner, whatever is thrown at it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.engine.control import MAX_PEERS, ControlServer
from unveil.errors import ConflictError, RefusedError, WatcherAbsentError

if TYPE_CHECKING:
    from collections.abc import Iterator


def handle(method: str, params: dict[str, Any], actor: str) -> Any:
    if method == "refuse":
        raise ConflictError("someone else", hint="look again")
    if method == "large":
        return "x" * params["size"]
    return {"method": method, "params": params, "actor": actor}


@pytest.fixture
def asked() -> list[str]:
    """Give what is asked over `path`, in the order in which it is answered."""
    return []


@pytest.fixture
def path(tmp_path: Path, asked: list[str]) -> Iterator[Path]:
    def noted(method: str, params: dict[str, Any], actor: str) -> Any:
        asked.append(method)
        return handle(method, params, actor)

    server = ControlServer(tmp_path / "s", noted)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.serve_until(time.monotonic_ns() + 20_000_000)

    thread = threading.Thread(target=serve)
    thread.start()
    yield tmp_path / "s"
    stop.set()
    thread.join()
    server.close()


def test_a_question_is_answered_and_the_kernel_says_who_asked(path: Path) -> None:
    client = Client(path)
    reply = client.call("windows", limit=3)
    assert reply == {"method": "windows", "params": {"limit": 3}, "actor": f"uid:{os.geteuid()} pid:{os.getpid()}"}
    assert client.call("episodes")["method"] == "episodes"
    client.close()


def test_an_error_arrives_as_the_error_it_was(path: Path) -> None:
    client = Client(path)
    with pytest.raises(ConflictError, match="someone else") as caught:
        client.call("refuse")
    assert caught.value.hint == "look again"
    assert client.call("still there")["method"] == "still there"
    client.close()


def test_an_answer_larger_than_any_buffer_arrives_whole(path: Path) -> None:
    client = Client(path)
    assert len(client.call("large", size=5_000_000)) == 5_000_000
    client.close()


@pytest.mark.parametrize(
    "line", [b"\n", b"{\n", b"[]\n", b'{"id": "x", "method": 1}\n', b"[" * 50_000 + b"\n", b"\xff\n"]
)
def test_what_is_no_question_is_refused_in_one_line(path: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(line)
        assert "not a question" in json.loads(raw.recv(65536))["error"]["what"]


def test_an_endless_question_and_a_deaf_peer_are_dropped_and_others_are_served(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as endless, socket.socket(socket.AF_UNIX) as deaf:
        endless.connect(str(path))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            endless.sendall(b"x" * 64_000_000)
        deaf.connect(str(path))
        deaf.sendall(b'{"id": 1, "method": "large", "params": {"size": 9000000}}\n' * 2)
        client = Client(path)
        assert client.call("status")["method"] == "status"
        client.close()


def test_no_more_peers_than_the_limit(path: Path) -> None:
    clients = [Client(path) for _ in range(MAX_PEERS)]
    for client in clients:
        client.call("status")
    extra = Client(path)
    with pytest.raises(RefusedError, match="too many connections"):
        extra.call("status")
    for client in (*clients, extra):
        client.close()


def test_the_socket_is_its_owners_alone(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
def test_another_user_is_refused_even_where_the_files_would_let_him(path: Path) -> None:
    path.chmod(0o666)
    folder = path.parent
    while folder != folder.parent:
        folder.chmod(folder.stat().st_mode | 0o011)
        folder = folder.parent
    program = (
        "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        "print(s.recv(65536).decode())"
    )
    said = subprocess.run([sys.executable, "-I", "-c", program, str(path)], check=True, capture_output=True, text=True)
    assert "uid 65534 may not talk" in said.stdout


def test_nobody_there_is_said_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(WatcherAbsentError) as caught:
        Client(tmp_path / "absent").call("status")
    assert "unveil watch" in (caught.value.hint or "")


def test_many_questions_at_once_are_answered_in_order_one_at_a_time_and_others_get_their_turn(
    path: Path, asked: list[str]
) -> None:
    lines = [b'{"id": %d, "method": "large", "params": {"size": 400000}}\n' % number for number in range(40)]
    with socket.socket(socket.AF_UNIX) as greedy:
        greedy.connect(str(path))
        greedy.sendall(b"".join(lines))
        client = Client(path)
        assert client.call("status")["method"] == "status"
        assert len(asked) <= 3, "of the greedy one's forty one at a time: no next one before it has taken the last"
        client.close()
        with greedy.makefile("rb") as answers:
            assert [json.loads(answers.readline())["id"] for _ in lines] == list(range(40))


def test_an_answer_that_is_too_large_is_refused_not_hung_up_on(path: Path) -> None:
    client = Client(path)
    with pytest.raises(RefusedError, match="too large"):
        client.call("large", size=17_000_000)
    assert client.call("status")["method"] == "status"
    client.close()


def test_a_peer_that_takes_nothing_for_long_is_dropped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.engine.control.DEAF_S", 0.2)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(str(path))
        deaf.sendall(b'{"id": 1, "method": "large", "params": {"size": 9000000}}\n')
        hung_up = select.poll()
        hung_up.register(deaf, 0)
        assert hung_up.poll(60_000), "it is not dropped"
        taken = 0
        while data := deaf.recv(1 << 20):
            taken += len(data)
        assert taken < 9_000_000


EXHAUSTED = """
import json, os, resource, socket, sys, time
from pathlib import Path
from unveil.engine import control
from unveil.engine.control import ControlServer

low, high = int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (high, max(high, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
server = ControlServer(Path(sys.argv[1]), lambda method, params, actor: method)
turns = []
ready = control._ready
control._ready = lambda *asked: turns.append(1) or ready(*asked)
peer = socket.socket(socket.AF_UNIX)
taken = []
try:
    while len(taken) < low:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
peer.connect(sys.argv[1])
peer.sendall(b'{"id": 1, "method": "ping"}\\n')
for _ in range(5):
    server.serve_until(time.monotonic_ns() + 100_000_000)
peer.setblocking(False)
try:
    said = json.loads(peer.recv(1000))["result"]
except BlockingIOError:
    said = None
print(json.dumps([said, len(turns) < 50]))
"""


@pytest.mark.parametrize(("taken", "limit", "expected"), [(10_000, 64, [None, True]), (1100, 2048, ["ping", True])])
def test_a_process_full_of_descriptors_serves_as_far_as_it_can_and_never_spins(
    tmp_path: Path, taken: int, limit: int, expected: list[object]
) -> None:
    said = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, str(tmp_path / "s"), str(taken), str(limit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == expected


def test_forgotten_connections_make_room_for_a_person_and_busy_ones_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unveil.engine import control

    monkeypatch.setattr(control, "SILENT_S", 0.3)
    busy, forgotten = Client(path), []
    busy.call("ping")
    for number in range(MAX_PEERS - 1):
        forgotten.append(socket.socket(socket.AF_UNIX))
        forgotten[-1].connect(str(path))
        forgotten[-1].sendall(b'{"id": 1,' if number % 2 else b"")  # half a question, or none
    time.sleep(0.5)
    busy.call("ping")
    person = Client(path)
    assert person.call("ping")["method"] == "ping"
    busy.call("ping")
    assert busy._stream is not None
    dropped = [each for each in forgotten if _hung_up(each)]
    assert len(dropped) == 1
    for each in (busy, person, *forgotten):
        each.close()


def _hung_up(stream: socket.socket) -> bool:
    stream.settimeout(0.1)
    try:
        return stream.recv(1) == b""
    except TimeoutError:
        return False


def test_one_answer_at_most_is_late_and_everybody_has_a_turn(tmp_path: Path) -> None:
    asked: list[str] = []

    def slow(method: str, params: dict[str, Any], actor: str) -> Any:
        asked.append(method)
        time.sleep(0.05)

    server = ControlServer(tmp_path / "s", slow)
    streams = []
    for number in range(6):
        streams.append(socket.socket(socket.AF_UNIX))
        streams[-1].connect(str(tmp_path / "s"))
        server.serve_until(time.monotonic_ns() + 5_000_000)
        streams[-1].sendall(b'{"id": 1, "method": "m%d"}\n' % number * 3)
    while len(asked) < 12:
        before = len(asked)
        server.serve_until(time.monotonic_ns() + 10_000_000)
        assert len(asked) - before <= 1, "each takes longer than there is time: a second one would be late twice"
    for stream in streams:
        stream.close()
    server.close()
    turns = [asked.count(f"m{number}") for number in range(6)]
    assert min(turns) >= 2
    assert max(turns) - min(turns) <= 1


def test_the_socket_of_another_watcher_is_left_alone(tmp_path: Path) -> None:
    first = ControlServer(tmp_path / "s", handle)
    second = ControlServer(tmp_path / "s", handle)
    first.close()
    assert (tmp_path / "s").exists()
    second.close()
    assert not (tmp_path / "s").exists()


@pytest.mark.root
def test_another_user_gets_in_when_the_site_lets_them_and_is_who_the_kernel_says() -> None:
    folder = Path(tempfile.mkdtemp(prefix="unveil-door-"))  # pytest's own folders are closed to others
    admitted: set[int] = set()
    server = ControlServer(folder / "s", handle, admits=lambda uid: uid in admitted)
    ask = (
        "import contextlib, os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "with contextlib.suppress(BrokenPipeError):  # who is refused may have been hung up on; the reason is there\n"
        '    s.sendall(b\'{"v":1,"id":1,"method":"ping","params":{}}\\n\')\n'
        "print(s.recv(65536).decode())"
    )

    def said() -> str:
        command = [sys.executable, "-I", "-c", ask, str(folder / "s")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while process.poll() is None:
            server.serve_until(time.monotonic_ns() + 20_000_000)
        return process.communicate()[0]

    try:
        assert "PermissionError" in said()
        server.open_to_others(True)
        assert "may not talk to this watcher" in said()
        admitted.add(65534)
        assert "uid:65534" in said()
        server.open_to_others(False)
        assert "PermissionError" in said()
    finally:
        server.close()
        shutil.rmtree(folder)


def served(server: ControlServer, client: socket.socket) -> bytes:
    """Serve until the client was told something, or was hung up on."""
    client.setblocking(False)
    for _ in range(100):
        server.serve_until(time.monotonic_ns() + 20_000_000)
        with contextlib.suppress(BlockingIOError):
            return client.recv(65536)
    raise AssertionError("nothing was said")


PING = b'{"v":1,"id":1,"method":"ping","params":{}}\n'


def test_who_is_let_in_no_longer_gives_no_order_over_an_old_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    welcome = [True]
    monkeypatch.setattr(ControlServer, "_welcome", lambda _server, _uid: welcome[0])
    server = ControlServer(tmp_path / "s", handle)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))
        client.sendall(PING)
        assert b"ping" in served(server, client)
        welcome[0] = False
        client.sendall(PING)
        assert b"may not talk to this watcher" in served(server, client)
        assert served(server, client) == b""
    server.close()


def test_a_directory_is_as_it_was_when_others_are_shut_out_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    server = ControlServer(tmp_path / "s", handle)
    server.open_to_others(True)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o711
    server.open_to_others(False)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    server.open_to_others(True)
    server.close()  # as if killed: the directory stays open
    server = ControlServer(tmp_path / "s", handle)
    server.open_to_others(False)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    server.close()


def test_the_first_who_comes_is_told_of_before_anything_is_answered(tmp_path: Path) -> None:
    said: list[str] = []
    server = ControlServer(
        tmp_path / "s", lambda method, _params, _actor: said.append(method), came=lambda: said.append("came")
    )
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.serve_until(time.monotonic_ns() + 20_000_000)

    thread = threading.Thread(target=serve)
    thread.start()
    first, second = Client(tmp_path / "s"), Client(tmp_path / "s")
    for client, method in ((first, "one"), (second, "two"), (first, "three")):
        client.call(method)
    assert server.asked
    for client in (first, second):
        client.close()
    stop.set()
    thread.join()
    server.close()
    assert said == ["came", "one", "two", "three"]
