"""A synthetic voice: pulses of a larynx through moving formants, one utterance per state that requires a response."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envrate.channels._codecs import AUDIO_RATE
from envrate.renderers._wavetables import FORMANTS

Table = NDArray[np.float32]

#: Pitch of the first speaker and the ratio from speaker to speaker, one speaker per response, Hz.
PITCH, SPEAKERS = 120.0, 1.25
#: Bandwidths of the formants, Hz, and samples between updates of the resonators.
BANDWIDTHS, UPDATE = (80.0, 100.0, 140.0), 80
#: Syllables in one utterance, one per corner of the vowel triangle.
SYLLABLES = 3


def utterances(response: tuple[int, ...], tick_ms: int) -> Table:
    """(K, samples of one tick) an utterance for each state that requires a response, silence for the others.

    Mean power over all states that speak is 1. The voice is the same in each episode; it is no nuisance.
    """
    count = AUDIO_RATE * tick_ms // 1000
    table = np.zeros((len(response), count), np.float32)
    for state, symbol in enumerate(response):
        if symbol:
            table[state] = _utterance(count, PITCH * SPEAKERS ** (symbol - 1), np.random.default_rng(state))
    power = float(np.mean(np.square(table[np.asarray(response) > 0])))
    return np.asarray(table / np.sqrt(power), dtype=np.float32)


def _utterance(count: int, pitch: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """(count,) source and filter, after G. Fant, "Acoustic theory of speech production" (1960)."""
    from scipy.signal import lfilter

    t = np.arange(count) / AUDIO_RATE
    length = count / AUDIO_RATE
    glide = pitch * (1.0 + 0.12 * np.sin(2 * np.pi * 2.3 * t + rng.uniform(0, 2 * np.pi)) - 0.2 * t / length)
    phase = np.cumsum(glide) / AUDIO_RATE
    pulses = np.diff(np.floor(phase), prepend=0.0)
    sound = lfilter([1.0], [1.0, -0.97], pulses) + 0.02 * rng.standard_normal(count)
    vowels = rng.permutation(SYLLABLES)  # "ee", "ah", "oo": the corners of the vowel triangle
    moments = np.linspace(0.0, length, SYLLABLES)
    for k, bandwidth in enumerate(BANDWIDTHS):
        centre = np.interp(t, moments, [float(FORMANTS[v][k]) for v in vowels])
        radius, memory, out = np.exp(-np.pi * bandwidth / AUDIO_RATE), np.zeros(2), np.empty(count)
        for begin in range(0, count, UPDATE):
            cosine = np.cos(2 * np.pi * centre[begin] / AUDIO_RATE)
            poles = [1.0, -2 * radius * cosine, radius * radius]
            part = slice(begin, begin + UPDATE)
            out[part], memory = lfilter([sum(poles)], poles, sound[part], zi=memory)
        sound = out
    rhythm = np.clip(1.5 * np.abs(np.sin(np.pi * SYLLABLES * t / length)), 0.0, 1.0)
    return np.asarray(sound * rhythm)
