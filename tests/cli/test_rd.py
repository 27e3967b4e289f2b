"""`envrate rd`: every command by JSON, files in, pictures out, one line of error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envrate.cli import main


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(("rd", *arguments))
    out, err = capfd.readouterr()
    return int(stop.value.code or 0), out, err


def points(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    status, out, err = run(capfd, *arguments, "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert {"title", "unit", "points"} <= set(document)
    return list(document["points"])


def h(p: float) -> float:
    return -sum(x * math.log2(x) for x in (p, 1 - p) if x > 0)


STICKY = "0.9,0.1;0.1,0.9"

CASES = [
    # Closed forms, formulas beside their values.
    (("discrete", "--pmf", "0.7,0.3", "-D", "0.1"), h(0.3) - h(0.1)),
    (("discrete", "--pmf", "0.5,0.5", "--distortion", "0,1;1,0", "--D", "0.25"), 1 - h(0.25)),
    (("gaussian", "-D", "0.25"), 1.0),
    (("gaussian", "-D", "1", "--covariance", "4,0;0,2"), 0.5 * math.log2(8) + 0.5 * math.log2(4)),
    (("process", "--kernel", "ou", "-D", "0.25"), 1.6476751510442034786),
    (("process", "--kernel", "1,0", "--tick-ms", "100", "-D", "0.25"), 1.0),
    (("markov", "--transition", STICKY, "-D", "0.002"), h(0.1) - h(0.002)),
    (("entropy-rate", "--transition", STICKY), h(0.1)),
    (("entropy-rate", "--transition", STICKY, "--emission", STICKY), 0.7665962932317),
    (("causal", "--change", "0.1", "-D", "0.1"), h(0.18) - h(0.1)),
    (("causal", "--transition", "0.9", "--noise", "0.19", "-D", "0.1"), 0.71914642578957343248),
    (("causal", "--transition", "0.9,0.2;-0.1,0.7", "--noise", "0.3,0.05;0.05,0.2", "-D", "0.4"), 0.88926007956132),
    (("remote", "--joint", "0.45,0.05;0.05,0.45", "-D", "0.15"), 1 - h(0.05 / 0.8)),
    (("remote", "--joint", "0.45,0.05;0.05,0.45", "-D", "0.05", "--known"), h(0.1) - h(0.05)),
    (("profile", "--pmf", "0.5,0.5", "--classes", "-1,0;1,-1", "--frequencies", "0,0.2"), h(0.3) - 0.5 * h(0.4)),
    (("profile", "--transition", STICKY, "--classes", "-1,0;1,-1", "--frequencies", "0,0"), h(0.1)),
    (("agreement", "-D", "0.25"), 1.0),
]


@pytest.mark.parametrize(("arguments", "rate"), CASES, ids=[" ".join(case[0][:3]) for case in CASES])
def test_rates_enclose_the_closed_form(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], rate: float
) -> None:
    (point,) = points(capfd, *arguments)
    assert point["lower"] - 1e-9 <= rate <= point["upper"] + 1e-9
    assert point["upper"] - point["lower"] < 1e-8


def test_the_whole_curve(capfd: pytest.CaptureFixture[str]) -> None:
    curve = points(capfd, "discrete", "--pmf", "0.7,0.3", "--num", "9")
    assert [curve[0]["D"], curve[-1]["D"]] == pytest.approx([0.0, 0.3])
    for point in curve:
        assert point["lower"] - 1e-9 <= h(0.3) - h(point["D"]) <= point["upper"] + 1e-9


def test_tables_name_their_unit(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "process", "--kernel", "ou", "-D", "0.25,0.5")
    assert status == 0 and "bits/s" in out and "1.64767515" in out and "0.5" in out
    assert "bits/tick" in run(capfd, "process", "--kernel", "rbf", "--tick-ms", "500", "-D", "0.2")[1]


def test_files_in(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "d.csv"
    table.write_text("y0,y1\n0,1\n1,0\n")
    both = tmp_path / "source.json"
    both.write_text(json.dumps({"pmf": [0.7, 0.3], "distortion": [[0, 1], [1, 0]]}))
    inline = points(capfd, "discrete", "--pmf", "0.7,0.3", "-D", "0.1")
    assert points(capfd, "discrete", "--pmf", str(both), "--distortion", str(table), "-D", "0.1") == inline
    assert points(capfd, "discrete", "--pmf", str(both), "--distortion", str(both), "-D", "0.1") == inline


@pytest.mark.parametrize(
    "arguments",
    [
        ("discrete", "--pmf", "0.7,0.3"),
        ("gaussian", "-D", "0.1,0.5"),
        ("agreement", "-D", "0.25,0.5"),
        ("causal", "--change", "0.1", "-D", "0.1,0.2"),
    ],
)
def test_pictures_out(capfd: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = tmp_path / "rates.png"
    assert run(capfd, *arguments, "--plot", str(path))[0] == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_estimates(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    samples = tmp_path / "xy.csv"
    np.savetxt(samples, np.column_stack([x, x + rng.normal(size=500)]), delimiter=",")
    (point,) = points(capfd, "estimate", str(samples))
    assert point["estimate"] == pytest.approx(0.5, abs=0.15)  # 1/2 log2(1 + 1)
    counts = tmp_path / "counts.json"
    counts.write_text("[4, 2, 3, 0, 2, 4, 0, 0, 2, 1, 1]")
    (point,) = points(capfd, "estimate", str(counts), "--method", "nsb")
    assert point["estimate"] == pytest.approx(2.18777446309 / math.log(2), abs=1e-9)
    table = tmp_path / "table.csv"
    table.write_text("40,10\n10,40\n")
    (point,) = points(capfd, "estimate", str(table), "--method", "plug-in")
    assert point["estimate"] == pytest.approx(1 - h(0.2), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("discrete", "--pmf", "0.7,0.2", "-D", "0.1"), "pmf: sums to 0.9"),
        (("discrete", "--pmf", "0.7,x", "-D", "0.1"), "--pmf: expected a number, got 'x'"),
        (("discrete", "--pmf", "0.7,0.3;1", "-D", "0.1"), "--pmf: expected rows of equal length"),
        (("discrete", "--pmf", "none.csv", "-D", "0.1"), "none.csv"),
        (("markov", "--transition", STICKY, "-D", "-1"), "D: expected a number"),
        (("markov", "--transition", STICKY, "-D", "0.1", "--max-work", "-1"), "max_work: expected a number"),
        (("discrete", "--pmf", "none.csv", "-D", "0.1"), "--pmf: none.csv cannot be read: No such file"),
        (("discrete", "--pmf", "0.7,0.3", "--distortion", "foo"), "--distortion: expected hamming, squared, abs"),
        (("causal", "-D", "0.1"), "--change, --transition"),
        (("process", "--kernel", "linear", "-D", "0.1"), "kernel: expected one of"),
        (("profile", "--classes", "-1,0", "--frequencies", "0"), "--pmf, --transition"),
        (("gaussian",), "--D"),
    ],
)
def test_errors_are_one_line(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run(capfd, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and message in err
