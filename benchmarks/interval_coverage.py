"""How often 95 % intervals hold the truth: simulated experiments with known truth.

    python benchmarks/interval_coverage.py                      # 2000 experiments per case, 15 minutes on one core
    python benchmarks/interval_coverage.py --experiments 200

Writes benchmarks/results/interval_coverage.json and prints a table. Aims: 93.5 to 96.5 % for interior truths (every
class of consequences has events), at least 95 % at the boundaries (C = 0, C = demand, no error seen). A case in which
some class can never happen counts as a boundary: the truth has frequencies of 0, and the run does not know that, so
the interval has to allow for more. "erasure" lies on a second edge: its bound on e is the largest of two equal
shares, a maximum that counts overestimate.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envrate.scorers import CreditedRate, Tally, frontier, profile
from envrate.task import Task
from envrate.trace import Header

SILENT = 8  # kinds of silence before the responses in a tally
HEARD, UNHEARD = 0, 4
RESULT = Path(__file__).parent / "results" / "interval_coverage.json"


@dataclass(frozen=True)
class Case:
    """A known truth and how to draw an experiment from it."""

    name: str
    kind: str  # interior, boundary, forbidden
    law: tuple[float, ...]
    table: tuple[tuple[float, ...], ...]  # (A, A + 2): silence, responses, unknown which, not delivered
    ticks: int
    reading: str = "output-only"
    stay: float = 0.0  # probability that a tick's luck is the tick's before
    episodes: int = 1
    spread: float = 0.0  # of the share of lucky ticks from episode to episode

    @property
    def task(self) -> Task:
        """A memoryless task with one symbol per state."""
        return Task(
            latent={"kind": "markov", "transition": (self.law,) * len(self.law)},
            response=tuple(range(len(self.law))),
            tick_ms=1000,
            micro_turn_ms=1000,
            horizon_ms=1000,
        )

    def truth(self) -> float:
        """C in bits/s of the population."""
        rates = []
        for resolved in (False, True):
            classes = profile(self.law, resolved=resolved)
            table = np.array(self.table)
            if not resolved:
                table[:, 0] += table[:, -1]
                table[:, -1] = 0.0
            rates.append(float(CreditedRate(classes).lower(classes.frequencies(table))))
        return rates[0] if self.reading == "output-only" else max(rates)

    def luck(self, rng: np.random.Generator) -> np.ndarray:
        """(ticks,) uniform numbers, sticky in time or different from episode to episode."""
        draw = rng.random(self.ticks)
        if self.stay:
            fresh = rng.random(self.ticks) >= self.stay
            fresh[0] = True
            draw = draw[np.maximum.accumulate(np.where(fresh, np.arange(self.ticks), 0))]
        if self.spread:  # a mixture of easy and hard episodes whose mean is the table
            hard = np.repeat(rng.random(self.episodes) < 0.5, self.ticks // self.episodes)
            s = self.spread  # density 1 + s (1 - 2u) in easy episodes, its mirror image in hard ones
            easy = ((1 + s) - np.sqrt((1 + s) ** 2 - 4 * s * draw)) / (2 * s)
            draw = np.where(hard, 1.0 - easy, easy)
        return draw

    def experiment(self, rng: np.random.Generator, header: Header) -> Tally:
        """Counts of one run, in up to 250 stretches of ticks, or by episode where there are many."""
        size = len(self.law)
        required = rng.choice(size, self.ticks, p=self.law)
        cumulative = np.cumsum(_right_first(np.array(self.table)), axis=1)
        column = (self.luck(rng)[:, None] >= cumulative[required]).sum(axis=1)
        column = np.minimum(column, size + 1)
        column = np.where(column == 0, required, np.where(column <= required, column - 1, column))
        kinds = np.array([HEARD, *range(SILENT, SILENT + size), UNHEARD])
        blocks = self.episodes if self.episodes > 1 else min(self.ticks, 2048 if self.stay else 250)
        block = np.arange(self.ticks) * blocks // self.ticks
        counts = np.zeros((blocks, 1, size, size + SILENT), dtype=np.int64)
        np.add.at(counts, (block, 0, required, kinds[column]), 1)
        return Tally(header, np.array([1000]), (counts,), np.arange(blocks) * (self.episodes > 1), self.episodes > 1)


def _right_first(table: np.ndarray) -> np.ndarray:
    """(A, A + 2) shares with the handled outcome first and the rest in order."""
    out = table.copy()
    for a in range(len(table)):
        out[a] = np.concatenate([[table[a, a]], np.delete(table[a], a)])
    return out


def binary(miss: float, over: float, unheard: float = 0.0) -> tuple[tuple[float, ...], ...]:
    """Table of a binary source."""
    return (
        (1 - over - unheard, over, 0.0, unheard),
        (miss, 1 - miss - unheard, 0.0, unheard),
    )


TERNARY = ((0.85, 0.1, 0.05, 0.0, 0.0), (0.2, 0.7, 0.1, 0.0, 0.0), (0.15, 0.15, 0.7, 0.0, 0.0))
WEAK = ((0.64, 0.2, 0.16, 0.0, 0.0), (0.5, 0.3, 0.2, 0.0, 0.0), (0.5, 0.22, 0.28, 0.0, 0.0))
HALF, SKEWED, THREE = (0.5, 0.5), (0.8, 0.2), (0.6, 0.2, 0.2)
CASES = (
    Case("symmetric errors", "interior", HALF, binary(0.2, 0.2), 1000),
    Case("symmetric errors, short", "interior", HALF, binary(0.2, 0.2), 300),
    Case("rare alerts", "interior", SKEWED, binary(0.3, 0.05), 2000),
    Case("small errors", "interior", HALF, binary(0.03, 0.02), 2000),
    Case("large errors", "interior", HALF, binary(0.4, 0.35), 2000),
    Case("three symbols", "interior", THREE, TERNARY, 2000),
    Case("errors, and erasure", "interior", HALF, binary(0.1, 0.05, 0.3), 2000, "resolved"),
    Case("sticky failures", "interior", HALF, binary(0.3, 0.3), 5000, stay=0.8),
    Case("40 unequal episodes", "interior", HALF, binary(0.3, 0.2), 2000, episodes=40, spread=0.5),
    Case("three symbols, weak", "interior", THREE, WEAK, 2000),
    Case("Z-channel", "forbidden", HALF, binary(0.4, 0.0), 2000),
    Case("erasure", "forbidden", HALF, binary(0.0, 0.0, 0.4), 2000, "resolved"),
    Case("C = 0: guesses", "boundary", HALF, binary(0.5, 0.5), 1000),
    Case("C = 0: rare guesses", "boundary", SKEWED, binary(0.9, 0.1), 1000),
    Case("C = 0: three symbols", "boundary", THREE, ((0.6, 0.2, 0.2, 0, 0),) * 3, 1000),
    Case("C = 0: never acts", "boundary", HALF, binary(1.0, 0.0), 1000),
    Case("C = demand", "boundary", HALF, binary(0.0, 0.0), 400),
    Case("no error seen in 200", "boundary", HALF, binary(0.004, 0.004), 400),
    Case("few errors seen", "boundary", HALF, binary(0.01, 0.01), 400),
)


def measure(case: Case, experiments: int, resamples: int, seed: int) -> dict[str, object]:
    header = Header.for_task(case.task, link={"kind": "link"})
    truth = case.truth()
    ends = np.empty((experiments, 2))
    start = time.perf_counter()
    for k in range(experiments):
        rng = np.random.default_rng((seed, CASES.index(case), k))
        point = frontier(case.experiment(rng, header), seed=k, resamples=resamples).at(1000, case.reading)
        ends[k] = point.credited_low, point.credited_high
    below, above = ends[:, 1] < truth - 1e-9, ends[:, 0] > truth + 1e-9
    share = 1.0 - float((below | above).mean())
    return {
        "case": case.name,
        "kind": case.kind,
        "truth": truth,
        "ticks": case.ticks,
        "coverage": share,
        "standard_error": float(np.sqrt(max(share * (1 - share), 1e-9) / experiments)),
        "truth_above": float(below.mean()),
        "truth_below": float(above.mean()),
        "width": float((ends[:, 1] - ends[:, 0]).mean()),
        "within_aim": 0.935 <= share <= 0.965 if case.kind == "interior" else share >= 0.95,
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", help="only cases whose name contains this; others keep their result")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    rows = []
    print(f"{'case':28s}{'kind':11s}{'truth':>8s}{'coverage':>10s}{'above':>8s}{'below':>8s}{'width':>8s}")
    for case in (case for case in CASES if given.case is None or given.case in case.name):
        row = measure(case, given.experiments, given.resamples, given.seed)
        rows.append(row)
        figures = "".join(f"{row[key]:8.4f}" for key in ("truth_above", "truth_below", "width"))
        mark = "" if row["within_aim"] else "  outside the aim"
        print(f"{case.name:28s}{case.kind:11s}{row['truth']:8.4f}{row['coverage']:10.4f}{figures}{mark}", flush=True)
    settings = {"experiments": given.experiments, "resamples": given.resamples, "seed": given.seed}
    old = json.loads(given.out.read_text()) if given.out.exists() else {}
    kept = old.get("cases", []) if all(old.get(key) == value for key, value in settings.items()) else []
    found = {row["case"]: row for row in [*kept, *rows]}
    body = settings | {"cases": [found[case.name] for case in CASES if case.name in found]}
    given.out.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
