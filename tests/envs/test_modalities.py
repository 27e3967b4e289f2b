"""Environments of every modality: the checker, vector against single, the batch, memory."""

from __future__ import annotations

import os
import subprocess
import sys

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import envrate  # noqa: F401 - registers the ids
from envrate import _counters, tasks
from envrate.envs import IDS, _build
from envrate.envs._arrivals import batch_first
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video

EVERY_DAY = ["EnvRate/AlertProbed-Screen-v0", "EnvRate/Exceed-Audio-v0"]
STREAMS = [env_id for env_id, (_, modality) in IDS.items() if modality != "symbols" and env_id not in EVERY_DAY]


def check(env_id: str) -> None:
    env = gym.make(env_id, render_mode="rgb_array", num_ticks=3, link="worked").unwrapped
    check_env(env)
    env.reset(seed=1)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3


@pytest.mark.parametrize("env_id", EVERY_DAY)
def test_checker(env_id: str) -> None:
    check(env_id)


# Values that are tracked have a unit of their own, so their space is not -1 ... 1.
@pytest.mark.filterwarnings("ignore:.*For Box action spaces, we recommend using a symmetric:UserWarning")
@pytest.mark.nightly
@pytest.mark.parametrize("env_id", STREAMS)
def test_checker_of_all(env_id: str) -> None:
    check(env_id)


def test_every_sensible_pair_has_an_id() -> None:
    kinds = {"symbols", "audio", "video", "screen", "proprio"}
    assert set(IDS.values()) == {(task, kind) for task in tasks.names() for kind in kinds}


def observations(core: object, num_envs: int, steps: int) -> list[dict[str, np.ndarray]]:
    key = tuple(jnp.asarray(word) for word in _counters.keys(5, num_envs))
    state, seen = jax.jit(lambda k: core.init(core.params, k, jnp.int32(0)))(key)
    step = jax.jit(lambda s, a: core.step(core.params, s, a)[:2])
    zero = jnp.zeros((core.num_factors(), num_envs) if core.num_factors() else num_envs, jnp.int32)
    if core.task.is_tracking:
        zero = jnp.zeros((core.task.latent.num_outputs, num_envs), jnp.float32)
    out = []
    for _ in range(steps):
        state, seen = step(state, zero)
        out.append({name: batch_first(value, np) for name, value in seen._asdict().items()})
        out[-1]["latent"] = np.asarray(state.z[0])
    return out


#: How far a signal may move when the batch changes. Draws and latents never do. XLA compiles sums of products with one
#: rounding or with two, in vectors or in a loop's rest, by the size of the batch: sound and the arm's state, of order
#: 0.1 and 1, differ by units in the last place (bitwise equality would take one loop per environment), a pixel that
#: lies on a boundary by one grey level. The arm's controller damps what it inherits from the frame before.
BATCH_TOLERANCE = {"audio": 2e-6, "video": 1, "screen": 1, "proprio": 1e-5}


@pytest.mark.parametrize("renderer", [Audio(), Video(), Screen(64, 64), Proprio()], ids=lambda r: r.kind)
def test_a_trajectory_does_not_depend_on_the_batch_nor_the_latent_on_the_renderer(renderer: object) -> None:
    def core(renderer: object) -> object:
        return _build.make_core("alert", renderer, "worked", num_ticks=10, compute_ms=0)

    few, many = observations(core(renderer), 2, 12), observations(core(renderer), 131, 12)  # 131: a block and a rest
    tokens = observations(core(Symbols()), 2, 12)
    for a, b, c in zip(few, many, tokens, strict=True):
        assert (a["latent"] == b["latent"][:2]).all() and (a["latent"] == c["latent"]).all()
        assert (a["age_ms"] == b["age_ms"][:2]).all() and (a["fresh"] == b["fresh"][:2]).all()
        apart = np.abs(a["signal"].astype(float) - b["signal"][:2].astype(float))
        assert apart.max() <= BATCH_TOLERANCE[renderer.kind]
        assert renderer.kind not in ("video", "screen") or (apart == 0).mean() > 0.999


def vector_equals_single(task: str, renderer: object) -> None:
    envs = gym.make_vec(
        f"EnvRate/{task}-Video-v0", num_envs=2, vectorization_mode="vector_entry_point", num_ticks=3, modality=renderer
    )
    single = gym.make(f"EnvRate/{task}-Video-v0", num_ticks=3, modality=renderer)
    seeds = [3, 14]
    seen, _ = envs.reset(seed=seeds)
    for i, seed in enumerate(seeds):
        alone = [single.reset(seed=seed)[0]]
        if i == 0:
            together = [seen]
            still = np.zeros_like(envs.action_space.sample())
            for _ in range(8):
                together.append(envs.step(still)[0])
        still_one = np.zeros_like(np.asarray(single.action_space.sample()))
        for _ in range(8):
            action = int(still_one) if still_one.ndim == 0 else still_one
            alone.append(single.step(action)[0])
        for a, b in zip(alone, together, strict=True):
            assert (a["age_ms"] == b["age_ms"][i]).all() and a["fresh"] == b["fresh"][i]
            np.testing.assert_allclose(a["signal"].astype(float), b["signal"][i].astype(float), atol=1.0)
            assert (np.abs(a["signal"] - b["signal"][i]) < 1e-4).mean() > 0.999


def test_vector_equals_single() -> None:
    vector_equals_single("Alert", Video(height=32, width=32))


@pytest.mark.nightly
@pytest.mark.parametrize("renderer", [Audio(), Screen(), Proprio()], ids=lambda r: r.kind)
def test_vector_equals_single_in_every_modality(renderer: object) -> None:
    vector_equals_single("Alert", renderer)


WITHOUT_GRAPHICS = """
import ctypes, ctypes.util
find, load = ctypes.util.find_library, ctypes.CDLL
def hidden(name):
    return any(word in str(name) for word in ("EGL", "OSMesa", "libGL", "OpenGL", "glfw"))
def cannot_load(name, *args, **kwargs):
    if hidden(name):
        raise OSError(f"{name}: cannot open shared object file")
    return load(name, *args, **kwargs)
ctypes.util.find_library = lambda name: None if hidden(name) or name == "GL" else find(name)
ctypes.CDLL = cannot_load
import gymnasium as gym, numpy as np, envrate
env = gym.make("EnvRate/Alert-Proprio-v0", render_mode="rgb_array", num_ticks=2)
env.reset(seed=0)
for _ in range(3):
    seen, *_ = env.step(0)
assert seen["fresh"] == 1 and np.abs(seen["signal"][-1]).max() > 0.01
try:
    env.render()
except RuntimeError as error:
    print(error)
"""


def test_without_a_graphics_library_all_but_the_arms_picture_works() -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    done = subprocess.run([sys.executable, "-c", WITHOUT_GRAPHICS], capture_output=True, text=True, env=clean)
    assert done.returncode == 0, done.stderr
    assert "install one (Debian: libegl1" in done.stdout and "everything but this picture works" in done.stdout


MEMORY = """
import resource, numpy as np, gymnasium as gym, envrate
envs = gym.make_vec("EnvRate/Alert-Video-v0", num_envs=4096, vectorization_mode="vector_entry_point", num_ticks=10)
envs.reset(seed=0)
for _ in range(4):
    envs.step(np.zeros(4096, np.int64))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
"""


@pytest.mark.nightly
def test_4096_video_environments_fit_in_two_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) < 2.0
