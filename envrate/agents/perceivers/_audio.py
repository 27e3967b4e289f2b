"""A listener: matched filters on the spectrum after the onset for states and loudness, a peak of it for pitch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from envrate.agents.perceivers._perceiver import Reader, Reading, is_gaussian
from envrate.channels._codecs import AUDIO_RATE
from envrate.renderers import _audio, _timing, _wavetables
from envrate.task import Task

#: A frame says something when the note has sounded in it for this long, ms.
LISTEN_MS = 25
#: Tunings that the filters allow for, cents.
TUNINGS = (-10.0, -5.0, 0.0, 5.0, 10.0)
#: Correlation with the chirp above which a frame is a question.
CHIRP = 0.6
#: Candidate pitches per standard deviation, and how many standard deviations to either side are searched.
PER_SD, SDS = 20, 3.6


def reader(task: Task, renderer: Any) -> Reader:
    """Reader of a frame of sound; the listener knows the clock, so it listens from the tick's onset."""
    samples = renderer.signal(task).shape[0]
    chirp = _audio._chirp(samples)
    chirp = chirp / np.linalg.norm(chirp)

    def read(signal: Any, end_ms: Any) -> Reading:
        last = _timing.onsets(task, end_ms, renderer.frame_ms(task)).last
        time = jnp.arange(samples, dtype=jnp.float32) * np.float32(1000.0 / AUDIO_RATE)
        begin = jnp.maximum(last, 0).astype(jnp.float32)
        length = renderer.frame_ms(task) - begin
        # A Hann window over what sounded since the onset: lines stay narrow however short it is.
        place = (time - begin) / length
        window = jnp.where(place >= 0.0, jnp.sin(np.float32(np.pi) * place) ** 2, 0.0)
        loud = jnp.sqrt(jnp.sum(signal * signal)) + np.float32(1e-9)
        probe = jnp.abs(jnp.dot(jnp.asarray(chirp), signal)) > CHIRP * loud
        known = probe | (length >= LISTEN_MS)
        if not is_gaussian(task):
            value = _state(task, renderer, signal * window)
        elif renderer.carrier == "pitch":
            value = _pitch(task, renderer, signal * window)
        else:
            age = (time - last.astype(jnp.float32)) / np.float32(1000.0)
            note = _audio._envelope(age, task.tick_ms / 1000.0)
            value = _loudness(task, renderer, signal * window * note, jnp.sum(window * note * note))
        return Reading(value, probe, known)

    return read


def _squeezed(spectrum: Any) -> Any:
    """Amplitudes on a scale on which weak partials count, and one loud distractor does not drown them."""
    return jnp.sqrt(jnp.abs(spectrum))


def _state(task: Task, renderer: Any, signal: Any) -> Any:
    """The state whose sound has the most similar spectrum."""
    top = signal.shape[0] * 4500 // AUDIO_RATE
    heard = _squeezed(jnp.fft.rfft(signal))[:top]
    heard = heard - heard.mean()
    templates = jnp.asarray(_templates(task, renderer, signal.shape[0], top))
    return jnp.argmax(templates @ heard).astype(jnp.int32)


@lru_cache
def _templates(task: Task, renderer: Any, samples: int, top: int) -> Any:
    """(K, top) centred spectra of unit norm, a mean over tunings and over how long the note has sounded."""
    tables, frequency, _ = _audio.voices(renderer, task)
    time = np.arange(samples) / AUDIO_RATE
    rows = []
    for table, hz in zip(tables, frequency, strict=True):
        total = np.zeros(samples // 2 + 1)
        for cents in TUNINGS:
            phase = (time * hz * 2 ** (cents / 1200)) % 1.0
            wave = table[(phase * _wavetables.PERIOD).astype(int) % _wavetables.PERIOD]
            total += np.sqrt(abs(np.fft.rfft(wave * np.hanning(samples))))
        row = total[:top] - total[:top].mean()
        rows.append(row / np.linalg.norm(row))
    return np.asarray(rows, dtype=np.float32)


def _pitch(task: Task, renderer: Any, signal: Any) -> Any:
    """(d,) values by the loudest pitch in each voice's range, weighed with the law of the value."""
    sd = _timing.scale_of(task.latent)
    _, centre, _ = _audio.voices(renderer, task)
    grid = np.linspace(-SDS, SDS, int(2 * SDS * PER_SD) + 1)
    time = np.arange(signal.shape[0]) / AUDIO_RATE
    values = []
    for i in range(len(sd)):
        turn = 2 * np.pi * np.outer(time, centre[i] * 2 ** (_audio.OCTAVES * grid))
        real, imaginary = np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
        power = (signal @ jnp.asarray(real)) ** 2 + (signal @ jnp.asarray(imaginary)) ** 2
        score = jnp.log(power + np.float32(1e-12)) - np.asarray(0.1 * grid**2, np.float32)
        k = jnp.clip(jnp.argmax(score), 1, len(grid) - 2)
        a, b, c = score[k - 1], score[k], score[k + 1]
        shift = jnp.clip(0.5 * (a - c) / jnp.minimum(a - 2.0 * b + c, -1e-6), -0.5, 0.5)
        values.append((jnp.asarray(grid, jnp.float32)[k] + shift / PER_SD) * sd[i])
    return jnp.stack(values)


def _loudness(task: Task, renderer: Any, matched: Any, energy: Any) -> Any:
    """(d,) values by the power of each voice's harmonics at the best tuning.

    Args:
        task: the task.
        renderer: the renderer.
        matched: (samples,) the sound times the window and the shape of a note.
        energy: what that makes of a note's shape itself.
    """
    sd = _timing.scale_of(task.latent)
    _, centre, _ = _audio.voices(renderer, task)
    hz = np.outer(centre, np.arange(1, _wavetables.BUZZ + 1))  # (d, harmonics)
    turn = 2j * np.pi * np.arange(matched.shape[0])[:, None] / AUDIO_RATE * hz.ravel()
    power = []
    for cents in TUNINGS:
        wave = np.exp(turn * 2 ** (cents / 1200))
        real, imaginary = (jnp.asarray(part.astype(np.float32)) for part in (wave.real, wave.imag))
        power.append(((matched @ real) ** 2 + (matched @ imaginary) ** 2).reshape(hz.shape).sum(1))
    # The harmonics of a voice of amplitude 1 have power 1 together: half the square of what each filter gives.
    unit = energy * np.float32(_audio.LEVEL / np.sqrt(len(sd) * _audio._mean_envelope_power(task.tick_ms)))
    heard = jnp.log(2.0 * jnp.stack(power).max(0) / unit**2 + np.float32(1e-9)) / 2.0
    echoes = np.float32(0.5 * np.log(np.sum(np.square(_audio.ECHOES))))
    value = (heard - echoes) / np.float32(_audio.NEPERS) + np.float32(_audio.NEPERS)
    if task.is_tracking:  # the best guess leans to the mean, for the gain is not known
        doubt = (_audio.GAIN_DB * np.log(10.0) / 20.0 / _audio.NEPERS) ** 2 / 3.0
        value = value / np.float32(1.0 + doubt)
    return value * sd
