"""Traces on disk: JSONL whose lines are blocks of columns, or Parquet.

A JSONL trace is a header line, then lines of tick columns and response columns as they happen, then an end line
with the counts. A killed run lacks the end line and perhaps the tail of its last one; all else is readable.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
import numpy as np

from envrate.rd import Bracket
from envrate.task import Task
from envrate.trace import RESPONSE_COLUMNS, TICK_COLUMNS, Array, Header, Stratum, Trace

FORMAT = "envrate-trace"
FORMAT_VERSION = 1
#: Rows per line of a JSONL file.
BLOCK = 4096
#: Columns of both tables; anything else in a file is from a newer version and is named in the report.
TABLES: dict[str, dict[str, type]] = {"ticks": TICK_COLUMNS, "responses": RESPONSE_COLUMNS}


@dataclass(frozen=True)
class LoadReport:
    """What a loader left out: damaged lines by number with the reason, and whether the file was cut short."""

    damaged: tuple[tuple[int, str], ...] = ()
    complete: bool = True
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """One sentence per problem; empty where the file was whole."""
        said = [f"line {number} left out: {reason}" for number, reason in self.damaged]
        if not self.complete:
            said.append("no end line: the run was cut short, what is whole was read")
        return "; ".join([*said, *self.notes])


def header_to_dict(header: Header) -> dict[str, Any]:
    """JSON-ready form of a header."""
    body = {f.name: getattr(header, f.name) for f in dataclasses.fields(header)}
    body["task"] = None if header.task is None else header.task.to_dict()
    body["demand"] = dataclasses.asdict(header.demand)
    body["strata"] = [dataclasses.asdict(stratum) for stratum in header.strata]
    return {"format": FORMAT, "format_version": FORMAT_VERSION} | body


def header_from_dict(body: Any) -> Header:
    """The header that `header_to_dict` described; raises ValueError naming what is wrong."""
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ValueError(f"header: expected an object with format {FORMAT!r}")
    if body.get("format_version") != FORMAT_VERSION:
        raise ValueError(f"header.format_version: expected {FORMAT_VERSION}, got {body.get('format_version')!r}")
    known = {f.name for f in dataclasses.fields(Header)}
    kept = {key: value for key, value in body.items() if key in known}
    try:
        kept["task"] = None if kept.get("task") is None else Task.from_dict(kept["task"])
        kept["demand"] = Bracket(**kept["demand"])
        kept["strata"] = tuple(Stratum(**stratum) for stratum in kept["strata"])
        kept["notes"] = tuple(kept.get("notes", ()))
        return Header(**kept)
    except (TypeError, KeyError) as error:
        raise ValueError(f"header: {error}") from error


def _rows(columns: Mapping[str, Array]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _encodable(columns: Mapping[str, Array]) -> dict[str, list[Any]]:
    return {
        name: np.asarray(values).astype(np.int64).tolist()
        if np.asarray(values).dtype == np.bool_
        else np.asarray(values).tolist()
        for name, values in columns.items()
    }


class TraceWriter:
    """Writes a JSONL trace as it happens; each call is one line, flushed, so that a killed run stays readable.

    Use as a context manager: leaving it writes the end line.
    """

    def __init__(self, path: str | Path, header: Header) -> None:
        """Opens `path` and writes the header line."""
        self.path = Path(path)
        self._file: IO[str] = self.path.open("w", encoding="utf-8")
        self._counts = {"ticks": 0, "responses": 0}
        self._line({"header": header_to_dict(header)})

    def _line(self, body: dict[str, Any]) -> None:
        self._file.write(json.dumps(body, separators=(",", ":"), allow_nan=False) + "\n")
        self._file.flush()

    def ticks(self, **columns: Any) -> None:
        """Appends rows to the table of ticks."""
        self._append("ticks", columns)

    def responses(self, **columns: Any) -> None:
        """Appends rows to the table of responses."""
        self._append("responses", columns)

    def _append(self, table: str, columns: Mapping[str, Any]) -> None:
        arrays = {name: np.atleast_1d(np.asarray(values)) for name, values in columns.items()}
        for start in range(0, _rows(arrays), BLOCK):
            block = {name: values[start : start + BLOCK] for name, values in arrays.items()}
            self._line({table: _encodable(block)})
            self._counts[table] += _rows(block)

    def close(self, **header_changes: Any) -> None:
        """Writes the end line, with header fields that were known only at the end (such as duration_ms)."""
        if not self._file.closed:
            self._line({"end": self._counts, "header": header_changes} if header_changes else {"end": self._counts})
            self._file.close()

    def __enter__(self) -> TraceWriter:
        """Returns itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Writes the end line unless an exception is passing through."""
        if kind is None:
            self.close()
        else:
            self._file.close()


def save(trace: Trace, path: Path) -> Path:
    """Writes `trace` as JSONL or Parquet by the ending of `path`; returns the path."""
    if path.suffix == ".parquet":
        return _save_parquet(trace, path)
    if path.suffix != ".jsonl":
        raise ValueError(f"path: expected a name that ends in .jsonl or .parquet, got {path.name!r}")
    with TraceWriter(path, trace.header) as writer:
        writer.ticks(**trace.ticks)
        writer.responses(**trace.responses)
    return path


def load(path: Path, *, strict: bool = False) -> Trace:
    """Reads a trace; see `Trace.load`."""
    if path.suffix == ".parquet":
        return _load_parquet(path)
    header: Header | None = None
    blocks: dict[str, list[dict[str, Array]]] = {"ticks": [], "responses": []}
    damaged: list[tuple[int, str]] = []
    end: dict[str, int] | None = None
    for number, line in _lines(path):
        try:
            body = msgspec.json.decode(line)
            if not isinstance(body, dict):
                raise ValueError(f"expected an object, got {type(body).__name__}")
            if header is None:
                header = header_from_dict(body.get("header"))
            elif "end" in body:
                end = {name: int(body["end"][name]) for name in TABLES}
                header = header_from_dict(header_to_dict(header) | dict(body.get("header", {})))
            else:
                new = {
                    table: _block(header, _table_name(table), columns, next(iter(blocks[table]), None))
                    for table, columns in body.items()
                }
                for table, block in new.items():
                    blocks[table].append(block)
        except (ValueError, TypeError, KeyError, msgspec.DecodeError, OverflowError, RecursionError) as error:
            if header is None:
                raise ValueError(f"{path}: line {number} is no trace header: {error}") from error
            if strict:
                raise ValueError(f"{path}: line {number}: {error}") from error
            damaged.append((number, str(error)))
    if header is None:
        raise ValueError(f"{path}: empty file, expected a trace header on its first line")
    tables = {name: _joined(blocks[name]) for name in blocks}
    if strict and end is None:
        raise ValueError(f"{path}: no end line, the run was cut short")
    notes = (
        []
        if end is None
        else [
            f"{name}: {end[name]} rows were written, {_rows(tables[name])} could be read"
            for name in tables
            if end[name] != _rows(tables[name])
        ]
    )
    return Trace(
        header, tables["ticks"], tables["responses"], LoadReport(tuple(damaged), end is not None, tuple(notes))
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that hold anything."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _table_name(table: str) -> str:
    if table not in TABLES:
        raise ValueError(f"unknown table {table!r}, expected ticks or responses")
    return table


def _block(header: Header, table: str, columns: Any, first: dict[str, Array] | None) -> dict[str, Array]:
    """Columns of one line, checked as a trace of their own; every line has the columns of its table's first."""
    if not isinstance(columns, dict) or not columns:
        raise ValueError(f"{table}: expected columns")
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    if any(array.ndim == 0 for array in arrays.values()):
        raise ValueError(f"{table}: expected lists of numbers")
    checked: dict[str, Array] = getattr(
        Trace(header, arrays if table == "ticks" else {}, arrays if table == "responses" else {}), table
    )
    block = {name: checked[name] for name in arrays}
    if first is not None and {n: a.shape[1:] for n, a in block.items()} != {n: a.shape[1:] for n, a in first.items()}:
        raise ValueError(f"{table}: expected the columns {', '.join(first)} as in the first line of the table")
    return block


def _joined(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    """Blocks laid end to end."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'envrate[parquet]'") from error
    return pyarrow


def _save_parquet(trace: Trace, path: Path) -> Path:
    """Ticks in `path`, responses beside it as NAME.responses.parquet, the header in the schema's metadata."""
    pa = _pyarrow()
    header = {FORMAT: json.dumps(header_to_dict(trace.header), allow_nan=False)}
    for name, table in (("ticks", trace.ticks), ("responses", trace.responses)):
        columns = {key: values if values.ndim == 1 else list(values) for key, values in table.items()}
        pa.parquet.write_table(pa.table(columns).replace_schema_metadata(header), _parquet_path(path, name))
    return path


def _parquet_path(path: Path, table: str) -> Path:
    return path if table == "ticks" else path.with_suffix(".responses.parquet")


def _load_parquet(path: Path) -> Trace:
    pa = _pyarrow()
    tables: dict[str, dict[str, Array]] = {}
    header: Header | None = None
    for name in TABLES:
        try:
            table = pa.parquet.read_table(_parquet_path(path, name))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{_parquet_path(path, name)}: not a readable Parquet file: {error}") from error
        metadata = (table.schema.metadata or {}).get(FORMAT.encode())
        if metadata is None:
            raise ValueError(f"{_parquet_path(path, name)}: no trace header in its metadata")
        header = header_from_dict(json.loads(metadata))
        tables[name] = {
            column: np.stack(values) if values.dtype == object and len(values) else values
            for column, values in ((c, table[c].to_numpy()) for c in table.column_names)
        }
    assert header is not None
    return Trace(header, tables["ticks"], tables["responses"])
