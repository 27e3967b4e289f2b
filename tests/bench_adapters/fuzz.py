"""Ways in which a file that another program wrote can be wrong, for tests of readers.

A reader must either read what is whole and say what it left out, or raise one sentence. `damaged_lines` gives whole
files with the number of lines in them that cannot be read, `strange_rows` objects with one field replaced.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

#: Values that have no business where a number, text, list or object is expected.
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, 1e308, -1e308, math.nan, math.inf, "", "x" * 5000, "\ud800", "\u2028", [], [[]],
    [None], {}, {"a": 1},
)  # fmt: skip
#: Bytes of the long lines.
LONG = 10_000_000
#: Brackets within brackets.
DEEP = 200_000


def check_sentence(error: Exception, longest: int = 2000) -> str:
    """The message of an error that a user sees: one line, not empty, not endless."""
    message = str(error)
    assert message and "\n" not in message and len(message) <= longest, message[:longest]
    return message


def cuts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The data cut at every byte."""
    for size in range(len(data) + 1):
        yield size, data[:size]


def whole_lines(data: bytes, size: int) -> int:
    """Lines of `data` that are whole in its first `size` bytes; a line is whole without its line feed."""
    ends = [i for i, byte in enumerate(data) if byte == 10]
    return sum(end <= size for end in ends)


def damaged_lines(lines: Sequence[str]) -> dict[str, tuple[bytes, int]]:
    """Files that hold all of `lines` (JSON objects), by name, each with the number of lines that are damaged."""
    text = "\n".join(lines)
    first, rest = lines[0], list(lines[1:])
    deep = '{"a": ' + "[" * DEEP + "]" * DEEP + "}"
    return {
        "plain": (text.encode(), 0),
        "crlf": (("\r\n".join(lines) + "\r\n").encode(), 0),
        "bom": (b"\xef\xbb\xbf" + text.encode(), 0),
        "utf-16": (text.encode("utf-16"), 0),
        "blank lines": ("\n\n  \n".join(lines).encode(), 0),
        "gz": (gzip.compress(text.encode()), 0),
        "cut gz": (gzip.compress((text + "\n" + " " * 100_000).encode())[:-12], 1),
        "long torn line": ("\n".join([first, '{"a": "' + "x" * LONG, *rest]).encode(), 1),
        "long line": ("\n".join([first[:-1] + ', "more": "' + "x" * LONG + '"}', *rest]).encode(), 0),
        "nested deeply": ("\n".join([*lines, deep]).encode(), 1),
        "not UTF-8": (text.encode() + b'\n{"a": "\xff\xfe"}', 1),
        "no object": ("\n".join(["[1, 2]", '"x"', "17", *lines]).encode(), 3),
        "torn and glued": ("\n".join([first[: len(first) // 2] + first, *lines]).encode(), 1),
        "zeros": ((text + "\n").encode() + b"\0" * 4096, 1),
        "huge number": ("\n".join([*lines, '{"a": ' + "9" * 5000 + "}"]).encode(), 1),
    }


def strange_rows(row: Any) -> Iterator[tuple[tuple[Any, ...], Any, bytes]]:
    """The object with each thing inside it replaced by each strange value or left out: place, value, JSON line."""
    for place in places(row):
        for value in STRANGE:
            changed = copy.deepcopy(row)
            _parent(changed, place)[place[-1]] = value
            yield place, value, _dump(changed)
        changed = copy.deepcopy(row)
        del _parent(changed, place)[place[-1]]
        yield place, "left out", _dump(changed)


def places(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything inside a JSON value."""
    found: list[tuple[Any, ...]] = [prefix] if prefix else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*prefix, key))
    return found


def _parent(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
