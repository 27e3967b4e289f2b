"""One period of each sound, as tables; rendering reads them at the sound's frequency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float32]

#: Samples in one period.
PERIOD = 2048
#: Frequency range of single tones, Hz.
LOWEST, HIGHEST = 220.0, 1400.0
#: Harmonics of a voice that is told by its loudness.
BUZZ = 4
#: Pitch of the voice that speaks the vowels, Hz.
VOICE = 125.0
#: First three formants of ten vowels of American English, Hz, means over men. Source: Peterson and Barney, "Control
#: methods used in a study of the vowels", JASA 24 (1952), table II.
FORMANTS = (
    (270, 2290, 3010),
    (730, 1090, 2440),
    (300, 870, 2240),
    (530, 1840, 2480),
    (570, 840, 2410),
    (390, 1990, 2550),
    (660, 1720, 2410),
    (440, 1020, 2240),
    (640, 1190, 2390),
    (490, 1350, 1690),
)
#: Words of American English with those vowels.
VOWELS = ("heed", "hod", "who'd", "head", "hawed", "hid", "had", "hood", "hud", "heard")
#: Chords in just intonation as harmonics of one fundamental: major, minor, fourths, diminished.
CHORDS = ((4, 5, 6), (10, 12, 15), (9, 12, 16), (25, 30, 36))
CHORD_NAMES = ("major chord", "minor chord", "chord of two fourths", "diminished chord")
#: Roots of the chords relative to the lowest, in semitones.
ROOTS = (0, 5, 9, 2)


def _periodic(amplitudes: dict[int, float]) -> Table:
    """One period of unit root-mean-square with the given harmonics; phases spread to keep the crest low."""
    t = 2 * np.pi * np.arange(PERIOD) / PERIOD
    order = sorted(amplitudes)
    wave = sum(
        amplitudes[h] * np.sin(h * t + np.pi * i * i / len(order))
        for i, h in enumerate(order)  # Schroeder's phases
    )
    return np.asarray(wave / np.sqrt(np.mean(np.square(wave))), dtype=np.float32)


def sine() -> Table:
    """(1, PERIOD) a pure tone."""
    return _periodic({1: 1.0})[None]


def buzz() -> Table:
    """(1, PERIOD) four harmonics of equal power: a room's reflections cannot weaken all of them, as they can a tone."""
    return _periodic({h: 1.0 for h in range(1, BUZZ + 1)})[None]


def tones(count: int) -> tuple[Table, Table]:
    """(count, PERIOD) and (count,) Hz: harmonic tones at equal ratios, at most a major third apart."""
    ratio = min(2 ** (4 / 12), (HIGHEST / LOWEST) ** (1 / max(1, count - 1)))
    wave = _periodic({1: 1.0, 2: 0.4, 3: 0.2, 4: 0.1})
    return np.tile(wave, (count, 1)), np.asarray(LOWEST * 1.5 * ratio ** np.arange(count), dtype=np.float32)


def chords(count: int) -> tuple[Table, Table]:
    """Chords that differ in root and in kind; at most 16."""
    if count > len(CHORDS) * len(ROOTS):
        raise ValueError(f"sound: there are {len(CHORDS) * len(ROOTS)} chords, got {count} states; use 'tones'")
    rows, frequency = [], []
    for k in range(count):
        notes = CHORDS[k % len(CHORDS)]
        rows.append(_periodic({n: 1.0 for n in notes} | {2 * n: 0.25 for n in notes}))
        root = LOWEST * 2 ** (ROOTS[(k // len(CHORDS) + k) % len(ROOTS)] / 12)
        frequency.append(root / notes[0])
    return np.stack(rows), np.asarray(frequency, dtype=np.float32)


def formants(count: int) -> tuple[Table, Table]:
    """Vowels of one voice; at most 10."""
    if count > len(FORMANTS):
        raise ValueError(f"sound: there are {len(FORMANTS)} vowels, got {count} states; use 'tones'")
    rows = []
    for bands in FORMANTS[:count]:
        harmonics = {}
        for h in range(1, int(4000 / VOICE)):
            f = h * VOICE
            peaks = sum(
                g / (1 + ((f - c) / w) ** 2) for c, w, g in zip(bands, (60, 90, 120), (1, 0.6, 0.3), strict=True)
            )
            harmonics[h] = (peaks + 0.01) / h**0.5
        rows.append(_periodic(harmonics))
    return np.stack(rows), np.full(count, VOICE, dtype=np.float32)


#: Sounds by name, each from a number of states.
SOUNDS = {"tones": tones, "chords": chords, "formants": formants}


def names(sound: str, count: int) -> tuple[str, ...]:
    """(count,) each sound in words."""
    _, frequency = SOUNDS[sound](count)
    if sound == "formants":
        return tuple(f'the vowel of "{word}"' for word in VOWELS[:count])
    if sound == "chords":
        kinds = [k % len(CHORDS) for k in range(count)]
        return tuple(f"a {CHORD_NAMES[k]} on {CHORDS[k][0] * f:.0f} Hz" for k, f in zip(kinds, frequency, strict=True))
    return tuple(f"a tone of {f:.0f} Hz" for f in frequency)
