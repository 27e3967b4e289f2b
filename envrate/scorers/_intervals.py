"""What the bootstrap cannot see: classes of consequences with few or no events, and tied shares of e.

A resample of a run without a miss has no miss, however short the run. Where a class has fewer than 5 events, its
frequency goes to its one-sided Clopper-Pearson bound with the effective sample size, and what that costs in bits is
added to the bootstrap's lower half, root of the sum of squares (the square-and-add rule for independent errors; Zou
and Donner 2008).

e is bounded by the largest of its shares. Where several required symbols have the same share, as with honest erasure,
the largest of their counted shares is above it more often than not, and the rate at it too low; what that may hide is
added to the upper half in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate.scorers._credited import CreditedRate
from envrate.scorers._profile import Profile
from envrate.scorers._resolved import (
    ASKED,
    HEARD,
    REDUCED,
    UNHEARD,
    UNKNOWN_TO_AGENT,
    conditional,
    required_counts,
)

FloatArray = NDArray[np.float64]

#: A class with fewer events than this gets its Clopper-Pearson bound.
FEW = 5
#: A rate with fewer events behind it than this is withheld.
MIN_EVENTS = 10
LEVEL = 0.95
#: Shares of e that differ by less than this many standard errors count as tied.
TIED_WITHIN = 3.0
#: Runs drawn to see what chance adds.
CHANCE_RUNS = 1000


def clopper_pearson_upper(events: ArrayLike, trials: ArrayLike, tail: ArrayLike) -> FloatArray:
    """One-sided upper confidence bound of a binomial proportion at level 1 - tail; trials need not be whole."""
    from scipy.special import betaincinv

    events, trials = np.broadcast_arrays(np.asarray(events, float), np.asarray(trials, float))
    sure = events >= trials
    safe = np.where(sure, 0.0, events)
    bound = betaincinv(safe + 1.0, np.where(sure, 1.0, trials - safe), 1.0 - np.asarray(tail))
    return np.asarray(np.where(sure, 1.0, bound))


def design_effect(blocks: FloatArray, window: int) -> FloatArray:
    """(L,) how many times more than independent ticks the counts of failures vary, at least 1.

    Args:
        blocks: (B, L, A, A + 4) reduced counts.
        window: consecutive blocks that hang together.

    The failures are silences about which nothing was delivered, and ticks not handled; the larger effect counts. A
    series without variation has an effect of 1.
    """
    size = blocks.shape[-2]
    right = np.zeros(blocks.shape[:2])
    for a in range(size):
        right += blocks[:, :, a, REDUCED + a - 1] if a else blocks[:, :, 0, UNHEARD] + blocks[:, :, 0, HEARD]
    ticks = required_counts(blocks).sum(axis=-1)  # (B, L)
    unheard = blocks[..., UNHEARD].sum(axis=-1)
    effects = [_variance_ratio(series, ticks, window) for series in (ticks - right, unheard)]
    return np.asarray(np.maximum.reduce([np.ones(blocks.shape[1]), *effects]))


def _variance_ratio(events: FloatArray, ticks: FloatArray, window: int) -> FloatArray:
    """(L,) variance of sums over windows of blocks, over that of independent ticks."""
    starts = np.arange(0, len(events), window)
    y, n = np.add.reduceat(events, starts, axis=0), np.add.reduceat(ticks, starts, axis=0)
    share = y.sum(axis=0) / np.maximum(n.sum(axis=0), 1.0)
    expected = (n * share * (1.0 - share)).sum(axis=0)
    found = ((y - n * share) ** 2).sum(axis=0) * len(starts) / max(len(starts) - 1, 1)
    return np.asarray(np.divide(found, expected, out=np.ones_like(found), where=expected > 0))


def sparse_bounds(
    classes: Profile, total: FloatArray, frequencies: FloatArray, conditional: FloatArray, effect: FloatArray
) -> FloatArray:
    """(L, C) frequencies with those of sparse classes at their Clopper-Pearson bounds.

    Args:
        classes: of the source.
        total: (L, A, A + 4) reduced counts of the run.
        frequencies: (L, C) of the run.
        conditional: (L, A, A + 2) table of the run.
        effect: (L,) design effect: ticks per effective tick.

    The level of each bound is shared among the sparse classes of its row (Bonferroni).
    """
    possible = classes.pmf > 0
    ticks = np.where(possible, required_counts(total), 0.0)  # (L, A)
    events = np.einsum("la,lay,ayc->lc", ticks, np.where(possible[:, None], conditional, 0.0), classes.cells)
    if classes.resolved:  # the classes e are one event, bounded in common
        unknown = (ticks * np.where(possible, conditional[..., -1], 0.0)).sum(axis=-1)
        events = np.where(classes.common, unknown[:, None], events)
    binding = classes.mass > 0
    sparse = (events < FEW) & binding  # (L, C)
    groups = (sparse & ~classes.common).sum(axis=1) + (sparse & classes.common).any(axis=1)
    tail = np.where(groups > 0, (1.0 - LEVEL) / 2 / np.maximum(groups, 1), 1.0)
    # Effective trials: of the symbol that limits the class most, scaled to the class's whole mass.
    touched = np.asarray(classes.cells.any(axis=1))  # (A, C)
    if classes.resolved:
        touched[:, classes.common] = True
    with np.errstate(divide="ignore", invalid="ignore"):
        per_mass = np.where((touched & possible[:, None])[None], (ticks / classes.pmf)[:, :, None], np.inf).min(axis=1)
        mass = np.where(classes.common, classes.pmf[possible].min(initial=1.0), classes.mass)
        trials = np.where(binding, per_mass * mass, 1.0) / effect[:, None]
    upper = clopper_pearson_upper(np.where(sparse, events, 0.0), np.maximum(trials, 1e-9), tail[:, None])
    return np.where(sparse, np.maximum(frequencies, upper * classes.mass), frequencies)


def tied_bounds(
    classes: Profile, total: FloatArray, frequencies: FloatArray, conditional: FloatArray, effect: FloatArray
) -> FloatArray:
    """(L, C) frequencies with the common bound on e lowered by what a maximum over k tied shares may add.

    An interval of one share has the reach z = 1.96 standard errors. Each of k independent tied shares is below its
    own share plus q errors with probability 0.975 ** (1 / k), q the normal quantile of that, and so is their maximum
    with probability 0.975 (Sidak 1967; for bounds that are a maximum, Chernozhukov, Lee and Rosen 2013). Errors of the
    reach sqrt(q^2 - z^2) make up the difference when they are added in squares; with k = 1 there is none.

    Args:
        classes: of the source.
        total: (L, A, A + 4) reduced counts of the run.
        frequencies: (L, C) of the run.
        conditional: (L, A, A + 2) table of the run.
        effect: (L,) design effect.
    """
    from scipy.special import ndtri

    if not classes.resolved:
        return frequencies
    possible = classes.pmf > 0
    share = np.where(possible, conditional[..., -1], -np.inf)  # (L, A)
    safe = np.where(possible, share, 0.0)
    ticks = np.where(possible, required_counts(total), 1.0)
    heard, asked = total[..., HEARD], total[..., ASKED]
    doubt = total[..., UNKNOWN_TO_AGENT] / np.maximum(asked, 1.0)  # of the probed silences
    variance = safe * (1.0 - safe) / ticks + (heard / ticks) ** 2 * doubt * (1.0 - doubt) / np.maximum(asked, 1.0)
    variance = np.where(possible, variance * effect[:, None], 0.0)
    top = share.argmax(axis=1)[:, None]
    largest, spread = np.take_along_axis(share, top, 1), np.take_along_axis(variance, top, 1)
    tied = (largest - share <= TIED_WITHIN * np.sqrt(variance + spread)).sum(axis=1)
    tail = (1.0 + LEVEL) / 2
    reach = np.sqrt(np.maximum(ndtri(tail ** (1.0 / tied)) ** 2 - ndtri(tail) ** 2, 0.0))
    lowered = np.maximum(largest[:, 0] - reach * np.sqrt(spread[:, 0]), 0.0)
    return np.where(classes.common, np.minimum(frequencies, lowered[:, None] * classes.mass), frequencies)


def chance_bound(
    classes: Profile, total: FloatArray, bits: FloatArray, effect: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """(L,) the rate, bits per letter, that outcomes which do not look at the required symbol exceed in 2.5 % of runs.

    At a rate of 0 chance only ever adds, the more the more symbols there are, and no resample undoes it. So runs of
    the same effective length are drawn with the outcome's own law, whatever is required.

    Args:
        classes: of the source.
        total: (L, A, A + 4) reduced counts of the run.
        bits: (L,) its rate per letter; 0 is returned where it is far beyond what chance can add.
        effect: (L,) design effect.
        rng: source of randomness.
    """
    rate = CreditedRate(classes)  # of one letter: that of a process with memory is lower
    counts = required_counts(total)  # (L, A)
    possible = classes.pmf > 0
    out = np.zeros(len(total))
    # Twice n ln 2 times the information of independent letters is about chi-squared; its mean plus ten deviations.
    freedom = (len(classes.pmf) - 1) * (len(classes.pmf) + classes.resolved)
    with np.errstate(divide="ignore"):
        length = (counts[:, possible] / classes.pmf[possible]).min(axis=1) / effect
        beyond = (freedom + 10.0 * np.sqrt(2.0 * freedom)) / (2.0 * np.log(2.0) * length)
    for level in np.flatnonzero((bits > 0) & (bits < beyond)):
        trials = np.maximum(np.round(counts[level] / effect[level]), 1).astype(np.int64)
        table = conditional(total[level], resolved=classes.resolved)
        law = np.clip(classes.pmf[possible] @ table[possible], 0.0, None)
        runs = np.zeros((CHANCE_RUNS, len(classes.pmf), len(law)))
        for a in np.flatnonzero(possible):
            runs[:, a] = rng.multinomial(trials[a], law / law.sum(), CHANCE_RUNS) / trials[a]
        out[level] = np.quantile(rate.lower(classes.frequencies(runs)), 0.5 + LEVEL / 2)
    return out


def add_in_squares(point: FloatArray, lower: FloatArray, other: FloatArray) -> FloatArray:
    """Lower end from the bootstrap's and from the rate at other frequencies; both at most `point`."""
    return np.asarray(point - np.hypot(np.maximum(point - lower, 0.0), np.maximum(point - other, 0.0)))
