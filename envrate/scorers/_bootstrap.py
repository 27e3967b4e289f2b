"""The bootstrap over blocks, batched: resamples are rows of weights, statistics are functions of weighted counts.

Blocks are whole episodes, drawn independently, or stretches of ticks, of which moving windows are drawn so that
dependence from tick to tick survives in each resample (Kuensch 1989; circular, after Politis and Romano 1992).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def weights(blocks: int, resamples: int, rng: np.random.Generator, *, window: int = 1) -> FloatArray:
    """(R, B) how often each block was drawn in each resample; every row sums to B.

    Args:
        blocks: B, in order of time where `window` is above 1.
        resamples: R.
        rng: source of randomness.
        window: consecutive blocks that are drawn together; 1 draws blocks independently.
    """
    window = min(window, blocks)
    draws = -(-blocks // window)
    start = rng.integers(0, blocks, (resamples, draws)) if window > 1 else rng.integers(0, blocks, (resamples, blocks))
    row = np.arange(resamples)[:, None]
    if window == 1:
        drawn = np.bincount((start + row * blocks).ravel(), minlength=resamples * blocks)
        return drawn.reshape(resamples, blocks).astype(np.float64)
    length = np.full(draws, window)
    length[-1] = blocks - (draws - 1) * window  # the last window is cut so that each resample is as long as the run
    span = 2 * blocks  # windows that run over the end go on at the beginning
    change = np.bincount((start + row * span).ravel(), minlength=resamples * span).astype(np.float64)
    end = np.minimum(start + length, span - 1)
    change -= np.bincount((end + row * span).ravel(), minlength=resamples * span)
    covered = change.reshape(resamples, span).cumsum(axis=1)
    return np.asarray(covered[:, :blocks] + covered[:, blocks:])


def window_length(series: FloatArray) -> int:
    """Blocks to draw together for series (B, S), the longest that any of the S series asks for.

    The rule of Politis and White (2004, with the correction of Patton, Politis and White 2009) for the circular block
    bootstrap: b = (2 g^2 / d)^(1/3) B^(1/3), with g and d from the flat-top estimate of the spectrum at 0.
    """
    count = len(series)
    centred = series - series.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    centred = centred[:, variance > 1e-12 * np.maximum(1.0, (series**2).mean(axis=0))]
    if count < 8 or not centred.shape[1]:
        return 1
    most = int(min(np.ceil(3 * np.sqrt(count)), count / 3))
    spectrum = np.fft.rfft(centred, 2 * count, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: most + 1] / count  # (lags, S)
    return max(1, min(most, int(np.ceil(max(_politis_white(c, count) for c in covariance.T)))))


def _politis_white(covariance: FloatArray, count: int) -> float:
    """Optimal block length from autocovariances at lags 0 ... K."""
    limit = 2.0 * np.sqrt(np.log10(count) / count)
    run = max(5, int(np.ceil(np.sqrt(np.log10(count)))))
    small = np.abs(covariance[1:] / covariance[0]) < limit
    last = len(small)
    for first in range(len(small)):  # the lag after which a run of lags is insignificant
        if small[first : first + run].all():
            last = first
            break
    reach = min(2 * last, len(covariance) - 1)
    if reach == 0:
        return 1.0
    lag = np.arange(1, reach + 1)
    taper = np.clip(2.0 * (1.0 - lag / reach), 0.0, 1.0) if reach > 1 else np.ones(1)
    taper[lag <= reach / 2] = 1.0
    kept = taper * covariance[1 : reach + 1]
    density = covariance[0] + 2.0 * kept.sum()
    if density <= 0.1 * covariance[0]:  # negative dependence: longer blocks have nothing to mend
        return 1.0
    slope = 2.0 * (lag * kept).sum()
    return float((2.0 * slope**2 / (4.0 / 3.0 * density**2)) ** (1 / 3) * count ** (1 / 3))


def bca(point: FloatArray, resampled: FloatArray, influence: FloatArray, *, level: float = 0.95) -> FloatArray:
    """(2, S) bias-corrected and accelerated interval of each of S statistics (Efron 1987).

    Args:
        point: (S,) the statistic on the run itself.
        resampled: (R, S) on the resamples; NaN rows are left out.
        influence: (B, S) jackknife values: the statistic without each block, up to a constant and to its sign
            (mean minus value).
        level: of the interval, two-sided.

    Returns:
        Lower and upper ends; NaN where the point is, or where more than half of the resamples are.

    Resamples of J blocks spread too little by the factor (J - 1) / J, and their spread is itself an estimate, so the
    tails are those of Student's law with J - 1 degrees of freedom, widened by the root of J / (J - 1) (Hesterberg
    2015). The share of resamples below the point counts ties as favours a share of one half: at a boundary, such as
    a rate of 0, half of the resamples can equal the point.
    """
    from scipy.special import ndtr, ndtri, stdtrit

    groups = max(2, len(influence))
    reach = float(np.sqrt(groups / (groups - 1)) * stdtrit(groups - 1, 0.5 + level / 2))
    out = np.full((2, len(point)), np.nan)
    for s in range(len(point)):
        values = resampled[:, s]
        values = np.sort(values[np.isfinite(values)])
        if not np.isfinite(point[s]) or 2 * len(values) < len(resampled) or not len(values):
            continue
        slack = 1e-12 * max(1.0, abs(float(point[s])))
        below = np.searchsorted(values, point[s] - slack) / len(values)
        upto = np.searchsorted(values, point[s] + slack, side="right") / len(values)
        share = np.clip(np.clip(0.5, below, upto), 0.5 / len(values), 1.0 - 0.5 / len(values))
        bias = ndtri(share)
        u = influence[:, s] - influence[:, s].mean()
        spread = float((u**2).sum())
        acceleration = float((u**3).sum()) / (6.0 * spread**1.5) if spread > 0 else 0.0
        for side, tail in enumerate((-reach, reach)):
            z = bias + tail
            shifted = float(ndtr(bias + z / (1.0 - acceleration * z)))
            out[side, s] = _quantile(values, shifted)
    return out


def _quantile(values: FloatArray, share: float) -> float:
    """Quantile of sorted values by linear interpolation at share * (R + 1) - 1."""
    place = np.clip(share * (len(values) + 1) - 1, 0, len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return float(values[low] + (place - low) * (values[high] - values[low]))
