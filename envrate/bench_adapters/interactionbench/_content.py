"""Content scores between 0 and 1: the lexical scorer and the option matcher of InteractionBench.

Both are re-implementations of the benchmark's arithmetic, quirks included: signs and dots are lost in normalising,
number words are not read, a stray article "a" counts as option A.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"[a-z0-9]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ARTICLES = frozenset({"a", "an", "the"})
LETTERS = "ABCDEF"
#: A letter is looked for in so many characters at the start of a reply.
LETTER_SPAN = 40
#: An option's text is taken for the reply from this token F1 on.
MIN_OPTION_F1 = 0.5
#: A numeric reference of more tokens than this is compared as text.
MAX_NUMERIC_TOKENS = 3
NUMBER_TOLERANCE = 1e-9


def tokens(text: str) -> list[str]:
    """Lower-case latin letters and digits in runs, without articles."""
    return [t for t in _TOKEN.findall(unicodedata.normalize("NFKC", text).lower()) if t not in _ARTICLES]


def token_f1(reference: str, response: str) -> float:
    """F1 of the two multisets of tokens; 0 where either has none."""
    return _f1(tokens(reference), tokens(response))


def _f1(g: list[str], p: list[str]) -> float:
    common = sum((Counter(g) & Counter(p)).values())
    if not common:
        return 0.0
    precision, recall = common / len(p), common / len(g)
    return 2 * precision * recall / (precision + recall)


def last_number(text: str | None) -> float | None:
    """The last number in the text, commas taken out first; None without one."""
    found = _NUMBER.findall((text or "").replace(",", ""))
    number = float(found[-1]) if found else math.nan
    return number if math.isfinite(number) else None


def lexical(reference: str | None, response: str | None) -> float:
    """The larger of an exact match, the token F1 and a match of the last numbers."""
    response = response or ""
    if reference is None:
        return 0.0 if response else 1.0
    g, p = tokens(reference), tokens(response)
    if g and g == p:
        return 1.0
    wanted, given = last_number(reference), last_number(response)
    if (
        wanted is not None
        and given is not None
        and abs(wanted - given) <= NUMBER_TOLERANCE
        and len(g) <= MAX_NUMERIC_TOKENS
        and all(t in p for t in g if not t.isdigit())
    ):
        return 1.0
    return _f1(g, p)


def option_chosen(options: Sequence[str], response: str | None) -> int | None:
    """Index of the option that a reply means, or None where it means none or several.

    A single letter in the first 40 characters decides; else the option whose tokens match best, from F1 0.5 on and
    above all others; else the only option whose text the reply contains.
    """
    reply = (response or "").strip()
    if not reply:
        return None
    letters = LETTERS[: len(options)]
    if letters:
        # The class of neighbours is lower-case only: in "BAD" the B counts.
        found = re.search(
            rf"(?<![a-z0-9])([{letters}{letters.lower()}])(?![a-z0-9])", reply[:LETTER_SPAN]
        )
        if found:
            return LETTERS.index(found.group(1).upper())
    said = tokens(reply)
    texts = [tokens(option) for option in options]
    scores = [_f1(t, said) for t in texts]
    best = max(scores, default=0.0)
    if best >= MIN_OPTION_F1 and scores.count(best) == 1:
        return scores.index(best)
    joined = " ".join(said)
    contained = [i for i, t in enumerate(texts) if " ".join(t) in joined]
    return contained[0] if len(contained) == 1 else None


@dataclass(frozen=True)
class OptionMatcher:
    """Scores replies to one multiple-choice item, 1 for the right option; the annotated reference is not read."""

    options: tuple[str, ...]
    correct: int

    def __call__(self, response: str | None) -> float:
        """1 if the reply means the right option, else 0."""
        return float(option_chosen(self.options, response) == self.correct)
