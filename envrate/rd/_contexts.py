"""What may be known before a block of letters: nothing, the hidden state, or the latest letters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envrate.rd._blocks import Condition, block_law
from envrate.rd._chain import HiddenMarkov, entropy

FloatArray = NDArray[np.float64]


def _condition(
    name: str,
    source: HiddenMarkov,
    letters: NDArray[np.intp],
    n: int,
    weights: FloatArray,
    starts: FloatArray,
    rate: float,
) -> Condition:
    """The condition with cases of probability `weights` and state laws `starts`; `rate` is the entropy rate or NaN.

    Cases that leave the same law of the state are merged. With letters of the past known the blocks' entropies add up
    to more than the process's entropy, by `memory` per letter; with the state known nothing is to be taken off.
    """
    size = len(letters)
    shape = (size ** ((n + 1) // 2), size ** (n // 2))
    laws = np.stack([block_law(source, start, letters, n) for start in starts])
    total = sum(w * entropy(law) for w, law in zip(weights, laws, strict=True)) / n
    memory = 0.0 if np.isnan(rate) else max(0.0, total - rate)
    return Condition(name, weights, laws.reshape(-1, *shape), memory)


def unconditional(source: HiddenMarkov, letters: NDArray[np.intp], n: int, rate: float) -> Condition:
    """Nothing known: the block law itself, with the memory term of Wyner and Ziv 1971."""
    return _condition("Wyner-Ziv", source, letters, n, np.ones(1), source.stationary[None], rate)


def given_state(source: HiddenMarkov, letters: NDArray[np.intp], n: int) -> Condition:
    """The hidden state before the block known to both ends (Gray 1973).

    Valid for hidden chains: the rate of the letters is that of the states under a distortion that looks at the letter
    only, and the states are a Markov source.
    """
    eye = np.eye(source.num_states)
    return _condition("Gray", source, letters, n, source.stationary, eye, float("nan"))


def given_letters(
    source: HiddenMarkov, letters: NDArray[np.intp], n: int, rate: float, max_cases: int
) -> Condition:
    """The latest letters before the block known, as many as `max_cases` contexts allow.

    For blocks A_j and what is known of their past, G_j, a function of it:

        I(A; Y) >= sum_j H(A_j | past) - H(A_j | Y_j, G_j) = sum_j I(A_j; Y_j | G_j) - (H(A_j | G_j) - n h).

    With nothing known this is the bound of Wyner and Ziv 1971, with the state of a Markov source Gray's of 1973;
    knowing more never lowers it. The context in most doubt is made longer first.
    """
    steps = [source.transition * source.emission[:, y] for y in letters]
    following = source.transition @ source.emission[:, letters]

    def spread(row: FloatArray) -> float:
        """Entropy of a law times its mass."""
        return float(row.sum()) * entropy(row / row.sum()) if row.sum() > 0 else 0.0

    def doubt(product: FloatArray) -> float:
        """P(w) (H(next | w) - H(next | w, state before w)) in bits; product = P(w, state now | state before w)."""
        rows = product @ following
        known = sum(p * spread(row) for p, row in zip(source.stationary, rows, strict=True))
        return spread(source.stationary @ rows) - float(known)

    leaves = [(doubt(np.eye(source.num_states)), np.eye(source.num_states))]
    while True:
        leaves.sort(key=lambda leaf: leaf[0])
        worst, product = leaves[-1]
        longer = [step @ product for step in steps]
        longer = [item for item in longer if (source.stationary @ item).sum() > 0]
        if worst <= 1e-12 or len(leaves) - 1 + len(longer) > max_cases:
            break
        leaves[-1:] = [(doubt(item), item) for item in longer]
    beliefs = np.stack([source.stationary @ product for _, product in leaves])
    weights = beliefs.sum(axis=1)
    starts = beliefs / weights[:, None]
    # Contexts that leave the same belief about the state are one case.
    _, first, label = np.unique(np.round(starts, 13), axis=0, return_index=True, return_inverse=True)
    merged = np.asarray(np.bincount(label.ravel(), weights=weights), dtype=np.float64)
    return _condition("context", source, letters, n, merged, starts[first], rate)
