"""A headless Chromium that opens pages, and what happens in it: dialogs, requests, problems."""

import asyncio
import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 60.0

PROBLEMS = ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Runtime.consoleAPICalled",
            "Log.entryAdded")  # fmt: skip


def chromium() -> str:
    """The program; the test is skipped, and says so, where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium here: the page was not opened in a browser")
    return found


class Tab:
    """One tab: what it is told, and all that it reported."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.events: list[dict[str, Any]] = []
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self._answers.pop(found["id"]).set_result(found)
                continue
            self.events.append(found)
            if found["method"] == "Page.javascriptDialogOpening":
                await self._send("Page.handleJavaScriptDialog", accept=False)

    async def _send(self, method: str, **params: Any) -> int:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        return self._number

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command, and return its result."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._number + 1] = answer
        await self._send(method, **params)
        found = await asyncio.wait_for(answer, PATIENCE)
        assert "error" not in found, (method, found)
        return found["result"]

    async def open(self, page: Path) -> None:
        """Open a page, and wait until it is loaded."""
        opened = await self.send("Page.navigate", url=page.as_uri())
        assert "errorText" not in opened, opened
        await self.until("document.readyState === 'complete'")

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = await self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, script: str) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + PATIENCE
        while not (value := await self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            await asyncio.sleep(0.05)
        return value

    async def look(
        self, *, width: int, height: int = 900, dark: bool = False, media: str = "screen"
    ) -> None:
        """Give the page a size, a theme and a medium."""
        await self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                        deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", media=media, features=[theme])

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Dialogs, errors, and lines on the console."""
        return [one for one in self.events if one["method"] in PROBLEMS]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for, besides those that the page holds itself."""
        return [
            one["params"]["request"]["url"]
            for one in self.events
            if one["method"] == "Network.requestWillBeSent"
            and not one["params"]["request"]["url"].startswith("data:")
        ]


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """A tab of a new Chromium, which ends with the context."""
    program = chromium()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        started = await asyncio.create_subprocess_exec(
            program, *FLAGS, f"--user-data-dir={folder}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _port(Path(folder, "DevToolsActivePort"))
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as reply:
                    pages = [one for one in await reply.json() if one["type"] == "page"]
                address = pages[0]["webSocketDebuggerUrl"]
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Network", "Runtime", "Log"):
                        await tab.send(f"{domain}.enable")
                    yield tab
        finally:
            started.terminate()
            await started.wait()


async def _port(file: Path) -> str:
    end = time.monotonic() + PATIENCE
    while not (lines := _lines(file)):
        assert time.monotonic() < end, "Chromium did not start"
        await asyncio.sleep(0.05)
    return lines[0]


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
