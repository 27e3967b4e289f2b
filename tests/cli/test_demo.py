"""`envrate demo`: the worked example by simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envrate.cli import main
from envrate.cli._demo import heard_by


def demo(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    with pytest.raises(SystemExit) as stop:
        main(("demo", "--json", *arguments))
    assert not stop.value.code
    out, err = capfd.readouterr()
    return json.loads(out), err


@pytest.fixture
def figure(tmp_path: Path) -> Path:
    return tmp_path / "frontier.png"


def test_the_worked_example_at_twenty_thousand_ticks(capfd: pytest.CaptureFixture[str], figure: Path) -> None:
    found, err = demo(capfd, "--out", str(figure))
    assert err == "" and found["ticks"] == 20_000
    assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    demand = found["frontiers"][0]["demand"]
    assert (demand["lower"], demand["upper"], demand["kind"]) == (2.0, 2.0, "exact")
    at = {(row["case"], row["latency_ms"]): row for row in found["summary"]}
    # Two ticks a second, H(A) = 1 bit, 60 % heard by 300 ms. Erasure: 2 * .6. Z-channel: 2 (H(.3) - .5 H(.6)).
    # Symmetric errors, half of the guesses right: 2 (1 - H(.2)).
    for case, bits in (("resolved", 1.2), ("output-only", 0.7916), ("guess", 0.5561)):
        row = at[case, 300]
        assert row["credited"] == pytest.approx(bits, abs=0.04) and row["formula"] == pytest.approx(bits, abs=1e-4)
        assert row["gap"] == pytest.approx(2.0 - bits, abs=0.04)
        assert row["credited_high"] - row["credited_low"] < 0.1
        assert row["credited_low"] <= bits <= row["credited_high"]
        assert row["keeps_up"] == "no"
    for case in ("resolved", "output-only"):
        assert at[case, 600]["gap"] == pytest.approx(0.0, abs=1e-9) and at[case, 600]["keeps_up"] == "yes"
    assert found["frontiers"][0]["keeps_up_at_ms"] == 600
    assert found["frontiers"][1]["keeps_up_at_ms"] is None


def test_a_coarser_grid_is_explained(capfd: pytest.CaptureFixture[str], figure: Path) -> None:
    found, _ = demo(capfd, "--micro-turn-ms", "200", "--ticks", "2000", "--out", str(figure))
    (grid,) = [sentence for sentence in found["explanation"] if sentence.startswith("Grid")]
    assert "only 30% of the ticks" in grid and "60% by 400 ms" in grid and "all by 800 ms" in grid
    at = {(row["case"], row["latency_ms"]): row for row in found["summary"]}
    assert at["resolved", 300]["formula"] == pytest.approx(0.6) and at["guess", 300]["formula"] is None
    assert at["resolved", 300]["credited"] == pytest.approx(0.6, abs=0.12)  # erasure, 30 % heard
    assert at["resolved", 600]["keeps_up"] != "yes"


@pytest.mark.parametrize("micro_turn", [100, 200, 150, 70, 500])
def test_the_share_heard_is_that_of_a_loop_over_ticks(micro_turn: int) -> None:
    for level in (300, 450, 600, 800):
        seen = [
            share
            for i in range(micro_turn * 2)
            for delay, share in ((300, 0.6), (600, 0.4))
            if int(np.ceil((500 * i + delay) / micro_turn)) * micro_turn - 500 * i <= level
        ]
        assert heard_by(level, micro_turn) == pytest.approx(sum(seen) / (micro_turn * 2))


def test_without_json_it_prints_a_table_and_why(capfd: pytest.CaptureFixture[str], figure: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main(("demo", "--ticks", "800", "--out", str(figure)))
    assert not stop.value.code
    out, _ = capfd.readouterr()
    assert "by formula" in out and "Z-channel" in out and "Figure:" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ticks", "10"), "--ticks: expected an integer >= 800, got 10"),
        (("--micro-turn-ms", "0"), "--micro-turn-ms: expected an integer in [1, 500] ms, got 0"),
        (("--out", "picture.tiff", "--ticks", "800"), "expected a name that ends in .png, .svg or .pdf"),
    ],
)
def test_bad_arguments_are_one_line(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(("demo", *arguments))
    assert stop.value.code == 2
    out, err = capfd.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
