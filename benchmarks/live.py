"""How well the live runner keeps its clock, and whether it grows: prints one table.

Run as `python benchmarks/live.py`, on a machine that does nothing else; a full run takes about two minutes.
"""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

import envrate as er
from envrate import live

TASK = er.tasks.get("alert").replace(micro_turn_ms=200, tick_ms=600)


def resident_mb() -> float:
    """Resident memory of this process, MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def quiet(observation: Any, state: Any) -> tuple[live.Action, Any]:
    """Does nothing."""
    return live.Action(), state


def scheduling(modality: str) -> dict[str, float]:
    """p50 and p99 of the scheduling error over about 20 s, ms."""
    trace = live.run(TASK, quiet, modality=modality, num_ticks=30)
    return trace.header.extra["scheduling_error_ms"]  # type: ignore[no-any-return]


async def _play(url: str) -> None:
    async with connect(url, max_size=None) as connection:
        await connection.recv()
        await connection.send('{"type":"start"}')
        while True:
            frame = await connection.recv()
            if isinstance(frame, str) and json.loads(frame)["type"] == "bye":
                return


async def _crowd(modality: str, count: int) -> list[dict[str, float]]:
    traces: list[er.Trace] = []
    async with live.Server(TASK, modality=modality, num_ticks=25, on_trace=traces.append) as server:
        host, port = server.address
        await asyncio.gather(*(_play(f"ws://{host}:{port}/ws") for _ in range(count)))
    return [trace.header.extra["scheduling_error_ms"] for trace in traces]


def growth() -> tuple[float, float]:
    """Resident memory after one and after ten minutes of a world that runs ten times as fast, MB."""
    seen: list[float] = []

    def watching(observation: Any, state: Any) -> tuple[live.Action, Any]:
        count = (state or 0) + 1
        if count % 300 == 0:  # each minute of the world
            gc.collect()
            seen.append(resident_mb())
        return live.Action(), count

    live.run(TASK, watching, modality="video", num_ticks=1000, speed=10.0)
    return seen[0], seen[-1]


def main() -> None:
    """Measures and prints."""
    print("| what | p50 | p99 |\n|---|---:|---:|")
    for modality in ("symbols", "audio", "video"):
        error = scheduling(modality)
        print(f"| scheduling error, {modality}, micro-turn 200 ms (ms) | {error['p50']:.2f} | {error['p99']:.2f} |")
    for modality in ("symbols", "audio"):
        errors = asyncio.run(_crowd(modality, 8))
        p50, p99 = (max(e[q] for e in errors) for q in ("p50", "p99"))
        print(f"| the same, worst of 8 WebSocket episodes at once, {modality} (ms) | {p50:.2f} | {p99:.2f} |")
    first, last = growth()
    print(f"\nResident memory of a ten-minute video run: {first:.0f} MB after one minute, {last:.0f} MB after ten.")


if __name__ == "__main__":
    main()
