"""Sound: states are tones, chords or vowels, Gaussian values are pitch or loudness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate._spec import tagged
from envrate.channels import _codec_kernels, _codecs
from envrate.renderers import _timing, _voice, _wavetables
from envrate.renderers._base import Legend, SignalSpec
from envrate.renderers._frames import Frames, two_turns

if TYPE_CHECKING:
    from envrate.task import Task

Array = jax.Array

#: Root-mean-square of the sound at unit gain; full scale is 1.
LEVEL = 0.08
#: Seconds that each note takes to start, to fall to half its amplitude, and to end before the next.
ATTACK, DECAY, RELEASE = 0.006, 0.35, 0.008
#: The gain of an episode lies within so many decibels of 0.
GAIN_DB = 3.0
#: Share of the nuisance's power that distractor tones have; the rest is ambient noise.
DISTRACTOR_SHARE = 0.3
#: A distractor tone lasts one slot of this length.
SLOT_MS = 800
#: Delays of the two reflections, ms.
REFLECTION_MS = ((7, 23), (23, 61))
#: Amplitudes of the sound and of its reflections.
ECHOES = (1.0, 0.35, 0.2)
#: Octaves per standard deviation of a value told by pitch, and the neighbouring voices' ratio.
OCTAVES, VOICE_RATIO, VOICE_CENTRE = 0.3, 3.2, 500.0
#: A question's chirp, Hz.
CHIRP_HZ = (300.0, 3000.0)
#: Loudness, nepers per standard deviation.
NEPERS = 0.5


def _envelope(age: Array, tick_s: float) -> Array:
    """Loudness of a note `age` seconds after its onset; 0 outside its tick."""
    rise = jnp.clip(age / ATTACK, 0.0, 1.0)
    fall = jnp.clip((tick_s - age) / RELEASE, 0.0, 1.0)
    return rise * fall * DECAY / (DECAY + jnp.maximum(age, 0.0))


@lru_cache
def _mean_envelope_power(tick_ms: int) -> float:
    age = (np.arange(16 * tick_ms) + 0.5) / 16000.0
    with jax.ensure_compile_time_eval():
        return float(np.mean(np.square(np.asarray(_envelope(jnp.asarray(age, jnp.float32), tick_ms / 1000.0)))))


@tagged("renderer", "audio")
@dataclass(frozen=True)
class Audio(Frames):
    """16 kHz sound. The note of a tick is struck at its onset and decays; two reflections follow it.

    Nuisance: ambient noise whose colour differs between episodes, distractor tones that come and go, the room's
    reflections, a gain within 3 dB, a tuning within 10 cents.

    Args:
        sound: "tones", "chords" or "formants" for a latent with states: a sound per state; or "voice": states that
            require a response speak, each response with a speaker of its own, the others are silent.
        carrier: "pitch" or "loudness" for a Gaussian latent; each output is a voice of its own.
        snr_db: mean power of the notes over the mean power of ambient noise and distractors together.
        capture_ms: length of a captured frame; None is the micro-turn.
        codec: how a frame is coded, "raw" (16-bit PCM) or a `MuLaw`; "auto" is settled by `for_link`.
    """

    sound: str = "tones"
    carrier: str = "pitch"
    snr_db: float = 15.0
    capture_ms: int | None = None
    codec: Any = "raw"

    ladder: ClassVar = _codecs.AUDIO_LADDER
    raw_bits: ClassVar = _codecs.PCM_BITS

    def __post_init__(self) -> None:
        """Checks every field."""
        _checks.choice("sound", self.sound, (*_wavetables.SOUNDS, "voice"))
        _checks.choice("carrier", self.carrier, ("pitch", "loudness"))
        object.__setattr__(self, "snr_db", _checks.number("snr_db", self.snr_db, -60.0, 120.0))
        self._check_frames()

    @property
    def kind(self) -> str:
        """The modality."""
        return "audio"

    def numbers(self, task: Task) -> int:
        """Samples in a frame."""
        return _codecs.AUDIO_RATE * self.frame_ms(task) // 1000

    def window(self, task: Task) -> int:
        """Frames of at least two micro-turns."""
        return two_turns(task, self.frame_ms(task))

    def signal(self, task: Task) -> SignalSpec:
        """(samples,) float32 in [-1, 1]; raises ValueError for more states than there are sounds."""
        if self.sound != "voice":
            voices(self, task)
        return SignalSpec((self.numbers(task),), "float32", -1.0, 1.0, 0.0)

    def legend(self, task: Task) -> Legend:
        """The sound of each state, or the voice of each output."""
        packet = f"{self.frame_ms(task)} ms of sound; every state is struck at its onset and decays"
        question = f"a chirp that rises from {CHIRP_HZ[0]:.0f} to {CHIRP_HZ[1]:.0f} Hz"
        if _timing.is_gaussian(task):
            _, centre, sd = voices(self, task)
            said = {
                "pitch": f"times {2**OCTAVES:.3f} per standard deviation",
                "loudness": f"its amplitude times {np.exp(NEPERS):.3f} per standard deviation",
            }[self.carrier]
            meanings = tuple(
                f"a voice at {f:.0f} Hz where the value is 0, {said} of {s:.3g}"
                for f, s in zip(centre, sd, strict=True)
            )
            return Legend(packet, meanings, question)
        if self.sound == "voice":
            speakers = (_voice.PITCH * _voice.SPEAKERS ** (a - 1) if a else None for a in task.table)
            meanings = tuple(f"a voice near {f:.0f} Hz speaks" if f else "nobody speaks" for f in speakers)
            return Legend(packet, meanings, question)
        return Legend(packet, _wavetables.names(self.sound, task.latent.num_states), question)

    def init(self, task: Task, key: Array) -> Array:
        """The latent before the first frame; nothing sounded then."""
        outputs = _timing.num_outputs(task)
        return jnp.zeros((outputs,), jnp.float32) if outputs else jnp.zeros((), jnp.int32)

    def capture(self, task: Task, state: Array, z0: Array, z1: Array, key: Array) -> tuple[Array, tuple[Array, ...]]:
        """Keeps the latent before the frame too: reflections of its note still sound."""
        first, last = _timing.shown(z0), _timing.shown(z1)
        return last, (state, first, last)

    def render(
        self, task: Task, payload: tuple[Array, ...], end_ms: Array, probe: Array, episode_key: Array, key: Array
    ) -> Array:
        """The frame's samples; a probe is a rising chirp."""
        count = self.numbers(task)
        room = _timing.uniforms(jax.random.fold_in(episode_key, 0), 8)
        speaks = self.sound == "voice" and not _timing.num_outputs(task)
        dry = (_speech if speaks else _notes)(self, task, payload, end_ms, room, count)
        notes = jnp.where(probe, jnp.asarray(_chirp(count)), dry)
        noise = _nuisance(self, task, end_ms, room, episode_key, key, count)
        gain = 10.0 ** (GAIN_DB * (2.0 * room[0] - 1.0) / 20.0)
        return _codec_kernels.through(self.codec, jnp.clip(LEVEL * gain * (notes + noise), -1.0, 1.0))

    def picture(self, task: Task, signal: Any, *, height: int = 128, width: int = 256) -> Any:
        """(height, width, 3) uint8 spectrogram of an observation's signal (W, samples), up to 4 kHz, 60 dB deep."""
        samples = np.asarray(signal, dtype=np.float64).ravel()
        return spectrogram(samples, height, width)


def spectrogram(samples: Any, height: int, width: int) -> Any:
    """(height, width, 3) uint8: time to the right, 0 to 4 kHz upwards, the loudest 60 dB from dark to bright."""
    size = 512
    padded = np.pad(samples, (size // 2, size))
    starts = np.linspace(0, max(1, len(samples) - 1), width).astype(int)
    frames = padded[starts[:, None] + np.arange(size)] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames, n=4 * size))[:, : 4 * size * 4000 // _codecs.AUDIO_RATE] ** 2
    decibels = 10 * np.log10(power.T[::-1] + 1e-12)
    rows = decibels[np.arange(height) * decibels.shape[0] // height]
    share = np.clip((rows - 32.0 + 60.0) / 60.0, 0.0, 1.0)[..., None]
    dark, middle, bright = (np.array(c) for c in ((13.0, 8.0, 60.0), (190.0, 50.0, 90.0), (252.0, 240.0, 160.0)))
    low, high = np.minimum(2 * share, 1.0), np.maximum(2 * share - 1.0, 0.0)
    return np.asarray(dark + low * (middle - dark) + high * (bright - middle), dtype=np.uint8)


def _chirp(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A question: a chirp from 300 to 3000 Hz over the frame, louder than any note."""
    t = np.arange(count) / count
    span = count / _codecs.AUDIO_RATE
    low, high = CHIRP_HZ
    phase = 2 * np.pi * span * (low * t + (high - low) / 2 * t * t)
    return np.asarray(2.0 * np.sqrt(2.0) * np.sin(phase) * np.sin(np.pi * t) ** 0.5, dtype=np.float32)


def voices(renderer: Audio, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tables (R, PERIOD) float32, their frequencies (R,) in Hz, standard deviations (d,) or empty."""
    outputs = _timing.num_outputs(task)
    if outputs:
        centre = VOICE_CENTRE * VOICE_RATIO ** (np.arange(outputs) - (outputs - 1) / 2)
        table = _wavetables.sine() if renderer.carrier == "pitch" else _wavetables.buzz()
        return table, centre.astype(np.float32), _timing.scale_of(task.latent)
    tables, frequency = _wavetables.SOUNDS[renderer.sound](task.latent.num_states)
    return tables, frequency, np.zeros(0, np.float32)


def _notes(renderer: Audio, task: Task, payload: tuple[Array, ...], end_ms: Array, room: Array, count: int) -> Array:
    """(count,) the notes of the frame with their reflections, mean power 1 without reflections."""
    frame_ms = renderer.frame_ms(task)
    tables, frequency, sd = voices(renderer, task)
    before, z0, z1 = payload
    first, last = _timing.onsets(task, end_ms, frame_ms)
    tick_s = task.tick_ms / 1000.0
    onset = [(o.astype(jnp.float32) / 1000.0) for o in (first - task.tick_ms, first, last)]
    reset = (frame_ms - end_ms).astype(jnp.float32) / 1000.0  # time of the reset: silence before it
    time = jnp.arange(count, dtype=jnp.float32) / _codecs.AUDIO_RATE
    tuning = 2.0 ** ((20.0 * room[1] - 10.0) / 1200.0)
    flat = jnp.asarray(tables.reshape(-1))
    total = jnp.zeros((count,), jnp.float32)
    delays = [jnp.float32(0.0)] + [(a + (b - a) * room[2 + i]) / 1000.0 for i, (a, b) in enumerate(REFLECTION_MS)]
    for delay, gain in zip(delays, ECHOES, strict=True):
        t = time - delay
        now, earlier = t >= onset[2], t < onset[1]

        def pick(old: Array, mid: Array, new: Array, now: Array = now, earlier: Array = earlier) -> Array:
            return jnp.where(now, new, jnp.where(earlier, old, mid))

        age = t - pick(*onset)
        loud = gain * jnp.where(t >= reset, _envelope(age, tick_s), 0.0)
        if sd.size:
            for i in range(sd.size):
                value = pick(*(z[i] / sd[i] for z in (before, z0, z1)))
                if renderer.carrier == "pitch":
                    hz, amplitude = frequency[i] * tuning * jnp.exp2(OCTAVES * value), 1.0 / np.sqrt(sd.size)
                    total += loud * np.float32(amplitude) * _read(flat, 0, age * hz)
                else:
                    # exp(2 NEPERS^2) is E exp(2 NEPERS value): the mean power stays 1.
                    amplitude = jnp.exp(NEPERS * value - NEPERS**2) / np.float32(np.sqrt(sd.size))
                    total += loud * amplitude * _read(flat, 0, age * (frequency[i] * tuning))
        else:
            hz = jnp.asarray(frequency)
            row = pick(before, z0, z1)
            total += loud * _read(flat, row * _wavetables.PERIOD, age * (pick(*(hz[z] for z in payload)) * tuning))
    return total * np.float32(1.0 / np.sqrt(_mean_envelope_power(task.tick_ms)))


@lru_cache(maxsize=8)
def _utterances(response: tuple[int, ...], tick_ms: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return _voice.utterances(response, tick_ms)


def _speech(renderer: Audio, task: Task, payload: tuple[Array, ...], end_ms: Array, room: Array, count: int) -> Array:
    """(count,) what is said in the frame, with its reflections; an utterance fills its tick."""
    said = _utterances(tuple(int(a) for a in task.table), task.tick_ms)
    length, flat = said.shape[1], jnp.asarray(said.reshape(-1))
    before, z0, z1 = payload
    first, last = _timing.onsets(task, end_ms, renderer.frame_ms(task))
    time = jnp.arange(count, dtype=jnp.int32) + (end_ms - renderer.frame_ms(task)) * (_codecs.AUDIO_RATE // 1000)
    begin = [(end_ms - renderer.frame_ms(task) + o) * (_codecs.AUDIO_RATE // 1000) for o in (first, last)]
    total = jnp.zeros((count,), jnp.float32)
    delays = [jnp.float32(0.0)] + [a + (b - a) * room[2 + i] for i, (a, b) in enumerate(REFLECTION_MS)]
    for delay_ms, gain in zip(delays, ECHOES, strict=True):
        t = time - (delay_ms * (_codecs.AUDIO_RATE / 1000)).astype(jnp.int32)
        now, earlier = t >= begin[1], t < begin[0]
        onset = jnp.where(now, begin[1], jnp.where(earlier, begin[0] - length, begin[0]))
        row = jnp.where(now, z1, jnp.where(earlier, before, z0))
        age = t - onset
        inside = (t >= 0) & (age >= 0) & (age < length)
        total += jnp.where(inside, gain * flat[row * length + jnp.clip(age, 0, length - 1)], 0.0)
    return total


def _read(flat: Array, offset: Array | int, cycles: Array) -> Array:
    """The table's value at a phase in cycles."""
    index = ((cycles - jnp.floor(cycles)) * _wavetables.PERIOD).astype(jnp.int32)
    return flat[offset + jnp.minimum(index, _wavetables.PERIOD - 1)]


def _white(key: Array, count: int) -> Array:
    """(count,) white noise of variance 1: the sum of two bytes, half a random word per sample."""
    words = jax.random.bits(key, (-(-count // 2),), jnp.uint32)
    halves = jnp.concatenate([words & 0xFFFF, words >> 16])[:count].astype(jnp.int32)
    return ((halves & 0xFF) + (halves >> 8) - 255).astype(jnp.float32) * np.float32(
        1.0 / np.sqrt(2 * (256**2 - 1) / 12)
    )


def _smooth(points: Array, step: int, count: int) -> Array:
    """(count,) linear interpolation of points that lie `step` samples apart."""
    weight = jnp.arange(step, dtype=jnp.float32)[None] / step
    line = points[:-1, None] + weight * (points[1:, None] - points[:-1, None])
    return line.reshape(-1)[:count]


def _nuisance(
    renderer: Audio, task: Task, end_ms: Array, room: Array, episode_key: Array, key: Array, count: int
) -> Array:
    """(count,) ambient noise and distractor tones at the stated ratio to notes of mean power 1."""
    power = 10.0 ** (-renderer.snr_db / 10.0)
    # Layers of noise at 16, 4 and 1 kHz: the mixture differs between episodes. Linear interpolation keeps 2/3 of power.
    layers = [_white(jax.random.fold_in(key, 0), count)]
    for i, step in enumerate((4, 16)):
        points = _white(jax.random.fold_in(key, 1 + i), -(-count // step) + 1)
        layers.append(_smooth(points, step, count) * np.float32(np.sqrt(1.5)))
    mix = 0.2 + room[4:7]
    mix = mix / jnp.sqrt(jnp.sum(mix * mix))
    ambient = sum((mix[i] * layer for i, layer in enumerate(layers)), jnp.zeros((count,), jnp.float32))
    start = end_ms - renderer.frame_ms(task)
    time = jnp.arange(count, dtype=jnp.float32) / _codecs.AUDIO_RATE
    sine = jnp.asarray(_wavetables.sine()[0])
    tones = jnp.zeros((count,), jnp.float32)
    for slot in (start // SLOT_MS, start // SLOT_MS + 1):
        draw = _timing.uniforms(jax.random.fold_in(jax.random.fold_in(episode_key, 1), slot), 3)
        age = time + (start - slot * SLOT_MS).astype(jnp.float32) / 1000.0
        inside = (age >= 0.0) & (age < SLOT_MS / 1000.0)
        hz = 150.0 * 2.0 ** (4.5 * draw[0])
        window = _read(sine, 0, age * (0.5 * 1000.0 / SLOT_MS))  # half a sine: no click at either end
        # On in half of the slots; the window, of power 1 here, and the switch leave half of 2 draw^2 x 1.5.
        loud = jnp.where(draw[1] < 0.5, 1.0 + draw[2], 0.0) * np.float32(np.sqrt(2.0 / (7.0 / 3.0)))
        tones += jnp.where(inside, loud * window * _read(sine, 0, age * hz), 0.0)
    share = np.sqrt(np.array([1 - DISTRACTOR_SHARE, DISTRACTOR_SHARE]) * power).astype(np.float32)
    mixed: Array = ambient * share[0] + tones * share[1]
    return mixed
