"""Trace: what happened. The second narrow waist; every score reads a Trace and nothing else.

A trace has a header and two columnar tables: one row per required response (`ticks`) and one row per emission
(`responses`). Times are whole milliseconds since the episode's start.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.rd import Bracket
from envrate.task import Task

if TYPE_CHECKING:
    from envrate._trace_io import LoadReport

IntArray = NDArray[np.int64]
Array = NDArray[Any]

CLOCKS = ("simulated", "wall", "video", "service")
#: A trace in memory above this is refused; see `check_size`.
MAX_BYTES = 2 * 1024**3
#: Codes in the columns of a trace.
NEVER, NO_TICK, WRONG_UNKNOWN = -1, -1, -2
ACT, PROBE = 0, 1


@dataclass(frozen=True)
class Stratum:
    """A sub-source with an alphabet of its own; the rates of strata add.

    Args:
        name: for tables.
        pmf: (A,) law of the required response, null first.
        exchangeable: groups of response symbols pooled in scoring.
        method: how its ticks are scored: "profile" (credited throughput of the outcomes), "lag-window" (timing of
            events in slots, the window fitted on the other half of the items) or "share" (one nominal bit times the
            share right).
    """

    name: str
    pmf: tuple[float, ...]
    exchangeable: tuple[tuple[int, ...], ...] = ()
    method: str = "profile"

    def __post_init__(self) -> None:
        """Checks the law and the method."""
        object.__setattr__(self, "pmf", tuple(_checks.pmf("stratum.pmf", self.pmf).tolist()))
        object.__setattr__(self, "exchangeable", tuple(tuple(int(a) for a in group) for group in self.exchangeable))
        _checks.choice("stratum.method", self.method, ("profile", "lag-window", "share"))


@dataclass(frozen=True)
class Header:
    """What a trace says about itself. `task` is None and `demand.kind` is "nominal" for other benchmarks' runs."""

    tick_ms: int
    micro_turn_ms: int
    horizon_ms: int
    demand: Bracket  # bits per second
    strata: tuple[Stratum, ...]
    task: Task | None = None
    modality: str = ""
    link: dict[str, Any] | None = None
    agent: str = ""
    clock: str = "simulated"
    reply: str = "newest"
    seed: int | None = None
    duration_ms: int = 0  # exposure over all episodes: the time that a rate per second divides by
    items: int = 0  # items of a benchmark; 0 where there are none
    hindsight: bool = False  # responses were placed in time after the fact: off real-time frontiers
    version: str = ""
    source: str = "envrate"
    notes: tuple[str, ...] = ()  # what a reader has to know: lines dropped, packets dropped, flags
    extra: dict[str, Any] = field(default_factory=dict)  # the producer's own figures, never read by a scorer

    def __post_init__(self) -> None:
        """Checks the clock and the times."""
        _checks.integer("tick_ms", self.tick_ms, 1, unit="ms")
        _checks.integer("micro_turn_ms", self.micro_turn_ms, 1, unit="ms")
        _checks.integer("horizon_ms", self.horizon_ms, 0, unit="ms")
        _checks.integer("duration_ms", self.duration_ms, 0, unit="ms")
        _checks.choice("clock", self.clock, CLOCKS)
        if not self.strata:
            raise ValueError("strata: expected at least one, got none")

    @classmethod
    def for_task(cls, task: Task, **changes: Any) -> Header:
        """The header of a run on `task`: one stratum, the task's law, times and demand."""
        return cls(
            tick_ms=task.tick_ms,
            micro_turn_ms=task.micro_turn_ms,
            horizon_ms=task.horizon_ms,
            demand=task.demand(),
            strata=(Stratum(task.name, tuple(task.pmf.tolist()), task.exchangeable),),
            task=task,
            reply=task.reply,
            **changes,
        )


#: Columns of each table with their dtypes, in the order of the file.
TICK_COLUMNS: dict[str, type] = {
    "episode": np.int64,
    "tick": np.int64,
    "onset_ms": np.int64,
    "required": np.int64,  # 0 = null; (N, d) float64 for tracking
    "stratum": np.int64,  # index into header.strata
    "scored": np.bool_,  # the whole horizon lies within the episode
    "delivered_ms": np.int64,  # the first packet about it reached the agent; -1 never
    "probe_ms": np.int64,  # the question reached the agent; -1 not probed or lost
    "probe_required": np.int64,  # the right answer to the question; -1 not probed
    "latent": np.int64,  # z_t; -1 unknown; (N, d) float64 for a real-valued latent
}
RESPONSE_COLUMNS: dict[str, type] = {
    "episode": np.int64,
    "time_ms": np.int64,  # when it took effect
    "tick": np.int64,  # the tick answered; -1 none
    "value": np.int64,  # the symbol; -2 wrong, unknown which; (M, d) float64 for tracking
    "kind": np.int64,  # 0 act, 1 answer to a probe
    "compute_ms": np.int64,  # the agent's own time, already inside time_ms
}
#: Columns that hold vectors where responses are real-valued.
VECTOR_COLUMNS = ("required", "latent", "value")


def _table(name: str, columns: dict[str, type], values: dict[str, Any]) -> dict[str, Array]:
    """Checked columns of one table, all of one length."""
    unknown = sorted(set(values) - set(columns))
    if unknown:
        raise ValueError(f"{name}: unknown column {unknown[0]!r}; expected {', '.join(columns)}")
    length = max((len(np.atleast_1d(v)) for v in values.values()), default=0)
    if name == "ticks" and values and "tick" not in values:
        raise ValueError("ticks: expected a column 'tick', which responses name")
    table: dict[str, Array] = {}
    for column, dtype in columns.items():
        array = np.asarray(values.get(column, np.full(length, DEFAULTS.get(column, 0))))
        vector = column in VECTOR_COLUMNS and array.ndim == 2
        if array.ndim != 1 and not vector:
            raise ValueError(f"{name}.{column}: expected one dimension, got shape {array.shape}")
        if len(array) != length:
            raise ValueError(f"{name}.{column}: expected {length} rows as in the other columns, got {len(array)}")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name}.{column}: expected numbers, got dtype {array.dtype}")
        if array.dtype.kind == "f":
            if not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array))[0][0])
                raise ValueError(f"{name}.{column}: row {row} is {array[row]}, expected a finite number")
            if not vector and (array != np.round(array)).any():
                row = int(np.flatnonzero(array != np.round(array))[0])
                raise ValueError(f"{name}.{column}: row {row} is {array[row]}, expected a whole number")
        table[column] = array.astype(np.float64 if vector else dtype)
    return table


DEFAULTS = {"scored": 1, "delivered_ms": NEVER, "probe_ms": NEVER, "probe_required": -1, "latent": -1, "tick": NO_TICK}


@dataclass(frozen=True)
class Trace:
    """One run, whole: a header, `ticks` and `responses`.

    `ticks` and `responses` map column names (`TICK_COLUMNS`, `RESPONSE_COLUMNS`) to arrays of N and M rows; columns
    left out take their defaults. Rows may come in any order.

    Raises:
        ValueError: an unknown column, columns of different lengths, a symbol outside its stratum's alphabet, a row
            that names no stratum, NaN, or a table above 2 GB.
    """

    header: Header
    ticks: dict[str, Array]
    responses: dict[str, Array]
    report: LoadReport | None = None  # what a loader had to leave out

    def __post_init__(self) -> None:
        """Checks both tables."""
        object.__setattr__(self, "ticks", _table("ticks", TICK_COLUMNS, self.ticks))
        object.__setattr__(self, "responses", _table("responses", RESPONSE_COLUMNS, self.responses))
        check_size(len(self), len(self.responses["tick"]))
        self._check_rows()

    def _check_rows(self) -> None:
        t, r = self.ticks, self.responses
        stratum = t["stratum"]
        if stratum.size and not (0 <= stratum.min() and stratum.max() < len(self.header.strata)):
            raise ValueError(f"ticks.stratum: expected 0 ... {len(self.header.strata) - 1}, got {stratum.max()}")
        sizes = np.array([len(s.pmf) for s in self.header.strata])
        if not self.is_tracking and stratum.size:
            outside = (t["required"] < 0) | (t["required"] >= sizes[stratum])
            if outside.any():
                row = int(np.flatnonzero(outside)[0])
                size = sizes[stratum[row]]
                raise ValueError(f"ticks.required: row {row} is {t['required'][row]}, expected 0 ... {size - 1}")
            acts = r["kind"] == ACT
            values = r["value"][acts]
            if values.size and not (values.min() >= WRONG_UNKNOWN and values.max() < sizes.max()):
                raise ValueError(
                    f"responses.value: expected -2 ... {sizes.max() - 1}, got {values.min()} ... {values.max()}"
                )
        if not np.isin(r["kind"], (ACT, PROBE)).all():
            raise ValueError("responses.kind: expected 0 (act) or 1 (answer to a probe)")

    def __len__(self) -> int:
        """Number of ticks."""
        return len(self.ticks["tick"])

    def __repr__(self) -> str:
        """What was run and how much of it there is; the tables stay out."""
        head = self.header
        name = head.task.name if head.task is not None else head.source
        counts = f"{len(self)} ticks, {len(self.responses['tick'])} responses"
        return f"<Trace: {head.agent or 'agent'} on {name} as {head.modality}, {counts}>"

    @property
    def is_tracking(self) -> bool:
        """Whether responses are real-valued vectors."""
        return self.ticks["required"].ndim == 2

    @property
    def num_episodes(self) -> int:
        """Number of episodes that have ticks."""
        return len(np.unique(self.ticks["episode"]))

    @property
    def task(self) -> Task:
        """The task; raises ValueError where the trace comes from another benchmark."""
        if self.header.task is None:
            raise ValueError("trace: it carries no task, so its law is not known; expected a run on an EnvRate task")
        return self.header.task

    def with_header(self, **changes: Any) -> Trace:
        """A copy whose header has some fields changed."""
        return replace(self, header=replace(self.header, **changes))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `.jsonl` or (with pyarrow) `.parquet`, by the ending of `path`."""
        from envrate import _trace_io

        return _trace_io.save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, strict: bool = False) -> Trace:
        """Reads what `save` or a `TraceWriter` wrote; `trace.report` says what could not be read.

        Args:
            path: a `.jsonl` or `.parquet` file.
            strict: raise ValueError on the first damaged line instead of leaving it out.
        """
        from envrate import _trace_io

        return _trace_io.load(Path(path), strict=strict)


def check_size(num_ticks: int, num_responses: int) -> None:
    """Raises ValueError where a trace of so many rows would not fit in 2 GB."""
    size = 8 * (num_ticks * len(TICK_COLUMNS) + num_responses * len(RESPONSE_COLUMNS))
    if size > MAX_BYTES:
        raise ValueError(
            f"trace: {num_ticks} ticks and {num_responses} responses take {size / 1024**3:.1f} GB, more than "
            f"{MAX_BYTES / 1024**3:.0f} GB; use record='counts', which keeps sufficient statistics only"
        )


def column_names() -> dict[str, list[str]]:
    """Names of the columns of both tables, for documentation."""
    return {
        "header": [f.name for f in fields(Header)],
        "ticks": list(TICK_COLUMNS),
        "responses": list(RESPONSE_COLUMNS),
    }
