"""Signals through codecs, in JAX: what the far end decodes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate.channels._codecs import AUDIO_RATE, BLOCK, MuLaw, Picture, UniformSteps

Array = jax.Array

#: mu of ITU-T G.711.
MU = 255.0
#: Range of the cosine coefficients of pixels in -128 ... 127, first (mean) and others, in orthonormal scale.
DC_RANGE, AC_RANGE = 1024.0, 256.0


def through(codec: Any, signal: Array, span: tuple[float, float] = (-1.0, 1.0)) -> Array:
    """The signal as decoded: sound (N,) float32, a picture (H, W, 3) float32 in 0 ... 255, or numbers within `span`."""
    if isinstance(codec, MuLaw):
        return _mu_law(codec, signal)
    if isinstance(codec, Picture):
        return _picture(codec, signal)
    if isinstance(codec, UniformSteps):
        low, high = span
        top = float(2**codec.bits - 1)
        step = jnp.round(jnp.clip((signal - low) / (high - low), 0.0, 1.0) * top)
        return low + step * ((high - low) / top)
    return signal


def _mu_law(codec: MuLaw, samples: Array) -> Array:
    step = AUDIO_RATE // codec.sample_rate
    count = samples.shape[0]
    slow = jnp.pad(samples, (0, -count % step), mode="edge").reshape(-1, step).mean(1) if step > 1 else samples
    top = float(2 ** (codec.bits - 1) - 1)
    squeezed = jnp.sign(slow) * jnp.log1p(MU * jnp.abs(slow)) * np.float32(1.0 / np.log1p(MU))
    level = jnp.round(squeezed * top) / top
    decoded = jnp.sign(level) * jnp.expm1(jnp.abs(level) * np.float32(np.log1p(MU))) / MU
    if step == 1:
        return decoded
    # Linear interpolation between the centres of the averaged runs.
    at = (jnp.arange(count, dtype=jnp.float32) + 0.5) / step - 0.5
    low = jnp.clip(jnp.floor(at).astype(jnp.int32), 0, decoded.shape[0] - 1)
    high = jnp.minimum(low + 1, decoded.shape[0] - 1)
    weight = jnp.clip(at - low.astype(jnp.float32), 0.0, 1.0)
    return decoded[low] * (1.0 - weight) + decoded[high] * weight


def _cosines() -> np.ndarray[Any, np.dtype[np.float32]]:
    """(BLOCK, BLOCK) orthonormal DCT-II."""
    k, n = np.arange(BLOCK)[:, None], np.arange(BLOCK)[None]
    matrix = np.sqrt(2.0 / BLOCK) * np.cos(np.pi * (2 * n + 1) * k / (2 * BLOCK))
    matrix[0] *= np.sqrt(0.5)
    return np.asarray(matrix, dtype=np.float32)


def _picture(codec: Picture, pixels: Array) -> Array:
    height, width, _ = pixels.shape
    s = codec.scale
    small = jnp.pad(pixels, ((0, -height % s), (0, -width % s), (0, 0)), mode="edge")
    small = small.reshape(small.shape[0] // s, s, small.shape[1] // s, s, 3).mean((1, 3))
    if codec.keep == BLOCK:
        top = float(2**codec.bits - 1)
        decoded = jnp.round(small * np.float32(top / 255.0)) * np.float32(255.0 / top)
    else:
        decoded = _blocks(codec, small)
    large = jnp.repeat(jnp.repeat(decoded, s, 0), s, 1)[:height, :width]
    return jnp.clip(large, 0.0, 255.0)


def _blocks(codec: Picture, pixels: Array) -> Array:
    height, width, _ = pixels.shape
    padded = jnp.pad(pixels, ((0, -height % BLOCK), (0, -width % BLOCK), (0, 0)), mode="edge") - 128.0
    rows, columns = padded.shape[0] // BLOCK, padded.shape[1] // BLOCK
    blocks = padded.reshape(rows, BLOCK, columns, BLOCK, 3)
    kept = jnp.asarray(_cosines()[: codec.keep])
    coefficients = jnp.einsum("un,rncmk,vm->rucvk", kept, blocks, kept)
    reach = np.full((codec.keep, codec.keep), AC_RANGE, dtype=np.float32)
    reach[0, 0] = DC_RANGE
    span = jnp.asarray(reach)[None, :, None, :, None]
    top = float(2 ** (codec.bits - 1) - 1) if codec.bits > 1 else 0.5
    level = jnp.clip(jnp.round(coefficients / span * top), -top, top) / top * span
    decoded = jnp.einsum("un,rucvk,vm->rncmk", kept, level, kept)
    return decoded.reshape(padded.shape)[:height, :width] + 128.0
