from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from envrate import tasks
from envrate.channels import _codec_kernels, _codecs
from envrate.channels._codecs import MuLaw, Picture, UniformSteps
from envrate.renderers import Audio, Proprio, Screen, Video


def tone(count: int = 1600) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * 440 * np.arange(count) / 16000)).astype(np.float32)


def snr(clean: np.ndarray, coded: np.ndarray) -> float:
    return float(10 * np.log10((clean**2).mean() / ((clean - coded) ** 2).mean()))


def test_more_bits_are_better_sound() -> None:
    found = [
        snr(tone(), np.asarray(_codec_kernels.through(MuLaw(16000, b), jnp.asarray(tone())))) for b in (4, 6, 8, 10)
    ]
    # About 6 dB per bit; mu-law at 8 bits has some 38 dB over a wide range of levels.
    assert all(b - a > 8 for a, b in zip(found, found[1:], strict=False)) and 34 < found[2] < 44


def test_a_lower_rate_keeps_what_lies_below_it() -> None:
    coded = np.asarray(_codec_kernels.through(MuLaw(8000, 10), jnp.asarray(tone())))
    assert coded.shape == tone().shape and snr(tone()[8:-8], coded[8:-8]) > 18


def test_pictures_lose_detail_as_bits_go() -> None:
    y, x = np.mgrid[:64, :64]
    smooth = np.stack([120 + 60 * np.sin(x / 9), 100 + 0.8 * y, 90 + 30 * np.cos((x + y) / 7)], axis=2).astype(
        np.float32
    )
    errors = [
        float(np.abs(np.asarray(_codec_kernels.through(codec, jnp.asarray(smooth))) - smooth).mean())
        for codec in _codecs.PICTURE_LADDER[1:]
    ]
    assert errors[0] < 3 and errors[-1] > 2 * errors[0] and max(errors) < 40
    assert (
        float(np.abs(np.asarray(_codec_kernels.through(Picture(1, 8, 8), jnp.asarray(smooth))) - smooth).max()) <= 0.51
    )


def test_uniform_steps_err_by_half_a_step_at_most() -> None:
    x = np.linspace(-1, 1, 1001).astype(np.float32)
    coded = np.asarray(_codec_kernels.through(UniformSteps(8), jnp.asarray(x)))
    assert np.abs(coded - x).max() <= 1 / 255 + 1e-6


@pytest.mark.parametrize("ladder", ["AUDIO_LADDER", "PICTURE_LADDER", "PROPRIO_LADDER"])
def test_ladders_go_down(ladder: str) -> None:
    numbers = {"AUDIO_LADDER": 1600, "PICTURE_LADDER": (64, 64), "PROPRIO_LADDER": 45}[ladder]
    raw = {"AUDIO_LADDER": 16, "PICTURE_LADDER": 24, "PROPRIO_LADDER": 32}[ladder]
    bits = [_codecs.packet_bits(codec, numbers, raw) for codec in getattr(_codecs, ladder)]
    assert bits == sorted(bits, reverse=True) and len(set(bits)) == len(bits)


@pytest.mark.parametrize(
    "renderer", [Audio(codec="auto"), Video(codec="auto"), Screen(codec="auto"), Proprio(codec="auto")]
)
def test_auto_takes_the_best_codec_that_fits(renderer: object) -> None:
    task = tasks.get("alert")
    rates = []
    for bandwidth in (None, 1e7, 1e6, 2e5, 5e4, 1e4):
        settled = renderer.for_link(task, bandwidth)
        rate = settled.packet_bits(task) * 1000 / settled.frame_ms(task)
        rates.append(rate)
        ladder_end = renderer.for_link(task, 1.0)
        assert bandwidth is None or rate <= 0.9 * bandwidth or settled == ladder_end
    assert rates == sorted(rates, reverse=True)
    with pytest.raises(ValueError, match="codec: 'auto' depends on the link"):
        renderer.packet_bits(task)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MuLaw(sample_rate=7000), "codec.sample_rate: expected 16000 Hz divided"),
        (lambda: MuLaw(bits=1), "codec.bits"),
        (lambda: Picture(keep=9), "codec.keep"),
        (lambda: UniformSteps(bits=0), "codec.bits"),
        (lambda: Audio(codec="mp3"), "codec: expected one of auto, raw"),
        (lambda: Audio(codec={"kind": "mu-law", "bits": 99}), "codec.bits"),
    ],
)
def test_bad_codecs_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
