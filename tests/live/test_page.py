"""The page for a person, in a real browser: keys pressed by the test give the expected trace."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import envrate as er
from envrate import live
from envrate.envs._build import as_renderer as renderer_of

pytest.importorskip("websockets")
from websockets.asyncio.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")

TASK = er.tasks.get("choice8").replace(tick_ms=400, micro_turn_ms=100, horizon_ms=800)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --autoplay-policy=no-user-gesture-required"
).split()


class Page:
    """A page driven over the browser's own debugging protocol."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.number = socket, 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            reply = json.loads(await self.socket.recv())
            if reply.get("id") == self.number:
                return dict(reply["result"])

    async def value(self, expression: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def until(self, expression: str, seconds: float = 20.0) -> Any:
        async with asyncio.timeout(seconds):
            while not (value := await self.value(expression)):
                await asyncio.sleep(0.02)
        return value

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")


async def open_page(tmp_path: Path, address: str) -> tuple[subprocess.Popen[bytes], Page]:
    assert CHROMIUM is not None
    profile = tmp_path / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", address]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port_file, deadline = profile / "DevToolsActivePort", time.monotonic() + 60
    while not port_file.exists() and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    port = port_file.read_text().splitlines()[0]
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as reply:
            pages = [p for p in json.load(reply) if p["type"] == "page" and p["url"].startswith(address)]
        if pages:
            break
        await asyncio.sleep(0.1)
    return process, Page(await connect(pages[0]["webSocketDebuggerUrl"], max_size=None))


async def check_legend(page: Page, modality: str) -> None:
    """A card per state, in words, with an example that the browser could load."""
    cards = "document.querySelectorAll('#legend figure')"
    assert await page.value(f"{cards}.length") == 8
    meanings = renderer_of(modality).legend(TASK).meanings
    assert await page.value(f"{cards}[3].querySelector('span').textContent") == meanings[3]
    assert await page.value(f"{cards}[3].querySelector('b').textContent") == f"3: press {TASK.response[3]}"
    if modality == "video":
        loaded = "[...document.querySelectorAll('#legend img')].filter(i => i.naturalWidth === 64).length"
        await page.until(f"{loaded} === 8")
    if modality == "audio":
        length = "[...document.querySelectorAll('#legend audio')].filter(a => Math.abs(a.duration - 0.4) < 0.01).length"
        await page.until(f"{length} === 8")


@pytest.mark.parametrize("modality", ["symbols", "audio", "video"])
def test_keys_become_the_expected_trace(tmp_path: Path, modality: str) -> None:
    traces: list[er.Trace] = []
    shown: dict[str, Any] = {}
    pressed: list[int] = []

    async def main() -> None:
        async with live.Server(TASK, modality=modality, num_ticks=12, on_trace=traces.append) as server:
            host, port = server.address
            process, page = await open_page(tmp_path, f"http://{host}:{port}/")
            try:
                await page.until("!document.getElementById('start').disabled", 60)
                await check_legend(page, modality)
                await page.call("Runtime.evaluate", expression="document.getElementById('start').click()")
                await page.until("document.body.dataset.state === 'running' && Number(document.body.dataset.step) > 8")
                for key in (3, 7, 1):
                    await page.press(str(key))
                    pressed.append(key)
                    await asyncio.sleep(0.15)
                await page.press("9")  # no such response: nothing is sent
                if modality != "symbols":
                    hidden = {"audio": "strip", "video": "picture"}[modality]
                    shown["drawn"] = not await page.value(f"document.getElementById('{hidden}').hidden")
                await page.until("document.body.dataset.state === 'over'", 40)
                shown["bye"] = await page.value("document.getElementById('bye').textContent")
                await page.call("Page.captureScreenshot")
            finally:
                await page.socket.close()
                process.terminate()
                process.wait(20)
            async with asyncio.timeout(20):
                while not traces:
                    await asyncio.sleep(0.05)

    asyncio.run(main())
    (trace,) = traces
    assert trace.responses["value"].tolist() == pressed
    assert (trace.responses["tick"] >= 0).all()
    assert trace.header.clock == "wall"
    assert shown.get("drawn", True)
    assert "frontier" in shown["bye"] or "Over" in shown["bye"]
