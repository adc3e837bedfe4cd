"""The metrics child: ``python -m unveil.engine.metrics_child``. Serves what the watcher tells on its standard input.

It holds the newest line, answers scrapes from it (OpenMetrics or the older text, as the scraper asks) and writes it to
a file for node_exporter's textfile collector, by way of a temporary file that is renamed. It ends, and removes the
file, when the watcher hangs up: values that nobody renews would be taken for a healthy host.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

MOST_CLIENTS = 8  # at a time; a scraper is one
CLIENT_S = 10.0  # that a client may keep silent


class Told:
    """What the watcher told last, as prometheus_client collects it."""

    def __init__(self) -> None:
        self._families: list[Any] = []
        self._told_s: float | None = None

    def tell(self, line: bytes) -> None:
        """Take a line of the watcher's."""
        self._families = json.loads(line)  # the watcher is ours: its words are not checked further
        self._told_s = time.monotonic()

    def collect(self) -> Iterator[Metric]:
        """Give the families and how old they are; none before the watcher's first word."""
        if self._told_s is not None:
            age_s = time.monotonic() - self._told_s
            yield GaugeMetricFamily("unveil_told_age_seconds", "How long ago the watcher told all this.", age_s)
        for name, kind, text, labels, samples in self._families:
            if kind == "info":
                info = InfoMetricFamily(name, text)
                for values, _ in samples:
                    info.add_metric([], dict(zip(labels, values, strict=True)))
                yield info
                continue
            family: CounterMetricFamily | GaugeMetricFamily = (
                CounterMetricFamily(name, text, labels=labels)
                if kind == "counter"
                else GaugeMetricFamily(name, text, labels=labels)
            )
            for values, value in samples:
                family.add_metric(values, value)
            yield family


class _Quiet(WSGIRequestHandler):
    """Requests that are not logged, and that do not wait for ever."""

    timeout = CLIENT_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
        """Say nothing: a scrape every second would fill a log."""


class _Server(WSGIServer):
    """A server on a socket that the watcher bound; a few clients at a time, each in a thread of its own."""

    def __init__(self, listener: socket.socket, registry: CollectorRegistry) -> None:
        self.address_family = listener.family
        super().__init__(listener.getsockname()[:2], _Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = "localhost", listener.getsockname()[1]
        self.setup_environ()
        self.set_app(make_wsgi_app(registry))
        self._open: dict[Any, None] = {}  # connections, oldest first
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; when all are busy, hang up on the one that has taken longest.

        A scraper asks at once. Who takes his time, or says a letter now and then, must not keep it out.
        """
        with self._lock:
            if len(self._open) >= MOST_CLIENTS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # which its thread takes for the end
            self._open[request] = None
        threading.Thread(target=self._answer, args=(request, client_address), daemon=True).start()

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            with contextlib.suppress(OSError):  # a client that hung up
                self.finish_request(request, client_address)
        finally:
            with self._lock:  # not closed while another thread may hang up on it
                self._open.pop(request, None)
                self.shutdown_request(request)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the watcher hangs up."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.engine.metrics_child", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--fd", type=int, help="descriptor of the listening socket")
    parser.add_argument("--file", type=Path, help="path of the file to write")
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    told, registry = Told(), CollectorRegistry()
    registry.register(told)
    if arguments.fd is not None:
        server = _Server(socket.socket(fileno=arguments.fd), registry)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    failed = False
    try:
        for line in sys.stdin.buffer:
            if not line.endswith(b"\n"):
                break  # the watcher was ended in the middle of a word
            told.tell(line)
            if arguments.file is not None:
                failed = _write(arguments.file, registry, complain=not failed)
    finally:
        if arguments.file is not None:
            arguments.file.unlink(missing_ok=True)
    return 0


def _write(file: Path, registry: CollectorRegistry, *, complain: bool) -> bool:
    """Write the file; return whether that failed, which is said once and tried again with the next word."""
    written = None
    try:
        descriptor, written = tempfile.mkstemp(prefix=f".{file.stem}-", suffix=".tmp", dir=file.parent)
        with open(descriptor, "wb") as output:  # noqa: PTH123  # a descriptor: no name that somebody could have made a link
            output.write(generate_latest(registry))
            os.fchmod(descriptor, 0o644)  # for another user to read, whatever the watcher keeps to itself
        Path(written).replace(file)
    except OSError as error:
        if written is not None:
            Path(written).unlink(missing_ok=True)
        if complain:
            print(f"unveil: {file}: {error.strerror}", file=sys.stderr)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
