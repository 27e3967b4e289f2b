"""The report: self-contained, and what a browser shows are the frontier's own numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import envrate as er
from envrate.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def run() -> er.Trace:
    trace = er.rollout("alert-probed", "reactive", link="worked", num_envs=20, num_ticks=100, seed=0)
    assert isinstance(trace, er.Trace)
    return trace


@pytest.fixture(scope="module")
def page(run: er.Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(run, tmp_path_factory.mktemp("report") / "run.html", latency_ms=300)


def test_it_needs_no_network(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"'#][^"']*)""", text)
    assert [link for link in links if not link.startswith("#")] == []
    assert "<script" not in text
    assert "@import" not in text and "url(http" not in text


def test_sections_of_a_probed_run(page: Path) -> None:
    text = page.read_text()
    for heading in ("Frontier", "Where the gap comes from", "Restraint within 300 ms", "Latency of the responses",
                    "Ten seconds of it", "The demand and its certificate", "How to read this page"):  # fmt: skip
        assert f"<h2>{heading}</h2>" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
def test_a_browser_shows_the_frontiers_numbers(run: er.Trace, page: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    shown = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip

    def text_of(identifier: str) -> str:
        found = re.search(rf'id="{identifier}"[^>]*>([^<]*)<', shown)
        assert found is not None, identifier
        return found.group(1)

    point = er.frontier(run).at(300)
    assert text_of("demand") == "2.0000 bits/s"
    assert text_of("credited") == f"{point.credited:.4f} bits/s"
    assert text_of("interval") == f"{point.credited_low:.4f} … {point.credited_high:.4f}"
    assert text_of("gap") == f"{point.gap:.4f} bits/s"
    assert text_of("demand-lower") == "2"
    cells = re.findall(r"<td>([^<]*)</td>", shown[shown.index('<table id="frontier"') :])
    assert f"{point.credited:.4f}" in cells


def test_other_endings_are_refused(run: er.Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ends in .html"):
        write_report(run, tmp_path / "run.pdf")


def test_a_tracking_run_has_a_report(tmp_path: Path) -> None:
    def newest(observation: Any, state: Any) -> tuple[Any, Any]:
        return observation["signal"][:, -1], state

    trace = er.rollout("track", newest, num_envs=20, num_ticks=50, seed=0)
    assert isinstance(trace, er.Trace)
    text = write_report(trace, tmp_path / "track.html").read_text()
    assert "Not split:" in text
