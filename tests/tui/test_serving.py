"""The cockpit in a browser: a link that works once, nothing from elsewhere, and no way to act unless asked for."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from unveil.cli import tui_serve
from unveil.cli.main import main
from unveil.engine.control import ControlServer
from unveil_tui.serving import COOKIE, DOWNLOAD, application

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
    "--window-size=1200,720",
)  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def served(command: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve a command; return its address and the links that were told."""
    from aiohttp import web

    port, links = free_port(), []
    runner = web.AppRunner(application(command, f"127.0.0.1:{port}", links.append))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}", links
    finally:
        await runner.cleanup()


async def test_without_a_token_there_is_no_entry_and_a_token_works_once() -> None:
    async with (
        served("true") as (address, links),
        aiohttp.ClientSession() as stranger,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as guest,
    ):
        page = links[0].partition("?")[0]
        paths = ("", "?token=", "?token=guess", "ws", "static/js/textual.js", "download/x", "none")
        for path in [each + path for each in (f"{address}/", page) for path in paths]:
            async with stranger.get(path) as answer:
                assert answer.status == 403, path
                assert "no entry" in await answer.text()
        async with guest.get(links[0]) as answer:
            assert answer.status == 200
            assert "data-session-websocket-url" in await answer.text()
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert len(links) == 2, "the next link is told as soon as one was used"
        async with stranger.get(links[0]) as answer:
            assert answer.status == 403
        async with guest.get(f"{page}static/js/textual.js") as answer:
            assert answer.status == 200
        async with guest.get(f"{address}/download/gone") as answer:
            assert answer.status == 404


async def test_another_name_for_this_address_and_another_page_get_nothing() -> None:
    async with served("true") as (address, links), aiohttp.ClientSession() as guest:
        async with guest.get(links[0], allow_redirects=False) as answer:
            cookie = answer.cookies[COOKIE]
            page = links[0].partition("?")[0]
            assert address + cookie["path"] == page, "another port of this host is sent it only below this very path"
            assert len(cookie["path"]) > 20
            assert answer.cookies[DOWNLOAD]["path"] == "/download/"
            assert cookie["httponly"]
            assert cookie["samesite"] == "Strict"
        entry = {"Cookie": f"{COOKIE}={cookie.value}"}
        async with guest.get(page, headers={**entry, "Host": "evil.example"}) as answer:
            assert answer.status == 403
        for origin in ({}, {"Origin": "http://evil.example"}):
            async with guest.get(f"{page}ws", headers={**entry, **origin}) as answer:
                assert answer.status == 403


async def test_what_downloads_may_opens_nothing_else() -> None:
    async with served("true") as (address, links), aiohttp.ClientSession() as guest:
        async with guest.get(links[0], allow_redirects=False) as answer:
            stolen = answer.cookies[DOWNLOAD].value
        page = links[0].partition("?")[0]
        for name in (COOKIE, DOWNLOAD):
            for path in ("", "ws"):
                async with guest.get(page + path, headers={"Cookie": f"{name}={stolen}", "Origin": address}) as answer:
                    assert answer.status == 403


def arguments(**changed: Any) -> SimpleNamespace:
    given = {
        "replay": None,
        "socket": None,
        "state_dir": None,
        "kb": "",
        "speed": 20.0,
        "read_only": False,
        "act": False,
    }
    return SimpleNamespace(**{**given, **changed})


def test_it_only_looks_unless_acting_was_asked_for(tmp_path: Path) -> None:
    hostile = tmp_path / "a b; touch x"
    words = shlex.split(tui_serve.command(arguments(socket=[hostile])))  # type: ignore[arg-type]  # what argparse makes
    assert words[-1] == "--read-only"
    assert words[-2] == str(hostile)
    assert shlex.split(tui_serve.command(arguments(act=True)))[-1] != "--read-only"  # type: ignore[arg-type]  # as above
    both = tui_serve.command(arguments(act=True, read_only=True, replay="x.parquet"))  # type: ignore[arg-type]  # as above
    assert shlex.split(both)[-1] == "--read-only"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--serve", "--listen", "example.org"], "takes an address"),
        (["--serve", "--port", "0"], "between 1 and 65535"),
        (["--act"], "belongs to --serve"),
    ],
)
def test_wrong_flags_are_said(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tui", *flags]) == 3
    assert says in capsys.readouterr().err


def test_without_textual_serve_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "unveil_tui.serving")
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    assert main(["tui", "--serve"]) == 3
    assert "pip install 'unveil[serve]'" in capsys.readouterr().err


# In a real browser


class Browser:
    """A page of headless Chromium, driven over its DevTools protocol."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._number = 0
        self.drawn = ""  # what the terminal on the page was sent, without escapes

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        await self._connection.send_json({"id": self._number, "method": method, "params": params})
        while True:
            told = json.loads(await self._connection.receive_str(timeout=20))
            if told.get("id") == self._number:
                return dict(told.get("result", {}))
            self._take(told)

    def _take(self, told: dict[str, Any]) -> None:
        if told.get("method") == "Network.webSocketFrameReceived":
            frame = told["params"]["response"]
            text = frame["payloadData"]
            if frame["opcode"] == 2:
                text = base64.b64decode(text).decode("utf-8", "replace")
            self.drawn += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", text)

    async def look(self, wanted: str, *, seconds: float = 30) -> None:
        """Wait until the page was sent a text."""
        end = time.monotonic() + seconds
        while wanted not in self.drawn:
            assert time.monotonic() < end, f"{wanted!r} is not in …{self.drawn[-3000:]}"
            await self.call("Runtime.evaluate", expression="1")
            await asyncio.sleep(0.1)

    async def reads(self, wanted: str, *, seconds: float = 30) -> None:
        """Wait until a text stands on the page."""
        end = time.monotonic() + seconds
        while True:
            told = await self.call("Runtime.evaluate", expression="document.body ? document.body.innerText : ''")
            if wanted in (text := str(told["result"].get("value", ""))):
                return
            assert time.monotonic() < end, f"{wanted!r} is not in {text[:500]}"
            await asyncio.sleep(0.1)

    async def press(self, key: str, code: int, text: str = "") -> None:
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def picture(self) -> bytes:
        told = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(told["data"])


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    assert CHROMIUM
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"], stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 30
        while not (folder / "DevToolsActivePort").exists():
            assert time.monotonic() < end, (folder / "chromium.log").read_text()
            await asyncio.sleep(0.1)
        port = (folder / "DevToolsActivePort").read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                page = next(each for each in await answer.json() if each["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as connection:
                found = Browser(connection)
                for domain in ("Page", "Network", "Runtime"):
                    await found.call(f"{domain}.enable")
                yield found
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def watched(watcher: Any, tmp_path: Path) -> Iterator[Path]:
    """Serve the scripted watcher at a real control socket, a window a second."""
    path, stopping = tmp_path / "control.sock", threading.Event()
    server = ControlServer(path, lambda method, params, _actor: watcher.call(method, **params))

    def live() -> None:
        due = time.monotonic() + 1
        while not stopping.is_set():
            server.serve_until(time.monotonic_ns() + 50_000_000)
            if time.monotonic() >= due:
                due += 1
                watcher.push()
        server.close()

    thread = threading.Thread(target=live)
    thread.start()
    yield path
    stopping.set()
    thread.join()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
async def test_a_browser_sees_live_windows_and_cannot_act(watcher: Any, watched: Path, tmp_path: Path) -> None:
    port = free_port()
    served = subprocess.Popen(
        [sys.executable, "-m", "unveil", "tui", "--serve", "--port", str(port), "--socket", str(watched)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert served.stdout
    try:
        link = (await asyncio.to_thread(served.stdout.readline)).removeprefix("open ").strip()
        profile = tmp_path / "profile"
        profile.mkdir()
        async with browser(profile) as page:
            await page.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
            await page.reads("no entry")  # no token
            await page.call("Page.navigate", url=link)
            await page.look("READ-ONLY")
            await page.look("gpu-node-17")
            newest = watcher.windows[-1].index
            await page.look(str(newest + 2))
            for key, code, text in (("Tab", 9, ""), ("r", 82, "r")):
                await page.press(key, code, text)
                await asyncio.sleep(0.5)
            await page.look("it only looks")
            picture = await page.picture()
            assert len(picture) > 20_000, "something is drawn"
            assert watcher.orders == []
            await page.call("Page.navigate", url=link)
            await page.reads("no entry")  # a link works once
    finally:
        served.terminate()
        served.wait(20)
        served.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    CHROMIUM is None or "UNVEIL_PICTURES" not in os.environ, reason="draws docs/cockpit-browser.png, by hand"
)
async def test_the_demos_recording_in_a_browser_for_the_documents(tmp_path: Path) -> None:
    port = free_port()
    served = subprocess.Popen(
        [sys.executable, "-m", "unveil", "tui", "--serve", "--port", str(port), "--replay", "demo", "--speed", "15"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert served.stdout
    try:
        link = (await asyncio.to_thread(served.stdout.readline)).removeprefix("open ").strip()
        async with browser(tmp_path) as page:
            await page.call("Page.navigate", url=link)
            await page.look("FIRING", seconds=200)
            for key, code, text in (("Tab", 9, ""), ("r", 82, "r")):
                await page.press(key, code, text)
                await asyncio.sleep(0.5)
            await page.look("it only looks")
            await asyncio.sleep(1)
            with open(f"{os.environ['UNVEIL_PICTURES']}/cockpit-browser.png", "wb") as file:  # noqa: PTH123  # by hand
                file.write(await page.picture())
    finally:
        served.terminate()
        served.wait(20)
        served.stdout.close()
