"""From counts to conditional frequencies, in the two readings.

Seen from outside, a correct silence and a miss are the same silence: that is the output-only reading. In the
resolved one a silent tick becomes the symbol e, not known in time, if nothing about it had been delivered, or if its
probe was answered "don't know" or not at all. Silences not probed are apportioned by the probed ones of the same
required symbol; where none of those was probed, the link's log alone decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from envrate.scorers._tally import SILENT_KINDS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Columns that `reduce` makes, before the responses.
UNHEARD, HEARD, ASKED, UNKNOWN_TO_AGENT = range(4)
REDUCED = 4


def reduce(counts: IntArray) -> FloatArray:
    """(..., A, A + 4) what the readings need of counts (..., A, A + 8).

    Columns: silences about which nothing was delivered, other silences, those of the latter that were probed, those
    of the probed that were answered "don't know" or not at all, responses 1 ... A-1, wrong and unknown which.
    """
    unheard = counts[..., 4:SILENT_KINDS].sum(axis=-1)
    heard = counts[..., :4].sum(axis=-1)
    asked = counts[..., 1:4].sum(axis=-1)
    silent = np.stack([unheard, heard, asked, counts[..., 3]], axis=-1)
    return np.concatenate([silent, counts[..., SILENT_KINDS:]], axis=-1).astype(np.float64)


def required_counts(reduced: FloatArray) -> FloatArray:
    """(..., A) ticks by required symbol."""
    return np.asarray(reduced[..., [UNHEARD, HEARD]].sum(axis=-1) + reduced[..., REDUCED:].sum(axis=-1))


def pooled(reduced: FloatArray, exchangeable: Sequence[Sequence[int]]) -> FloatArray:
    """(..., A, A + 4) counts in which a symbol that never came up has the mean ones of its exchangeable group.

    What was right of a group's members is right for the missing one; what was wrong is wrong, unknown which.
    """
    out = reduced.copy()
    for group in exchangeable:
        members = np.asarray(group)
        rows = reduced[..., members, :].sum(axis=-2)
        came_up = (required_counts(reduced)[..., members] > 0).sum(axis=-1)
        right = sum(reduced[..., a, REDUCED + a - 1] for a in members)
        wrong = rows[..., REDUCED:].sum(axis=-1) - right
        for a in members:
            row = np.zeros_like(rows)
            row[..., :REDUCED] = rows[..., :REDUCED]
            row[..., REDUCED + a - 1] = right
            row[..., -1] = wrong
            row /= np.maximum(came_up, 1.0)[..., None]
            missing = required_counts(reduced)[..., a] == 0
            out[..., a, :] = np.where(missing[..., None], row, out[..., a, :])
    return out


def conditional(reduced: FloatArray, *, resolved: bool, fallback: FloatArray | None = None) -> FloatArray:
    """(..., A, A + 2) frequency of silence, each response, "wrong, unknown which" and e, given the required symbol.

    Args:
        reduced: (..., A, A + 4) as `reduce` gives.
        resolved: the reading; the column e is 0 in the output-only one.
        fallback: (..., A, A + 4) counts to use for a symbol that did not come up, as happens in a resample; without
            it the rows of such a symbol are NaN. It lends its share of "don't know" too where no silence was probed.
    """
    if fallback is not None:
        missing = required_counts(reduced) == 0
        if missing.any():
            reduced = np.where(missing[..., None], np.broadcast_to(fallback, reduced.shape), reduced)
    total = required_counts(reduced)
    with np.errstate(invalid="ignore", divide="ignore"):
        silent = (reduced[..., UNHEARD] + reduced[..., HEARD]) / total
        responses = reduced[..., REDUCED:] / total[..., None]
        share = reduced[..., UNKNOWN_TO_AGENT] / reduced[..., ASKED]
        if fallback is not None:
            share = np.where(np.isnan(share), fallback[..., UNKNOWN_TO_AGENT] / fallback[..., ASKED], share)
        share = np.nan_to_num(share, nan=0.0)
        unknown = (reduced[..., UNHEARD] + reduced[..., HEARD] * share) / total if resolved else np.zeros_like(silent)
    return np.concatenate([(silent - unknown)[..., None], responses, unknown[..., None]], axis=-1)
