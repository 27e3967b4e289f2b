"""A check that any adapter can be put to: what the rates rest on, tried on runs with their emissions moved about."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate.bench_adapters._adapter import Adapter, Recognition, ScoresItself, ScoreTable
from envrate.bench_adapters._rates import bits_per_item
from envrate.trace import Trace

IntArray = NDArray[np.int64]

#: `write(folder, order)`: writes a run into the empty `folder` and returns the path to load. Item i keeps its question
#: and its key, and is answered with what the system emitted for item `order[i]`.
Writer = Callable[[Path, IntArray], Path]

#: Fewer items cannot tell a leak from noise.
MIN_ITEMS = 50
#: How often the emissions are shuffled, and how many items' emissions are tried as a constant policy.
SHUFFLES, CONSTANTS = 6, 4
#: A rate of a policy that knows nothing is noise up to this many times its expected size.
NOISE_FACTOR = 4.0
#: What the timing of events may carry by luck, in bits per slot.
TIMING_NOISE = 1e-3
#: Rounding of a rate that is 0 by definition.
ZERO = 1e-6


@dataclass(frozen=True)
class Conformance:
    """What `check_adapter` measured, in bits per item."""

    run: float  # the run itself
    shuffled: float  # mean over shuffles of the emissions between items
    constant: float  # largest over constant policies
    noise: float  # what the latter two may be
    items: int


def check_adapter(adapter: Adapter, write: Writer, *, items: int = 200, seed: int = 0, **options: Any) -> Conformance:
    """Raises AssertionError with the reason where an adapter breaks the contract; else returns what was measured.

    1. `recognise` knows the run, `load` gives a valid trace with a nominal, balanced demand, twice the same, that
       survives `save` and `Trace.load`; `scores`, if there is one, gives a table.
    2. Whatever the system emitted, the same ticks are due: none is dropped, added or relabelled.
    3. Emissions shuffled between items carry no bits, within noise.
    4. Constant policies (every item gets one item's emissions) carry none: 0 where only answers count, within noise
       where timing does, since a fixed delay is right more often than chance in some benchmarks.

    The run itself must carry more than the noise, else the check could not fail.

    Args:
        adapter: any object of the `Adapter` protocol.
        write: writes a run of the adapter's format; see `Writer`.
        items: number of items to write, at least 50.
        seed: of the shuffles.
        **options: for `load`.

    Raises:
        ValueError: fewer than 50 items.
        AssertionError: the contract is broken.
    """
    if items < MIN_ITEMS:
        raise ValueError(f"items: expected at least {MIN_ITEMS}, got {items}; fewer cannot tell a leak from noise")
    rng = np.random.default_rng(seed)
    identity = np.arange(items, dtype=np.int64)
    with tempfile.TemporaryDirectory() as scratch:
        folders = iter(Path(scratch) / str(number) for number in range(1 + SHUFFLES + CONSTANTS))

        def run(order: IntArray) -> tuple[Path, Trace]:
            folder = next(folders)
            folder.mkdir()
            path = write(folder, order)
            return path, adapter.load(path, **options)

        path, trace = run(identity)
        _check_interface(adapter, path, trace, options, Path(scratch))
        shuffled = [run(rng.permutation(items))[1] for _ in range(SHUFFLES)]
        constant = [run(np.full(items, rng.integers(items)))[1] for _ in range(CONSTANTS)]
    for moved in (*shuffled, *constant):
        _check_same_ticks(trace, moved)
    noise = _noise(trace)
    timed = any(stratum.method == "lag-window" for stratum in trace.header.strata)
    own = _bits(trace, "the run itself")
    of_shuffles = float(np.mean([_bits(moved, "the shuffled run") for moved in shuffled]))
    of_constants = max(_bits(moved, "a constant policy") for moved in constant)
    assert own > noise, (
        f"the run written carries {own:.4f} bits per item, no more than the noise of {noise:.4f}; write one that is "
        "mostly right, or more items, else this check could not fail"
    )
    assert of_shuffles <= noise, (
        f"emissions shuffled between items carry {of_shuffles:.4f} bits per item, more than noise ({noise:.4f}): the "
        "outcome of a tick depends on its right answer"
    )
    limit = noise if timed else ZERO
    assert of_constants <= limit, (
        f"a constant policy carries {of_constants:.6f} bits per item, expected at most {limit:.6f}: "
        "the strata are not balanced, or the outcome of a tick depends on its right answer"
    )
    return Conformance(own, of_shuffles, of_constants, noise, items)


def _bits(trace: Trace, what: str) -> float:
    rate = bits_per_item(trace)
    assert math.isfinite(rate.bits), f"{what} has no rate: {rate.reason}; write more items"
    return rate.bits


def _noise(trace: Trace) -> float:
    """What a policy that knows nothing can score by luck, in bits per item.

    The rate of n independent ticks with c kinds of response is at most about c / (2 n ln 2) in the mean (half a
    chi-square of c degrees of freedom), exchangeable responses counting once; n ticks per N items carry n / N of them.
    Slots of one item hang together and a window is chosen for them, so timing gets 0.001 bits per slot on top.
    """
    total = 0.0
    for number, stratum in enumerate(trace.header.strata):
        ticks = int((trace.ticks["stratum"] == number).sum())
        pooled = {a for group in stratum.exchangeable for a in group}
        kinds = len(stratum.exchangeable) + sum(p > 0 and a not in pooled for a, p in enumerate(stratum.pmf) if a)
        total += NOISE_FACTOR * kinds / (2 * math.log(2)) * (ticks > 0)
        if stratum.method == "lag-window":
            # Frequencies among the few slots with an event are the uncertain ones, and weigh half in each slot.
            due = int(((trace.ticks["stratum"] == number) & (trace.ticks["required"] > 0)).sum())
            total += TIMING_NOISE * ticks + NOISE_FACTOR / (8 * math.log(2)) * ticks / max(due, 1)
    return total / trace.header.items


def _check_interface(adapter: Adapter, path: Path, trace: Trace, options: dict[str, Any], scratch: Path) -> None:
    """Point 1 of `check_adapter`."""
    assert isinstance(adapter, Adapter), "expected an object with name, recognise and load"
    assert isinstance(adapter.name, str) and adapter.name, f"name: expected a word, got {adapter.name!r}"
    recognition = adapter.recognise(path)
    assert isinstance(recognition, Recognition), f"recognise: does not know the run it was given, {path}"
    assert recognition.refusal is None, f"recognise: refuses the run it was given: {recognition.refusal}"
    stranger = scratch / "stranger.bin"
    stranger.write_bytes(bytes(range(256)))
    assert adapter.recognise(stranger) is None, "recognise: takes a file of arbitrary bytes for a run"
    assert isinstance(trace, Trace), f"load: expected a Trace, got {type(trace).__name__}"
    header = trace.header
    assert header.task is None, "header.task: expected None, the law of a real benchmark is not known"
    assert header.demand.kind == "nominal", f"header.demand.kind: expected 'nominal', got {header.demand.kind!r}"
    assert header.items > 0 and header.duration_ms > 0, "header: expected items > 0 and duration_ms > 0"
    assert header.source and header.source != "envrate", "header.source: expected the benchmark's or format's name"
    for stratum in header.strata:
        responses = [p for p in stratum.pmf[1:] if p > 0]
        assert max(responses) - min(responses) < 1e-9, f"stratum {stratum.name!r}: expected a balanced law"
    again = adapter.load(path, **options)
    _check_equal(trace, again, "load: two calls on one path gave different traces")
    saved = trace.save(scratch / "trace.jsonl")
    _check_equal(trace, Trace.load(saved, strict=True), "the trace changes when saved and read back")
    if isinstance(adapter, ScoresItself):
        table = adapter.scores(path, **{k: v for k, v in options.items() if k in _names(adapter.scores)})
        assert isinstance(table, ScoreTable), f"scores: expected a ScoreTable, got {type(table).__name__}"
        assert table.main in table.values, f"scores: main is {table.main!r}, which is not among the values"


def _names(method: Callable[..., Any]) -> tuple[str, ...]:
    import inspect

    return tuple(inspect.signature(method).parameters)


def _check_equal(one: Trace, other: Trace, message: str) -> None:
    assert one.header.strata == other.header.strata and one.header.demand == other.header.demand, message
    for table in ("ticks", "responses"):
        mine, theirs = getattr(one, table), getattr(other, table)
        assert all(np.array_equal(mine[column], theirs[column]) for column in mine), f"{message} ({table})"


def _check_same_ticks(one: Trace, other: Trace) -> None:
    """Point 2 of `check_adapter`."""
    assert one.header.strata == other.header.strata, "the strata depend on what the system emitted"

    def rows(trace: Trace) -> IntArray:
        table = np.stack([trace.ticks[c] for c in ("episode", "tick", "onset_ms", "required", "stratum")], axis=1)
        return table[np.lexsort(table.T[::-1])]

    assert np.array_equal(rows(one), rows(other)), "the ticks that are due depend on what the system emitted"
