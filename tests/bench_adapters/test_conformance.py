"""The public conformance check: the built-in adapters pass, and adapters that break the contract are found out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envrate.bench_adapters import Recognition, check_adapter
from envrate.bench_adapters.tvbench import ADAPTER
from envrate.rd import Bracket
from envrate.trace import Header, Stratum, Trace

sys.path.insert(0, str(Path(__file__).parent / "tvbench"))
from tvbench_writers import WRITERS, questions

ITEMS = 240
MADE = questions(ITEMS)


@pytest.mark.parametrize("kind", WRITERS)
def test_tvbench_conforms(kind: str) -> None:
    found = check_adapter(ADAPTER, lambda folder, order: WRITERS[kind](folder, MADE, order), items=ITEMS)
    assert found.constant == pytest.approx(0.0, abs=1e-6)
    assert found.shuffled <= found.noise < 0.1 * found.run


class Toy:
    """A benchmark of yes and no in a text file of two columns: the key and the reply. Breaks the contract on demand."""

    name = "toy"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def recognise(self, path: Path) -> Recognition | None:
        return Recognition("toy", "toy run") if path.suffix == ".toy" else None

    def load(self, path: Path) -> Trace:
        rows = [line.split() for line in path.read_text().splitlines()]
        if self.fault == "drops wrong answers":
            rows = [row for row in rows if row[0] == row[1]]
        key = np.array([1 + (row[0] == "y") for row in rows])
        reply = np.array([1 + (row[1] == "y") for row in rows])
        if self.fault == "keeps silent where wrong":
            reply = np.where(reply == key, reply, 0)
        if self.fault == "takes the better of two":
            reply = np.where(np.random.default_rng(0).random(len(rows)) < 0.3, key, reply)
        pmf = (0.0, 0.3, 0.7) if self.fault == "unbalanced" else (0.0, 0.5, 0.5)
        header = Header(
            tick_ms=1000, micro_turn_ms=100, horizon_ms=1000, strata=(Stratum("yes or no", pmf, ((1, 2),)),),
            demand=Bracket(1.0, 1.0, kind="exact" if self.fault == "not nominal" else "nominal"),
            duration_ms=1000 * len(rows), items=len(rows), source="toy",
        )
        said = np.flatnonzero(reply)
        ticks = {"episode": np.arange(len(rows)), "tick": np.zeros_like(key), "required": key}
        return Trace(header, ticks, {"episode": said, "tick": np.zeros_like(said), "value": reply[said]})


def _write(folder: Path, order: Any) -> Path:
    rng = np.random.default_rng(5)
    key = np.arange(ITEMS) % 2
    reply = np.where(rng.random(ITEMS) < 0.85, key, 1 - key)[order]
    path = folder / "run.toy"
    path.write_text("".join(f"{'ny'[k]} {'ny'[r]}\n" for k, r in zip(key, reply, strict=True)))
    return path


def test_an_honest_adapter_passes() -> None:
    found = check_adapter(Toy(), _write, items=ITEMS)
    # 85 % right of two: 1 - H(0.15) = 0.390 bits, give or take the draw.
    assert found.run == pytest.approx(0.39, abs=0.1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("drops wrong answers", "ticks that are due depend"),
        ("keeps silent where wrong", "more than noise"),
        ("takes the better of two", "more than noise"),
        ("unbalanced", "balanced law"),
        ("not nominal", "nominal"),
    ],
)
def test_a_broken_contract_is_found(fault: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        check_adapter(Toy(fault), _write, items=ITEMS)


def test_a_run_that_tests_nothing_is_refused() -> None:
    def guessing(folder: Path, order: Any) -> Path:
        return _write(folder, np.random.default_rng(0).permutation(ITEMS))

    with pytest.raises(AssertionError, match="could not fail"):
        check_adapter(Toy(), guessing, items=ITEMS)
    with pytest.raises(ValueError, match="at least 50"):
        check_adapter(Toy(), _write, items=10)
