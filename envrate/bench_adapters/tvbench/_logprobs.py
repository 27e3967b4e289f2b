"""Option probabilities from token log-probabilities, and the information they carry."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envrate.bench_adapters._files import mapping, real, sequence, text
from envrate.bench_adapters.tvbench._items import Item

#: A token that is one option's letter, with whatever the server left around it: "B", " B", "(B)", "**B**".
_LETTER = re.compile(r"^[\s(\[{*_`\"':]*([A-Z])[\s)\]}*_`\"'.,:]*$")


def _letter(token: str, options: int) -> int:
    """Option 1 ... K that a token is, else 0."""
    match = _LETTER.match(token)
    index = ord(match[1]) - ord("A") + 1 if match else 0
    return index if index <= options else 0


def _keep_largest(found: dict[int, float], row: dict[str, Any], options: int) -> None:
    """Adds a token's log-probability under its option; of "B" and " B" the likelier counts."""
    option, value = _letter(text(row.get("token")), options), real(row.get("logprob"), high=1e-6)
    if option and value is not None:
        found[option] = max(found.get(option, -math.inf), min(value, 0.0))


def option_logprobs(tokens: Sequence[Any], options: int) -> tuple[float, ...] | None:
    """(K,) log-probabilities of the options at the last token that is an option's letter; None where they are unknown.

    Options that are not among the alternatives get the probability of the least likely one listed: a server shows a
    few alternatives only, and none of the rest is likelier than that. The token's own value counts only where it is not
    among its alternatives.
    """
    for token in reversed(tokens):
        row = mapping(token)
        if options < 2 or not _letter(text(row.get("token")), options):
            continue
        found: dict[int, float] = {}
        for other in map(mapping, sequence(row.get("top_logprobs"))):
            _keep_largest(found, other, options)
        own: dict[int, float] = {}
        _keep_largest(own, row, options)
        found = own | found
        if len(found) < 2:
            return None
        least = min(found.values())
        return tuple(found.get(option, least) for option in range(1, options + 1))
    return None


# -- what the probabilities tell ----------------------------------------------------------------------------------

#: Fewer questions than this give no bound: their halves fit nothing.
MIN_ITEMS = 20
#: Calibration tries these inverse temperatures; 0 makes every option equally likely, so the bound is never below 0 by
#: much. Steps of 20 %.
INVERSE_TEMPERATURES = (0.0, *(1.2**power for power in range(-20, 13)))


@dataclass(frozen=True)
class InformationBound:
    """Bits per item that the model's option probabilities tell about the right option.

    `bits` is a lower bound in expectation: log2 K minus the cross-entropy of probabilities whose temperature was
    fitted on the other half of the items. NaN with a `reason` where it cannot be had.
    """

    bits: float
    items: int
    low: float = math.nan
    high: float = math.nan
    reason: str | None = None


def information_bound(items: Sequence[Item]) -> InformationBound:
    """The bound for the items of a run that carry log-probabilities and a known answer.

    Method: I(A; X) >= log2 K - E[-log2 q(a | x)] for any q that does not see a, as for an auxiliary channel (Arnold et
    al. 2006); q is the model's law of the options at a temperature of its own, fitted by cross-entropy on the items of
    the other parity (cross-fit). The interval is normal, over questions.
    """
    usable = [item for item in items if item.logprobs is not None and item.target]
    questions = sorted({(item.subset, item.index) for item in usable})
    if len(questions) < MIN_ITEMS:
        reason = f"{len(questions)} item(s) with log-probabilities of at least two options, expected {MIN_ITEMS}"
        return InformationBound(math.nan, len(usable), reason=reason)
    half = {key: number % 2 for number, key in enumerate(questions)}
    sides = [[item for item in usable if half[item.subset, item.index] == side] for side in (0, 1)]
    gains: dict[tuple[str, int], list[float]] = {}
    for fitted_on, side in ((sides[1], sides[0]), (sides[0], sides[1])):
        beta = max(INVERSE_TEMPERATURES, key=lambda b: sum(_gain(item, b) for item in fitted_on))
        for item in side:
            gains.setdefault((item.subset, item.index), []).append(_gain(item, beta))
    means = [sum(values) / len(values) for values in gains.values()]
    bits = sum(means) / len(means)
    spread = math.sqrt(sum((value - bits) ** 2 for value in means) / (len(means) - 1) / len(means))
    return InformationBound(bits, len(usable), bits - 1.96 * spread, bits + 1.96 * spread)


def _gain(item: Item, beta: float) -> float:
    """log2 K + log2 q(right option) in bits, with q the option law at inverse temperature `beta`."""
    assert item.logprobs is not None
    scaled = [beta * value for value in item.logprobs]
    top = max(scaled)
    total = sum(math.exp(value - top) for value in scaled)
    return math.log2(item.options) + (scaled[item.target - 1] - top) / math.log(2) - math.log2(total)
