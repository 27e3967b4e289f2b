"""Options from a prompt, and the option that a reply names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from envrate.bench_adapters.tvbench._items import MAX_OPTIONS

#: "A) text", "A. text", "(A) text", "A: text" at the start of a line.
_OPTION_LINE = re.compile(r"^\s*\(?([A-Z])[).:]\s*(.*?)\s*$")
#: "one of A,B,C" of the multiple-choice templates.
_ONE_OF = re.compile(r"\bone of ((?:[A-Z]\s*,\s*)*[A-Z])\b")
#: "ANSWER: B", "the answer is (B)", "**Answer: B**", "ANSWER: \boxed{B}".
_ANSWER = re.compile(r"answer(?:\s+is)?\s*[:=]?\s*(?:\\boxed\{)?[\s*_`(\[{\"']*([A-Za-z])(?![A-Za-z])", re.IGNORECASE)
#: "option A", "choice (A)".
_OPTION = re.compile(r"\b(?:option|choice)[\s:*_`(\[]*([A-Z])(?![A-Za-z])", re.IGNORECASE)
_LEADING = re.compile(r"^[\s*_`(\[{\"']*([A-Z])(?:[\s).:,\]}*_`\"']|$)")


def options_of(prompt: str) -> list[str]:
    """Texts of the options that a prompt lists, last list first; placeholders where it only names their letters."""
    best: list[str] = []
    current: list[str] = []
    for line in prompt.splitlines():
        match = _OPTION_LINE.match(line)
        if match is None:
            continue
        letter = ord(match[1]) - ord("A")
        if letter == len(current):
            current.append(match[2])
        elif letter == 0:
            current = [match[2]]
        if len(current) >= 2:
            best = current
    if best:
        return best
    named = _ONE_OF.findall(prompt)
    letters = re.findall("[A-Z]", named[-1]) if named else []
    consecutive = letters == [chr(ord("A") + i) for i in range(len(letters))]
    return [""] * len(letters) if consecutive and len(letters) >= 2 else []


def number(letter: str, options: int) -> int:
    """1 for A ... K; 0 where the letter is none of the K options."""
    index = ord(letter.upper()) - ord("A") + 1 if len(letter) == 1 else 0
    return index if 1 <= index <= options else 0


def position(answer: str, options: Sequence[str]) -> int:
    """1-based position of a candidate's text; 0 where it is absent or stands twice."""
    places = [i for i, option in enumerate(options, 1) if option.strip() == answer.strip() and option.strip()]
    return places[0] if len(places) == 1 else 0


def read_letter(reply: str, options: Sequence[str]) -> int:
    """The option that a reply names, by our own strict rule; 0 where it names none.

    The last "answer: X" counts, else a letter that the reply begins with, else the only letter that it calls an option,
    else the one option whose text the reply is. A letter out of range is no answer. There is no fall-back to a stray
    capital letter.
    """
    named = _ANSWER.findall(reply)
    if named:
        return number(named[-1], len(options))
    leading = _LEADING.match(reply)
    if leading:
        return number(leading[1], len(options))
    called = {letter.upper() for letter in _OPTION.findall(reply)}
    if len(called) == 1:
        return number(called.pop(), len(options))
    return position(reply.strip().rstrip("."), [option.strip().rstrip(".") for option in options])


def candidates_of(cell: object) -> list[str]:
    """A list of candidates from a cell that holds it as a Python or JSON literal; empty where it is none."""
    value: object = cell
    if isinstance(cell, str):
        try:
            value = ast.literal_eval(cell.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return []
    if not isinstance(value, (list, tuple)) or not 2 <= len(value) <= MAX_OPTIONS:
        return []
    return [str(candidate) for candidate in value]
