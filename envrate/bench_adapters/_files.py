"""Reading files that other programs wrote, and that may be cut, glued, compressed or wrong.

Nothing is dropped silently: what cannot be read comes back by line number with the reason.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

#: What reading JSON can raise; deep nesting ends in a RecursionError, an integer of 5,000 digits in a ValueError.
BAD_JSON = (ValueError, RecursionError, msgspec.DecodeError)
BAD_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Rows:
    """Objects of a JSONL file with their line numbers, and the lines that could not be read."""

    path: Path
    rows: tuple[tuple[int, dict[str, Any]], ...]
    damaged: tuple[tuple[int, str], ...] = ()

    def notes(self) -> list[str]:
        """One sentence per damaged line."""
        return [f"{self.path.name}: line {number} left out: {reason}" for number, reason in self.damaged]


def head(path: Path, size: int = 65536) -> bytes:
    """The first bytes of a file, decompressed, as UTF-8; empty where it cannot be read."""
    try:
        with path.open("rb") as raw:
            start = raw.read(size)
    except OSError:
        return b""
    if start.startswith(GZIP_MAGIC):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, size)
        except zlib.error:
            return b""
    return _utf8(start)


def read_bytes(path: Path) -> tuple[bytes, str | None]:
    """The whole file, decompressed, as UTF-8 without byte order mark; and what is wrong with it, if anything.

    Raises:
        ValueError: the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    trouble = None
    if data.startswith(GZIP_MAGIC):
        data, trouble = _gunzip(data)
    return _utf8(data), trouble


def _gunzip(data: bytes) -> tuple[bytes, str | None]:
    """What of a gzip file can be had, and the reason where that is not all of it."""
    parts: list[bytes] = []
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        try:
            while part := file.read1(1 << 16):
                parts.append(part)
        except BAD_GZIP as error:
            return b"".join(parts), f"the gzip stream is cut or damaged ({error})"
    return b"".join(parts), None


def _utf8(data: bytes) -> bytes:
    """`data` without a byte order mark; UTF-16 becomes UTF-8."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").encode("utf-8", errors="replace")
    return data


def parse(text: bytes) -> Any:
    """One JSON value. NaN and infinities, which Python's writer makes, are read too; whoever reads a number checks it.

    Raises:
        ValueError: not JSON, nested too deeply, or not UTF-8.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except msgspec.DecodeError as error:
        strict = str(error)
    try:
        return _without_surrogates(json.loads(text.decode("utf-8")))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except ValueError as error:
        raise ValueError(strict) from error


def _without_surrogates(value: Any) -> Any:
    """`value` with half surrogate pairs, which no terminal takes, replaced by a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode("utf-8")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def read_jsonl(path: Path) -> Rows:
    """Every object of a JSONL file (`.gz` too); CRLF, a byte order mark and blank lines are taken.

    A torn line and one onto which the next was glued are damaged: they are left out and reported.

    Raises:
        ValueError: the file cannot be opened.
    """
    data, trouble = read_bytes(path)
    rows: list[tuple[int, dict[str, Any]]] = []
    damaged: list[tuple[int, str]] = []
    number = 0
    for number, line in _lines(data):
        try:
            value = parse(line)
        except ValueError as error:
            damaged.append((number, f"no valid JSON ({error})"))
            continue
        if isinstance(value, dict):
            rows.append((number, value))
        else:
            damaged.append((number, f"expected an object, got {type(value).__name__}"))
    if trouble is not None:
        damaged.append((number + 1, trouble))
    return Rows(path, tuple(rows), tuple(damaged))


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that hold anything but white space."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end].strip()
        if line:
            yield number, line
        start = end + 1


def read_json(path: Path) -> Any:
    """A file that is one JSON value (`.gz` too).

    Raises:
        ValueError: it cannot be opened, is cut, or is not JSON.
    """
    data, trouble = read_bytes(path)
    if trouble is not None:
        raise ValueError(f"{path}: {trouble}")
    try:
        return parse(data)
    except ValueError as error:
        raise ValueError(f"{path}: no valid JSON ({error})") from error


def read_table(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of a `.tsv`, `.csv`, `.json` or `.xlsx` table by column, and what could not be read.

    JSON may be a list of objects, one object of columns, or JSONL. Cells of text tables are strings.

    Raises:
        ValueError: it cannot be opened, has another ending, no heading, or is no table.
        ImportError: `.xlsx` without openpyxl.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".xlsx"):
        return _read_xlsx(path), []
    if name.endswith((".json", ".jsonl")):
        return _read_json_table(path)
    if not name.endswith((".tsv", ".csv")):
        raise ValueError(f"{path}: expected a .tsv, .csv, .json or .xlsx table")
    return _read_text_table(path, "\t" if name.endswith(".tsv") else ",")


def _read_json_table(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    if path.name.lower().removesuffix(".gz").endswith(".jsonl"):
        rows = read_jsonl(path)
        return [row for _, row in rows.rows], rows.notes()
    value = read_json(path)
    if isinstance(value, dict) and value and all(isinstance(column, (list, dict)) for column in value.values()):
        columns = {k: list(v.values()) if isinstance(v, dict) else v for k, v in value.items()}
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError(f"{path}: columns of different lengths")
        value = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if not isinstance(value, list):
        raise ValueError(f"{path}: expected a list of rows, got {type(value).__name__}")
    good = [row for row in value if isinstance(row, dict)]
    notes = [f"{path.name}: row {i} left out: expected an object, got {type(row).__name__}"
             for i, row in enumerate(value, 1) if not isinstance(row, dict)]
    return good, notes


def _read_text_table(path: Path, delimiter: str) -> tuple[list[dict[str, Any]], list[str]]:
    data, trouble = read_bytes(path)
    text = data.decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    notes = [] if trouble is None else [f"{path.name}: {trouble}"]
    if "\N{REPLACEMENT CHARACTER}" in text:
        notes.append(f"{path.name}: bytes that are not UTF-8 text were replaced")
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    heading: list[str] = []
    rows: list[dict[str, Any]] = []
    try:
        heading = next(reader, [])
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(heading):
                notes.append(
                    f"{path.name}: line {reader.line_num} left out: {len(cells)} cells, expected {len(heading)}"
                )
                continue
            rows.append(dict(zip(heading, cells, strict=True)))
    except csv.Error as error:
        notes.append(f"{path.name}: line {reader.line_num} and what follows left out: {error}")
    if not heading:
        raise ValueError(f"{path}: empty, expected a heading")
    return rows, notes


def _read_xlsx(path: Path) -> list[dict[str, Any]]:
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError("reading .xlsx needs openpyxl: pip install 'envrate[xlsx]'") from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        cells = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    except Exception as error:  # openpyxl lets through whatever its zip and XML readers raise
        raise ValueError(f"{path}: not a readable .xlsx file: {type(error).__name__}: {error}") from error
    if not cells:
        raise ValueError(f"{path}: empty, expected a heading")
    heading = [str(cell) if cell is not None else "" for cell in cells[0]]
    return [dict(zip(heading, row, strict=False)) for row in cells[1:] if any(cell is not None for cell in row)]


# -- fields of unknown type ---------------------------------------------------------------------------------------


def real(value: Any, low: float = -math.inf, high: float = math.inf) -> float | None:
    """`value` as a finite float in [low, high]; None for anything else, booleans and numbers too large included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and low <= number <= high else None


def whole(value: Any, low: int = 0, high: int = 2**53) -> int | None:
    """`value` as an int in [low, high]; None for anything else."""
    number = real(value, low, high)
    return None if number is None or number != int(number) else int(number)


def text(value: Any) -> str:
    """`value` where it is text, else the empty string."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """`value` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []
