from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envrate import Task, _counters, tasks
from envrate.channels import _codecs
from envrate.latents import GaussianProcess, MarkovChain
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video, _arm, _audio, _font, _proprio, _screen, _timing
from envrate.task import Probes

PIXELS = [Video(), Screen(64, 64)]
STREAMS = [Audio(), *PIXELS]


@lru_cache
def _renderer_of(renderer: Any, task: Task) -> Any:
    def one(z: Any, end: Any, probe: Any, episode_key: Any, key: Any) -> Any:
        state = renderer.init(task, episode_key)
        _, payload = renderer.capture(task, state, z, z, key)
        return renderer.render(task, payload, end, probe, episode_key, key)

    return jax.jit(jax.vmap(one))


def shots(renderer: Any, task: Task, z: Any, *, end_ms: int = 700, probe: bool = False, seed: int = 0) -> np.ndarray:
    """One packet per latent in `z`; packet i has keys of its own."""
    n = len(z)
    episode, own = (jax.random.split(jax.random.key(seed + i), n) for i in (0, 1000))
    end = jnp.full(n, end_ms, jnp.int32)
    return np.asarray(_renderer_of(renderer, task)(jnp.asarray(z), end, jnp.full(n, probe), episode, own))


def states(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int32)


@pytest.mark.parametrize("renderer", STREAMS, ids=lambda r: r.kind)
def test_signals_have_the_form_they_declare(renderer: Any) -> None:
    task = tasks.get("alert")
    spec, seen = renderer.signal(task), shots(renderer, task, states(0, 1, 2, 0))
    assert seen.shape == (4, *spec.shape) and seen.dtype == spec.dtype
    assert seen.min() >= spec.low and seen.max() <= spec.high
    assert len({picture.tobytes() for picture in seen}) == 4  # nuisance differs between episodes
    assert (seen == shots(renderer, task, states(0, 1, 2, 0))).all()


@pytest.mark.parametrize("renderer", STREAMS, ids=lambda r: r.kind)
def test_a_probe_shows_nothing_of_the_latent(renderer: Any) -> None:
    task = tasks.get("alert-probed")
    asked = shots(renderer, task, states(0, 1), probe=True), shots(renderer, task, states(2, 0), probe=True)
    assert (asked[0] == asked[1]).all()
    assert (asked[0] != shots(renderer, task, states(0, 1))).any()


def test_sound_before_the_onset_does_not_know_what_comes() -> None:
    task, renderer = tasks.get("watch"), Audio()  # frames of 200 ms, ticks of 500 ms: an onset 100 ms into (400, 600]
    key, n = jax.random.key(3), renderer.signal(task).shape[0]

    def frame(z1: int) -> np.ndarray:
        payload = tuple(jnp.int32(z) for z in (1, 1, z1))
        return np.asarray(renderer.render(task, payload, jnp.int32(600), jnp.bool_(False), key, key))

    first, second = frame(2), frame(3)
    assert (first[: n // 2] == second[: n // 2]).all() and (first[n // 2 + 100 :] != second[n // 2 + 100 :]).any()


def test_the_nuisance_of_sound_is_the_same_bits_for_every_state(monkeypatch: pytest.MonkeyPatch) -> None:
    task, key = tasks.get("alert"), jax.random.key(5)

    def frame(z: int) -> np.ndarray:
        payload = tuple(jnp.int32(z) for _ in range(3))
        return np.asarray(Audio().render(task, payload, jnp.int32(700), jnp.bool_(False), key, key))

    with_notes = frame(0), frame(1)
    assert (with_notes[0] != with_notes[1]).any()
    monkeypatch.setattr(_audio, "_notes", lambda *args: jnp.zeros(args[-1], jnp.float32))
    bare = frame(0), frame(1)
    assert (bare[0] == bare[1]).all() and np.abs(bare[0]).max() > 0


def test_only_the_object_and_the_notification_change_with_the_state() -> None:
    task = tasks.get("alert")
    for renderer, share in ((Video(), 0.2), (Screen(64, 64), 0.2)):
        one, other = shots(renderer, task, states(*[0] * 8)), shots(renderer, task, states(*[1] * 8))
        changed = (one != other).any(axis=3)
        assert 0 < changed.mean(axis=(1, 2)).min() and changed.mean(axis=(1, 2)).max() < share
        # What changed lies in one piece: the object, or a line of text.
        for picture in changed:
            rows, columns = np.flatnonzero(picture.any(axis=1)), np.flatnonzero(picture.any(axis=0))
            assert np.ptp(rows) < (30 if renderer.kind == "video" else 6) and np.ptp(columns) < (
                30 if renderer.kind == "video" else 60
            )


def test_the_nuisance_of_the_arm_is_the_same_bits_for_every_state(monkeypatch: pytest.MonkeyPatch) -> None:
    task, renderer, key = tasks.get("alert"), Proprio(), jax.random.key(5)

    def frame(z: int, pull: float) -> np.ndarray:
        def arm(q: Any, v: Any, references: Any, loads: Any) -> Any:  # stands in for MuJoCo
            rows = []
            for reference, load in zip(references, loads, strict=True):
                q, v, torque = q + 0.02 * v, v + 0.02 * (reference - q + pull * load), reference - q
                rows.append(jnp.stack([q, v, torque]))
            return jnp.stack(rows)

        monkeypatch.setattr(_arm, "frame", lambda period: arm)
        _, payload = renderer.capture(task, renderer.init(task, key), jnp.int32(z), jnp.int32(z), key)
        return np.asarray(renderer.render(task, payload, jnp.int32(100), jnp.bool_(False), key, key))

    assert (frame(0, pull=1.0) != frame(1, pull=1.0)).any()
    draw, times = renderer.init(task, key).draw, jnp.zeros(1)
    references = [_proprio.commands(task, draw, times, jnp.full((1, 1), z))[0] for z in (0, 1)]
    assert (references[0] == references[1]).all() and (references[0] != 0).all()
    # Without the load the frame shows the free motion, the noise and the calibration alone.
    bare = frame(0, pull=0.0), frame(1, pull=0.0)
    assert (bare[0] == bare[1]).all() and (bare[0] != 0).all()


CHANCE = [Audio(), Video(), Video(carrier="position"), Screen(64, 64), Proprio()]


@pytest.mark.parametrize("renderer", CHANCE, ids=lambda r: f"{r.kind}-{getattr(r, 'carrier', '')}")
def test_nuisance_tells_nothing_of_the_latent_that_the_same_seed_draws(renderer: Any) -> None:
    # Episode i's true latent is drawn from its key's latent stream, its nuisance from the other streams; what is shown
    # is state 0 throughout. A ridge classifier trained on half of the episodes must be at chance on the others.
    task, n = tasks.get("alert"), 512
    key = tuple(jnp.asarray(word) for word in _counters.keys(7, n))
    drawn = np.asarray(_counters.block(key, jnp.int32(1), jnp.int32(0), _counters.Stream.LATENT)[0] >> np.uint32(31))
    lasting = _counters.as_key(_counters.block(key, jnp.int32(0), jnp.int32(0), _counters.Stream.EPISODE))
    fresh = _counters.as_key(_counters.block(key, jnp.int32(1), jnp.int32(0), _counters.Stream.RENDER))
    end = jnp.full(n, 700, jnp.int32)

    def share_right(shown: np.ndarray) -> float:
        shown = jnp.asarray(shown, jnp.int32)
        seen = np.asarray(_renderer_of(renderer, task)(shown, end, jnp.zeros(n, bool), lasting, fresh)).reshape(n, -1)
        features = seen[:, :: max(1, seen.shape[1] // 2000)].astype(np.float64)
        features = (features - features.mean(0)) / (features.std(0) + 1e-9)
        train, test = slice(0, n // 2), slice(n // 2, n)
        gram = features[train] @ features[train].T + 100.0 * np.eye(n // 2)
        weights = np.linalg.solve(gram, 2.0 * drawn[train] - 1.0)
        return float(((features[test] @ (features[train].T @ weights) > 0) == (drawn[test] == 1)).mean())

    interval = 3.5 * np.sqrt(0.25 / (n // 2))
    assert abs(share_right(0 * drawn) - 0.5) < interval
    # The same classifier finds a latent that is shown; a shape is nothing for a linear one, and letters nearly so.
    if renderer != Video():
        assert share_right(2 * drawn) > (0.5 + interval if renderer.kind == "screen" else 0.95)


def test_sound_has_the_stated_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    task, snr = tasks.get("alert"), 6.0
    renderer, n = Audio(snr_db=snr), 100
    ends = [600, 700, 800, 900, 1000]
    # Without reflections and gain: notes alone, then nuisance alone, over whole ticks of many episodes.
    room = jnp.full((n, 8), 0.5).at[:, 2:4].set(0.0)
    z = jnp.asarray(np.arange(n) % 3, jnp.int32)
    monkeypatch.setattr(_audio, "REFLECTION_MS", ())
    count = renderer.signal(task).shape[0]
    notes = jax.jit(
        jax.vmap(lambda s, e: _audio._notes(renderer, task, (s, s, s), e, room[0], count), in_axes=(0, None))
    )
    noise = jax.jit(
        jax.vmap(
            lambda k, e: _audio._nuisance(
                renderer, task, e, jax.random.uniform(k, (8,)), k, jax.random.fold_in(k, e), count
            ),
            in_axes=(0, None),
        )
    )
    monkeypatch.setattr(_audio, "zip", lambda a, b, strict: zip(a, b, strict=False), raising=False)
    keys = jax.random.split(jax.random.key(2), n)
    signal = np.mean([np.square(np.asarray(notes(z, jnp.int32(e)))).mean() for e in ends])
    nuisance = np.mean([np.square(np.asarray(noise(keys, jnp.int32(e)))).mean() for e in ends])
    assert abs(10 * np.log10(signal)) < 0.3
    assert abs(10 * np.log10(signal / nuisance) - snr) < 0.7


@pytest.mark.parametrize("sound", ["tones", "chords", "formants"])
def test_sounds_differ_between_states(sound: str) -> None:
    task = tasks.get("choice8")
    tables, hz, _ = _audio.voices(Audio(sound=sound), task)
    phase = (np.arange(1600)[None] / 16000 * hz[:, None]) % 1.0
    waves = np.take_along_axis(tables, (phase * tables.shape[1]).astype(int) % tables.shape[1], axis=1)
    spectra = np.abs(np.fft.rfft(waves * np.hanning(1600)))
    spectra /= np.linalg.norm(spectra, axis=1, keepdims=True)
    off = (spectra @ spectra.T)[~np.eye(8, dtype=bool)]
    assert off.max() < 0.95


def test_gaussian_values_move_the_sound_the_object_and_the_number() -> None:
    task = tasks.get("track")
    # Pitch: 500 Hz x 2^(0.3 z); the loudest line of a frame.
    for z in (-1.0, 0.0, 1.5):
        frame = shots(Audio(snr_db=30), task, np.full((1, 1), z, np.float32), end_ms=300)[0]
        peak = np.argmax(np.abs(np.fft.rfft(frame * np.hanning(len(frame)), 16000)))
        assert abs(peak / (500 * 2 ** (0.3 * z)) - 1) < 0.01
    left, right = (shots(Video(), task, np.full((1, 1), z, np.float32), end_ms=300)[0] for z in (-1.5, 1.5))
    changed = np.flatnonzero((left != right).any(axis=(0, 2)))
    assert changed.min() < 20 and changed.max() > 44
    one, other = (shots(Screen(64, 64), task, np.full((1, 1), z, np.float32), end_ms=300)[0] for z in (1.27, -1.27))
    assert 0 < (one != other).any(axis=2).sum() <= 6  # a plus and a minus differ in two pixels


def test_every_glyph_is_its_own() -> None:
    table = _font.table().reshape(len(_font.NAMES), -1)
    assert len({glyph.tobytes() for glyph in table}) == len(table)
    with pytest.raises(ValueError, match="text: the font has no"):
        _font.glyphs("naïve")


def test_symbols_in_words() -> None:
    chain, value = tasks.get("alert-probed"), tasks.get("track3")
    assert [Symbols().text(chain, k) for k in (-1, 2, 3)] == ["nothing", "state 2", "question"]
    assert Symbols().text(value, np.array([0.314, -1.2, 0.0])) == "value +0.31 -1.20 +0.00"
    assert Symbols().text(value, np.full(3, 1e6)) == "question"


def test_the_arm_in_mjx_and_in_c_agree() -> None:
    rng, n = np.random.default_rng(0), 40
    references, loads = np.cumsum(0.1 * rng.normal(size=(n, 3)), axis=0), rng.normal(size=(n, 3))
    given = (jnp.zeros(3), jnp.zeros(3), jnp.asarray(references, jnp.float32), jnp.asarray(loads, jnp.float32))
    slow = np.asarray(jax.jit(_arm.frame(20000))(*given))  # one arm: C
    assert (slow == _arm.simulate_c(20000, *(np.asarray(g, np.float64) for g in given)).astype(np.float32)).all()
    fast = np.asarray(jax.jit(jax.vmap(_arm.frame(20000)))(*(jnp.stack([g, g]) for g in given)))  # a batch: MJX
    assert np.abs(fast - slow).max() < 1e-4 * np.abs(slow).max()
    assert (fast[0] != slow).any()  # or it was C again


def test_the_picture_of_the_arm_or_what_to_install() -> None:
    try:
        seen = _arm.picture(np.array([0.4, -0.8, 0.5]), 60, 80)
    except RuntimeError as error:
        assert "libegl1" in str(error) and "osmesa" in str(error)
    else:
        moved = _arm.picture(np.array([-0.4, 0.8, 0.5]), 60, 80)
        assert seen.shape == (60, 80, 3) and seen.dtype == np.uint8 and (seen != moved).any()


def test_draws_written_out_are_those_of_jax() -> None:
    keys = jax.random.split(jax.random.key(11), 8)
    for number in (0, 7):
        folded = jax.vmap(lambda k, n=number: _timing.fold(k, n))(keys)
        expected = jax.vmap(lambda k, n=number: jax.random.fold_in(k, n))(keys)
        assert (jax.random.key_data(folded) == jax.random.key_data(expected)).all()
    drawn = jax.vmap(lambda k: _timing.normals(k, 45))(keys)
    np.testing.assert_allclose(drawn, jax.vmap(lambda k: jax.random.normal(k, (45,)))(keys), rtol=1e-6)


def test_packets_have_one_size() -> None:
    task = tasks.get("alert")
    assert Audio().packet_bits(task) == 1600 * 16
    assert Audio(codec=_codecs.MuLaw(8000, 8)).packet_bits(task) == 6400  # 64 kb/s, as in telephony
    assert Video().packet_bits(task) == 64 * 64 * 24
    assert Video(codec=_codecs.Picture(2, 4, 6)).packet_bits(task) == 3 * 16 * 16 * 6
    assert Proprio().packet_bits(task) == 5 * 9 * 32


def _many() -> Task:
    k = 20
    return Task(MarkovChain(((1 / k,) * k,) * k), tuple(range(k)), probes=Probes())


def _outputs(count: int) -> Task:
    return tasks.get("track").replace(latent=GaussianProcess("ou", coregionalisation=tuple(map(tuple, np.eye(count)))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Audio(sound="noise"), "sound: expected one of"),
        (lambda: Audio(capture_ms=500).frame_ms(tasks.get("alert")), "capture_ms: expected at most the micro-turn"),
        (lambda: Audio(sound="formants").signal(_many()), "sound: there are 10 vowels"),
        (lambda: Audio(sound="chords").signal(_many()), "sound: there are 16 chords"),
        (lambda: Video().signal(_many()), "video: there are 16 shapes"),
        (lambda: Video().signal(_outputs(4)), "video: expected at most 3 outputs"),
        (lambda: Screen().signal(_outputs(7)), "screen: expected at most 6 outputs"),
        (lambda: Proprio().signal(_outputs(4)), "proprio: expected at most 3 outputs"),
        (lambda: Video(carrier="smell"), "carrier: expected one of"),
        (lambda: Audio(codec=_codecs.Picture()), "codec: audio takes a mu-law codec, 'raw' or 'auto', got a picture"),
        (lambda: Screen(capture_ms=0), "capture_ms: expected"),
        (lambda: Screen(height=20), "height"),
    ],
)
def test_what_cannot_be_rendered_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_screen_shows_any_number_of_states() -> None:
    assert shots(Screen(64, 64), _many(), states(19)).shape == (1, 64, 64, 3)
    assert _screen.CURSOR.shape == (8, 5)
