from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envrate import Task, agents, tasks
from envrate.agents.perceivers import Perceiver
from envrate.agents.perceivers._perceiver import reader
from envrate.channels._codecs import MuLaw, Picture
from envrate.envs import rollout
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video
from envrate.scorers import frontier

N = 96


def readings(renderer: Any, task: Task, *, end_ms: int = 900, seed: int = 0) -> tuple[np.ndarray, Any, Any]:
    """(latents, readings of packets about them, readings of probes); each packet in an episode of its own."""
    rng = np.random.default_rng(seed)
    if hasattr(task.latent, "num_states"):
        z = rng.integers(0, task.latent.num_states, N).astype(np.int32)
    else:
        z = rng.multivariate_normal(np.zeros(task.latent.num_outputs), task.latent.output_covariance, N).astype(
            np.float32
        )
    read = reader(task, renderer)

    def one(z: Any, episode_key: Any, key: Any) -> Any:
        state = renderer.init(task, episode_key)
        for _ in range(4 if renderer.kind == "proprio" else 1):  # the arm takes time to get there
            state, payload = renderer.capture(task, state, z, z, key)
        end = jnp.int32(end_ms)
        return tuple(
            read(renderer.render(task, payload, end, jnp.bool_(probe), episode_key, key), end)
            for probe in (False, True)
        )

    lasting, fresh = (jax.random.split(jax.random.key(seed + i), N) for i in (0, 1))
    told, asked = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jnp.asarray(z), lasting, fresh))
    return z, told, asked


RENDERERS = [
    Audio(),
    Audio(sound="chords"),
    Audio(sound="formants"),
    Video(),
    Video(carrier="position"),
    Screen(64, 64),
]


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda r: f"{r.kind}-{getattr(r, 'sound', '')}")
def test_states_are_read(renderer: Any) -> None:
    z, told, asked = readings(renderer, tasks.get("watch"))
    assert told.known.all() and not told.probe.any() and asked.probe.all()
    assert (told.value == z).mean() > 0.97


@pytest.mark.parametrize("renderer", [Audio(), Video(), Screen(), Proprio()], ids=lambda r: r.kind)
def test_values_are_read(renderer: Any) -> None:
    z, told, asked = readings(renderer, tasks.get("track"))
    error = np.abs(told.value - z)[told.known]
    assert told.known.mean() > 0.97 and asked.probe.all() and not told.probe.any()
    assert np.median(error) < 0.1 and (error > 0.5).mean() < 0.03


@pytest.mark.parametrize("name", ["track", "track3", "exceed"])
def test_loudness_is_read_as_far_as_the_gain_allows(name: str) -> None:
    """An episode's gain is uniform within 3 dB, 0.345 nepers, at 0.5 nepers per unit: errors of 0.69 / sqrt(3) = 0.4.

    A tracker that knows as much leans to the mean by 1 / (1 + 0.16); where values are thresholded it does not.
    """
    task = tasks.get(name)
    z, told, asked = readings(Audio(carrier="loudness"), task)
    assert told.known.all() and not told.probe.any() and asked.probe.all()
    slope = 1.0 / 1.16 if task.is_tracking else 1.0
    error = told.value - slope * z
    assert (np.abs(error.mean(axis=0)) < 0.25).all() and (error.std(axis=0) < 0.55).all()
    assert all(abs(np.polyfit(z[:, i], told.value[:, i], 1)[0] - slope) < 0.12 for i in range(z.shape[1]))


def through_loudness(name: str) -> Any:
    task, renderer = tasks.get(name), Audio(carrier="loudness")
    run = rollout(task, Perceiver(task, renderer), modality=renderer, num_envs=16, num_ticks=120)
    return frontier(run, [0, 200], resamples=200)


def test_a_value_is_tracked_by_its_loudness() -> None:
    front = through_loudness("track")
    assert front.at(0).severity > 0.25 > 0.2 > front.at(200).severity > 0.05  # of variance 1, to 0.25 wanted
    assert front.at(200).credited == pytest.approx(front.demand.mid, abs=1e-6)


@pytest.mark.nightly
def test_an_alert_is_told_by_its_loudness() -> None:
    front = through_loudness("exceed")
    assert front.at(0).credited < 0.02 and 0.08 < front.at(200).credited < 0.8 * front.demand.mid


def test_loads_on_the_arm_are_read() -> None:
    z, told, asked = readings(Proprio(), tasks.get("alert"))
    assert (told.value == z).mean() > 0.97 and asked.probe.all() and not told.probe.any()


def test_coarse_codecs_and_noise_cost_reading() -> None:
    task = tasks.get("watch")
    good, _, _ = (readings(r, task) for r in (Audio(codec=MuLaw(8000, 4)), Audio(), Audio()))
    assert (good[1].value == good[0]).mean() > 0.9
    z, told, _ = readings(Screen(64, 64, codec=Picture(4, 3, 4)), task)
    assert ((told.value == z) & told.known).mean() < 0.7  # letters of 3 x 5 pixels do not survive a quarter of the size
    z, told, _ = readings(Audio(snr_db=-25.0), task)
    assert (told.value == z).mean() < 0.7


def test_a_perceiver_of_symbols_is_the_reactive_agent() -> None:
    for name in ("alert-probed", "watch"):
        task = tasks.get(name)
        runs = [
            rollout(task, agent, num_envs=4, num_ticks=60, link="worked") for agent in ("reactive", Perceiver(task))
        ]
        for column in runs[0].responses:
            assert (runs[0].responses[column] == runs[1].responses[column]).all()


def test_the_frontier_through_sound() -> None:
    # Notes are struck at the onset and a frame of 100 ms ends 100 ms later: everything by then, nothing before.
    run = rollout("EnvRate/Alert-Audio-v0", "perceiver", num_envs=8, num_ticks=100)
    front = frontier(run, [0, 100, 300], resamples=200)
    assert front.at(0).credited < 0.02
    assert front.at(100).credited > 1.8 and front.demand.mid == 2.0
    assert rollout("alert", "never", num_envs=8, num_ticks=100).ticks["latent"].tolist() == run.ticks["latent"].tolist()


def test_a_raw_stream_over_a_narrow_link_queues_up() -> None:
    # 16-bit sound is 256 kb/s: at 200 kb/s frames wait longer and longer; 8-bit sound at half the rate flows.
    task = tasks.get("alert")
    link = {"bandwidth_bps": 200_000}
    found = {}
    for codec in ("raw", "auto"):
        renderer = Audio(codec=codec).for_link(task, 200_000)
        run = rollout(task, Perceiver(task, renderer), modality=renderer, link=link, num_envs=8, num_ticks=60)
        found[codec] = frontier(run, [200, 2000], resamples=200)
    assert found["auto"].at(200).credited > 1.7 > 0.8 > found["raw"].at(200).credited


def test_names_and_refusals() -> None:
    assert "perceiver" in agents.names()
    with pytest.raises(ValueError, match="agent: expected one of"):
        agents.get("reactive", tasks.get("alert"), modality="audio")
    with pytest.raises(ValueError, match="modality"):
        Perceiver(tasks.get("alert"), "smell")
    with pytest.raises(ValueError, match="task: the Kalman filter needs"):
        agents.get("ideal", tasks.get("track").replace(latent=tasks.get("track").latent.__class__("rbf")))


@pytest.mark.nightly
def test_five_frontiers_lie_under_one_demand_symbols_highest() -> None:
    link = {"delay_ms": 100, "jitter": {"kind": "two-point", "low_ms": 0, "high_ms": 150, "p_high": 0.2}}
    found = {}
    for renderer in (Symbols(), Audio(), Video(), Screen(), Proprio()):
        run = rollout("alert", "perceiver", modality=renderer, link=link, num_envs=16, num_ticks=150)
        found[renderer.kind] = frontier(run, resamples=200)
    levels = found["symbols"].latencies_ms
    for front in found.values():
        assert front.demand == found["symbols"].demand
        for level in levels:
            point = front.at(level)
            assert point.credited <= front.demand.upper + 1e-9
            assert point.credited_low <= found["symbols"].at(level).credited_high + 1e-9
