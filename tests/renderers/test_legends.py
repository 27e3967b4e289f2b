"""Legends say what is rendered: each one is held against the signal itself."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envrate import Task, tasks
from envrate.channels._codecs import AUDIO_RATE
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video, _arm, _screen_text, _shapes

RENDERERS = [Symbols(), Audio(), Audio(sound="chords"), Audio(sound="formants"), Video(), Video("motion"), Screen()]
RENDERERS += [Proprio()]


def frame(renderer: Any, task: Task, z: Any, *, end_ms: int, probe: bool = False) -> np.ndarray:
    """One packet whose latent has been `z` for a while."""
    key = jax.random.key(0)
    z = jnp.asarray(z)
    _, payload = renderer.capture(task, renderer.init(task, key), z, z, key)
    return np.asarray(renderer.render(task, payload, jnp.int32(end_ms), jnp.bool_(probe), key, key))


def strongest_hz(sound: np.ndarray) -> float:
    """The highest line of the spectrum, zero-padded to a tenth of a hertz."""
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 10 * AUDIO_RATE))
    return float(np.argmax(spectrum)) / 10


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda r: r.kind)
@pytest.mark.parametrize("name", ["alert", "choice8"])
def test_each_state_has_words_of_its_own(renderer: Any, name: str) -> None:
    task = tasks.get(name)
    meanings = renderer.legend(task).meanings
    assert len(set(meanings)) == len(meanings) == task.latent.num_states


@pytest.mark.parametrize("renderer", [Symbols(), Audio(), Audio(carrier="loudness"), Video(), Screen(), Proprio()])
def test_each_output_has_words_of_its_own(renderer: Any) -> None:
    meanings = renderer.legend(tasks.get("track3")).meanings
    assert len(set(meanings)) == len(meanings) == 3


def test_tones_sound_at_the_pitch_that_the_legend_names() -> None:
    task, renderer = tasks.get("choice8"), Audio(snr_db=60.0)
    named = [float(re.findall(r"(\d+) Hz", meaning)[0]) for meaning in renderer.legend(task).meanings]
    for state in range(len(named)):
        sound = frame(renderer, task, np.int32(state), end_ms=renderer.frame_ms(task))
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), AUDIO_RATE))
        # A tone has four partials, of which the room may weaken any; its tuning is within 10 cents, 1 % at most.
        comb = [sum(spectrum[int(0.99 * h * f) : int(1.01 * h * f) + 2].max() for h in range(1, 5)) for f in named]
        assert int(np.argmax(comb)) == state


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.5])
def test_pitch_follows_the_legend(value: float) -> None:
    task, renderer = tasks.get("track"), Audio(snr_db=60.0)
    (meaning,) = renderer.legend(task).meanings
    centre, ratio, sd = (float(x) for x in re.findall(r"(?:at|times|of) ([\d.]+)", meaning))
    heard = strongest_hz(frame(renderer, task, np.float32([value]), end_ms=renderer.frame_ms(task)))
    assert heard == pytest.approx(centre * ratio ** (value / sd), rel=2 ** (15 / 1200) - 1)


def test_a_question_is_the_chirp_that_the_legend_names() -> None:
    task, renderer = tasks.get("alert-probed"), Audio(snr_db=60.0)
    low, high = (float(x) for x in re.findall(r"(\d+)", renderer.legend(task).question))
    sound = frame(renderer, task, np.int32(0), end_ms=700, probe=True)
    third = len(sound) // 3  # the chirp's pitch rises evenly, so each third's middle is known
    for part in range(3):
        middle = low + (high - low) * (2 * part + 1) / 6
        assert strongest_hz(sound[part * third : (part + 1) * third]) == pytest.approx(middle, abs=(high - low) / 6)


def test_the_object_stands_where_the_legend_says() -> None:
    """0.75 tanh(z / (2 sd)) of half the side: the middle of what differs from the pictures of two other values."""
    task, renderer = tasks.get("track"), Video()
    (meaning,) = renderer.legend(task).meanings
    reach, scale = (float(x) for x in re.findall(r"([\d.]+)(?: tanh|\))", meaning))
    seen = {z: frame(renderer, task, np.float32([z]), end_ms=700).astype(float) for z in (-3.5, 0.0, 3.5)}
    for z, picture in seen.items():
        apart = [np.abs(picture - other).max(axis=2) > 12 for w, other in seen.items() if w != z]
        columns = np.flatnonzero((apart[0] & apart[1]).any(axis=0))
        place = (columns.min() + columns.max() + 1) / 64 - 1
        assert place == pytest.approx(reach * np.tanh(z / scale), abs=0.06)


def test_names_of_shapes_and_notices_are_as_many_as_there_are() -> None:
    assert len({_shapes.name(k) for k in range(_shapes.MOST)}) == _shapes.MOST
    assert Screen().legend(tasks.get("alert")).meanings == tuple(
        f'the notification "{_screen_text.notice(k)}"' for k in range(3)
    )


def test_loads_are_what_the_arm_feels() -> None:
    """At the moment a load differs by dL and all else is equal, joint 1's speed differs by dL dt / (M + dt damping).

    The damping is taken implicitly (MuJoCo's documentation, "Numerical integration").
    """
    mujoco = pytest.importorskip("mujoco")
    task, renderer = tasks.get("alert"), Proprio()
    loads = [float(re.findall(r"([+-][\d.]+) Nm", m)[0]) for m in renderer.legend(task).meanings]
    felt = [frame(renderer, task, np.int32(z), end_ms=100) for z in range(3)]
    model = _arm.model(renderer.period_us(task))
    data = mujoco.MjData(model)
    data.qpos[:] = felt[0][0, 0]
    mujoco.mj_forward(model, data)
    inverse, dt = np.zeros((3, 3)), renderer.period_us(task) / 1e6
    mujoco.mj_solveM(model, data, inverse, np.eye(3))
    per_newton_metre = dt * np.linalg.inv(np.linalg.inv(inverse) + dt * np.diag(np.ravel(model.dof_damping)))[0, 0]
    speeds = np.array([f[0, 1, 0] for f in felt])
    assert np.diff(speeds) / per_newton_metre == pytest.approx(np.diff(loads), rel=0.1)
