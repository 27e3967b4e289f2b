"""Stored verdicts of language-model judges, by the hash of question, reference and response.

A cache is a JSONL file of `{"k": key, "s": 0 or 1}`; later lines overwrite earlier ones. No model is called here.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from envrate.bench_adapters._files import read_jsonl, real
from envrate.bench_adapters.interactionbench._content import lexical

_VERDICT = re.compile(r"(?:score\s*:\s*)?(\d+(?:\.\d+)?)", re.IGNORECASE)


@runtime_checkable
class Judge(Protocol):
    """Anything that scores a response between 0 and 1; a method `vdc` of the same arguments scores descriptions."""

    def __call__(self, question: str, reference: str, response: str) -> float:
        """How well the response gives what the reference says."""
        ...


def cache_key(question: str | None, reference: str | None, response: str | None) -> str:
    """First 32 hex digits of the SHA-256 of the three texts with NUL between them; the last two are stripped."""
    parts = (question or "", (reference or "").strip(), (response or "").strip())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def parse_verdict(reply: str) -> float:
    """0 or 1 from a judge's reply: its first number on a scale to 1, 10 or 100, at least half of it; 0 without one."""
    found = _VERDICT.search(reply)
    if found is None:
        return 0.0
    score = float(found.group(1))
    score = score / 100 if score > 10 else score / 10 if score > 1 else score
    return float(score >= 0.5)


def _trivial(reference: str | None, response: str | None) -> float | None:
    """The verdict where a text is empty: 1 if both are, 0 if one is; None where both say something."""
    empty = (not (reference or "").strip(), not (response or "").strip())
    return float(all(empty)) if any(empty) else None


class VerdictCache:
    """Verdicts of one judge and prompt, read from a file.

    Args:
        path: the JSONL file.
        strict: raise KeyError for a pair that has no verdict, instead of scoring it 0 and counting it in `misses`.

    Raises:
        ValueError: the file cannot be opened or holds no verdict.
    """

    def __init__(self, path: str | os.PathLike[str], *, strict: bool = False) -> None:
        """Reads every verdict."""
        self.path, self.strict, self.misses = Path(path), strict, 0
        rows = read_jsonl(self.path)
        self.notes = rows.notes()
        self.verdicts: dict[str, float] = {}
        for number, row in rows.rows:
            score = real(row.get("s"), 0.0, 1.0)
            if isinstance(row.get("k"), str) and score is not None:
                self.verdicts[row["k"]] = score
            else:
                self.notes.append(f"{self.path.name}: line {number} left out: expected k and a verdict s of 0 or 1")
        if not self.verdicts:
            raise ValueError(f"{self.path}: no verdicts, expected lines such as {{'k': KEY, 's': 1.0}}")

    def find(self, question: str | None, reference: str | None, response: str | None) -> float | None:
        """The stored verdict, or None; an empty text has a verdict of its own."""
        trivial = _trivial(reference, response)
        return self.verdicts.get(cache_key(question, reference, response)) if trivial is None else trivial

    def __call__(self, question: str, reference: str, response: str) -> float:
        """The stored verdict; 0 where there is none."""
        verdict = self.find(question, reference, response)
        if verdict is not None:
            return verdict
        if self.strict:
            raise KeyError(f"{self.path.name} has no verdict on the response {response!r:.80}")
        self.misses += 1
        return 0.0


class Ensemble:
    """Majority of several caches over those that have a verdict; a tie goes to the first listed of these.

    Args:
        members: caches, in order of trust.
        strict: raise KeyError where no member has a verdict, instead of scoring 0 and counting it in `misses`.
    """

    def __init__(self, members: Sequence[VerdictCache], *, strict: bool = False) -> None:
        """Keeps the members."""
        if not members:
            raise ValueError("judge: an ensemble needs at least one cache, got none")
        self.members, self.strict, self.misses = tuple(members), strict, 0
        self.notes = [note for member in members for note in member.notes]

    def find(self, question: str | None, reference: str | None, response: str | None) -> float | None:
        """The majority, or None where no member has a verdict."""
        votes = [v for v in (m.find(question, reference, response) for m in self.members) if v is not None]
        if not votes:
            return None
        yes = sum(vote >= 0.5 for vote in votes)
        return votes[0] if 2 * yes == len(votes) else float(2 * yes > len(votes))

    def __call__(self, question: str, reference: str, response: str) -> float:
        """The majority; 0 where no member has a verdict."""
        verdict = self.find(question, reference, response)
        if verdict is None:
            if self.strict:
                raise KeyError(f"no cache of the ensemble has a verdict on the response {response!r:.80}")
            self.misses += 1
            return 0.0
        return verdict


class Lexical:
    """The benchmark's scorer without a judge."""

    misses = 0
    notes: Sequence[str] = ()

    def __call__(self, question: str, reference: str | None, response: str | None) -> float:
        """Lexical agreement of response and reference."""
        return lexical(reference, response)


def resolve(judge: str | Judge | None, *, strict: bool = False) -> Judge | None:
    """The judge meant: None or "lexical", "cache:FILE", "ensemble:FILE,FILE,...", or a callable as it is.

    Raises:
        ValueError: another text, or a cache that cannot be read.
    """
    if judge is None or judge == "lexical":
        return None
    if not isinstance(judge, str):
        if not callable(judge):
            raise ValueError(f"judge: expected a function of (question, reference, response), got {judge!r:.100}")
        return judge
    kind, _, files = judge.partition(":")
    paths = [file.strip() for file in files.split(",") if file.strip()]
    if kind == "cache" and len(paths) == 1:
        return VerdictCache(paths[0], strict=strict)
    if kind == "ensemble" and paths:
        return Ensemble([VerdictCache(path) for path in paths], strict=strict)
    raise ValueError(
        f"judge: expected 'lexical', 'cache:FILE' or 'ensemble:FILE,FILE', got {judge!r}; judges are not called here"
    )
