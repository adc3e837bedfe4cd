"""The metrics endpoint as a monitoring system meets it: real scrapes, a real file, children that die."""

from __future__ import annotations

import os
import signal
import socket
import stat
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from unveil.engine import metrics_link
from unveil.engine.metrics import Family, FamilyKind
from unveil.engine.metrics_link import MetricsLink, parse_address, parse_file
from unveil.errors import BadInputError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOSTILE = 'a"b\\c\nd{e="f"} 1\n# TYPE x counter'
FAMILIES = (
    Family(name="unveil_ticks", kind=FamilyKind.COUNTER, help='Ticks.\nOf "two" lines.', samples=(((), 7.0),)),
    Family(name="unveil_open", kind=FamilyKind.GAUGE, help="Open.", labels=("who",), samples=(((HOSTILE,), 2.0),)),
    Family(name="unveil_build", kind=FamilyKind.INFO, help="Build.", labels=("version",), samples=((("1.0",), 1.0),)),
)


@pytest.fixture
def link_of() -> Iterator[Callable[..., MetricsLink]]:
    links: list[MetricsLink] = []

    def make(**keywords: str) -> MetricsLink:
        link = MetricsLink(**keywords)
        links.append(link)
        return link

    yield make
    for link in links:
        link.close()


def scrape(link: MetricsLink, *, openly: bool = True) -> str:
    accept = "application/openmetrics-text; version=1.0.0" if openly else "text/plain"
    request = urllib.request.Request(f"http://127.0.0.1:{link.port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def samples(text: str, *, openly: bool = True) -> dict[tuple[str, tuple[str, ...]], float]:
    parse = open_metrics if openly else plain_text
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def until(link: MetricsLink, done: Callable[[], bool], families: tuple[Family, ...] = FAMILIES) -> None:
    end = time.monotonic() + 90
    while not done():
        began = time.monotonic()
        starts = link.starts
        link.poll(time.monotonic_ns(), lambda: families)
        assert link.starts > starts or time.monotonic() - began < 30, "nothing makes the watcher wait"
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_scrape_is_what_the_watcher_told_in_both_formats_with_hostile_names_escaped(link_of) -> None:
    link = link_of(listen="0")
    until(link, lambda: link.starts == 1)
    until(link, lambda: "unveil_ticks" in scrape(link))
    for openly in (True, False):
        found = samples(scrape(link, openly=openly), openly=openly)
        assert found["unveil_ticks_total", ()] == 7.0
        assert found["unveil_open", (HOSTILE,)] == 2.0
        assert found["unveil_build_info", ("1.0",)] == 1.0
        assert 0 <= found["unveil_told_age_seconds", ()] < 100


def test_the_textfile_is_whole_readable_by_others_and_gone_when_the_watcher_ends(
    link_of, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(metrics_link, "EVERY_NS", 0)
    file = tmp_path / "unveil.prom"
    link = link_of(file=str(file))
    before = os.umask(0o077)
    try:
        until(link, file.exists)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    inode = file.stat().st_ino
    until(link, lambda: file.stat().st_ino != inode)
    for _ in range(20):  # renamed into place: never half of it
        assert samples(file.read_text(), openly=False)["unveil_open", (HOSTILE,)] == 2.0
        link.poll(time.monotonic_ns(), lambda: FAMILIES)
    link.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_link_in_the_files_place_is_replaced_and_not_followed(link_of, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    file = tmp_path / "unveil.prom"
    file.symlink_to(victim)
    link = link_of(file=str(file))
    until(link, lambda: not file.is_symlink())
    assert victim.read_text() == "mine"


@pytest.mark.slow
def test_a_child_that_dies_is_started_again_at_the_same_port(link_of) -> None:
    link = link_of(listen="127.0.0.1:0")
    until(link, lambda: link.pid is not None)
    port, pid = link.port, link.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(link, lambda: link.starts == 2)
    assert link.port == port
    until(link, lambda: "unveil_ticks" in scrape(link))


@pytest.mark.slow
def test_a_child_that_does_not_read_makes_nobody_wait_and_is_told_less(link_of, monkeypatch) -> None:
    monkeypatch.setattr(metrics_link, "EVERY_NS", 0)
    much = (
        Family(name="x", kind=FamilyKind.GAUGE, help="x" * 1000, labels=("n",), samples=FAMILIES[1].samples * 9000),
    )
    link = link_of(listen="0")
    until(link, lambda: link.pid is not None)
    assert link.pid is not None
    os.kill(link.pid, signal.SIGSTOP)
    asked = 0
    for _ in range(20):
        began = time.monotonic()
        link.poll(time.monotonic_ns(), lambda: much)
        asked = max(asked, len(link._unsent))
        assert time.monotonic() - began < 30, "who waited for the child would wait for ever"
    assert 0 < asked < 2 << 20, "one line waits, and no second one is made"
    os.kill(link.pid, signal.SIGCONT)


@pytest.mark.slow
def test_silent_clients_lock_nobody_out_for_long(link_of) -> None:
    link = link_of(listen="0")
    until(link, lambda: link.starts == 1)
    until(link, lambda: "unveil_ticks" in scrape(link))
    assert link.port is not None
    silent = [socket.create_connection(("127.0.0.1", link.port)) for _ in range(3)]
    assert "unveil_ticks" in scrape(link)
    for each in silent:
        each.close()


def test_a_port_in_use_is_said_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RefusedError, match="cannot be served"):
        MetricsLink(listen=str(taken.getsockname()[1]))


@pytest.mark.parametrize(
    "text", ["0.0.0.0:9464", "192.0.2.1:9464", "[::]:9464", "x:1", "9464:", "", "-1", "70000", "１２"]
)
def test_only_the_loopback_is_served(text: str) -> None:
    with pytest.raises(BadInputError):
        parse_address(text)


def test_addresses_are_read_in_their_usual_forms() -> None:
    assert parse_address("9464") == parse_address(":9464") == parse_address("localhost:9464") == ("127.0.0.1", 9464)
    assert parse_address("[::1]:80") == ("::1", 80)


def test_a_file_that_the_collector_would_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"\*\.prom"):
        parse_file(str(tmp_path / "unveil.txt"))
    with pytest.raises(BadInputError, match="no folder"):
        parse_file(str(tmp_path / "away" / "unveil.prom"))
