"""The Gymnasium faces: the checker, both autoreset modes, vector against single, seeds, options, traces, errors."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import envrate
from envrate.channels import GilbertElliott, Link, TwoPoint
from envrate.envs import IDS, EnvRateEnv, EnvRateVectorEnv

LINK = Link(
    bandwidth_bps=400.0, delay_ms=130, jitter=TwoPoint(0, 300, 0.4), loss=GilbertElliott(0.2, 0.5), buffer_bits=200
)
SYMBOLS = [env_id for env_id, (_, modality) in IDS.items() if modality == "symbols"]
HEADINGS = ("Latent", "Observation", "Action", "Reward", "Link", "Episode end", "Demand", "Version history")


# Values that are tracked have a unit of their own, so their space is not -1 ... 1.
@pytest.mark.filterwarnings("ignore:.*For Box action spaces, we recommend using a symmetric:UserWarning")
@pytest.mark.parametrize("env_id", SYMBOLS)
def test_checker_and_page(env_id: str) -> None:
    env = gym.make(env_id, render_mode="rgb_array", num_ticks=5, link="worked")
    check_env(env.unwrapped)
    assert [line[3:] for line in env.unwrapped.__doc__.splitlines() if line.startswith("## ")] == list(HEADINGS)
    env.reset(seed=1)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3
    text = gym.make(env_id, render_mode="ansi", num_ticks=5)
    text.reset(seed=1)
    assert text.render().endswith("fresh 1\n")  # the ideal link shows tick 0 at once
    json.loads(env.spec.to_json())


def play(env: gym.Env, actions: np.ndarray, seed: int, options: dict | None = None) -> list:
    """Every observation, reward and flag of `actions` in turn; a new episode begins where one is over."""
    seen = [env.reset(seed=seed, options=options)[0]]
    out = [(seen[0], 0.0, False)]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        assert not terminated and info == {} and isinstance(reward, float) and isinstance(truncated, bool)
        out.append((observation, reward, truncated))
        if truncated:
            out.append((env.reset()[0], 0.0, False))
    return out


def same(a: dict, b: dict) -> None:
    assert set(a) == set(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("env_id", ["EnvRate/Watch-Symbols-v0", "EnvRate/AlertProbed-Symbols-v0"])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_equals_single(env_id: str, mode: AutoresetMode) -> None:
    """Step by step over two resets, one seed per environment; so no environment loses a step when others reset."""
    seeds, steps = [3, 14, 15], 80
    envs = gym.make_vec(
        env_id, num_envs=3, vectorization_mode="vector_entry_point", num_ticks=4, link=LINK, autoreset_mode=mode
    )
    assert envs.metadata["autoreset_mode"] is mode
    length = envs.unwrapped.core.clock.num_steps
    assert steps > 2 * length + 3
    envs.action_space.seed(0)
    actions = np.stack([envs.action_space.sample() for _ in range(steps)])
    single = gym.make(env_id, num_ticks=4, link=LINK)
    columns = []
    for i, seed in enumerate(seeds):
        kept = [k for k in range(steps) if mode is AutoresetMode.SAME_STEP or k % (length + 1) != length]
        columns.append(iter(play(single, actions[kept, i], seed)))
    observation, info = envs.reset(seed=seeds)
    assert info == {}
    for i, column in enumerate(columns):
        same(next(column)[0], {name: value[i] for name, value in observation.items()})
    for k in range(steps):
        observation, reward, terminated, truncated, info = envs.step(actions[k])
        assert envs.observation_space.contains(observation) and not terminated.any()
        if mode is AutoresetMode.NEXT_STEP and k % (length + 1) == length:
            assert (reward == 0).all() and not truncated.any()  # the step that resets
        for i, column in enumerate(columns):
            want, paid, over = next(column)
            assert paid == reward[i] and over == truncated[i]
            got = {name: value[i] for name, value in observation.items()}
            if over and mode is AutoresetMode.SAME_STEP:
                same(want, info["final_obs"][i])
                want = next(column)[0]
            same(want, got)
        assert bool(info) == (mode is AutoresetMode.SAME_STEP and bool(truncated.all()))


def test_final_observations_in_the_form_of_sync_vector_env() -> None:
    """Same keys and kinds as Gymnasium's own SyncVectorEnv in SAME_STEP mode."""

    def single() -> gym.Env:
        return EnvRateEnv("hold", num_ticks=2)

    reference = gym.vector.SyncVectorEnv([single] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    ours = EnvRateVectorEnv(2, "hold", num_ticks=2, autoreset_mode="SameStep")
    for envs in (reference, ours):
        envs.reset(seed=0)
    while True:
        actions = np.zeros((2, 2), dtype=np.int64)
        *_, truncated, want = reference.step(actions)
        *_, info = ours.step(actions)
        if truncated.any():
            break
    assert set(info) == set(want)
    np.testing.assert_array_equal(info["_final_obs"], want["_final_obs"])
    assert info["final_obs"].dtype == want["final_obs"].dtype and info["final_info"] == want["final_info"]
    assert type(info["final_obs"][0]) is type(want["final_obs"][0])


def test_trajectory_does_not_depend_on_the_batch_size() -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (40, 16))
    runs = []
    for n in (16, 3):
        envs = EnvRateVectorEnv(n, "alert", link=LINK, num_ticks=3)
        rows = [envs.reset(seed=9)[0]]
        for row in actions:
            observation, reward, *_ = envs.step(row[:n])
            rows.append(observation | {"reward": reward})
        runs.append(rows)
    for many, few in zip(*runs, strict=True):
        for name in many:
            np.testing.assert_array_equal(many[name][:3], few[name])


def test_seeds_reproduce_and_episodes_differ() -> None:
    env = EnvRateEnv("choice8", num_ticks=10)
    actions = np.zeros(len(range(3 * env.core.clock.num_steps)), dtype=np.int64)
    first, again, other = play(env, actions, 5), play(env, actions, 5), play(env, actions, 6)
    for a, b in zip(first, again, strict=True):
        same(a[0], b[0])
    assert any((a[0]["signal"] != b[0]["signal"]).any() for a, b in zip(first, other, strict=True))
    starts = [a[0]["signal"].tolist() for a, before in zip(first[1:], first, strict=False) if before[2]]
    episodes = np.split(np.array([a[0]["signal"] for a in first]), [len(first) // 3, 2 * (len(first) // 3)])
    assert len(starts) == 3 and not np.array_equal(episodes[0], episodes[1])
    env = EnvRateEnv("alert", num_ticks=2)
    observation, _ = env.reset()
    same(observation, EnvRateEnv("alert", num_ticks=2).reset(seed=env.np_random_seed)[0])


def test_link_option_is_honoured_without_a_retrace() -> None:
    env = gym.make("EnvRate/Alert-Symbols-v0", num_ticks=4)
    stepper = env.unwrapped._settings.stepper
    actions = np.zeros(8, dtype=np.int64)
    quick = play(env, actions, 1)
    sizes = stepper.jitted_step._cache_size(), stepper.jitted_reset._cache_size()
    slow = play(env, actions, 1, {"link": {"kind": "link", "delay_ms": 300}})
    named = play(env, actions, 1, {"link": "satellite"})
    assert (stepper.jitted_step._cache_size(), stepper.jitted_reset._cache_size()) == sizes == (1, 1)
    assert [o["fresh"].item() for o, *_ in quick] == [1, 0, 0, 0, 0, 1, 0, 0, 0]
    assert [o["fresh"].item() for o, *_ in slow] == [0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert named[3][0]["fresh"] == 0
    # A link that keeps packets longer than the environment was built for still works.
    env.reset(seed=1, options={"link": Link(delay_ms=4000, max_age_ms=9000)})
    assert sum(int(env.step(0)[0]["fresh"]) for _ in range(env.unwrapped.core.clock.num_steps)) == 0
    envs = EnvRateVectorEnv(2, "alert", num_ticks=4)
    envs.reset(seed=1, options={"link": Link(delay_ms=300)})
    counts = [envs.step(np.zeros(2, int))[0]["fresh"].tolist() for _ in range(4)]
    assert counts == [[0, 0], [0, 0], [1, 1], [0, 0]]


def test_no_retrace_after_the_second_step() -> None:
    envs = EnvRateVectorEnv(5, "watch", num_ticks=2, link="4g")
    envs.reset(seed=0)
    for _ in range(2 * envs.core.clock.num_steps + 5):
        envs.step(envs.action_space.sample())
    stepper = envs._settings.stepper
    assert stepper.jitted_step._cache_size() == 1 and stepper.jitted_reset._cache_size() == 1


def test_trace_of_a_plain_loop_equals_the_rollout() -> None:
    """The same fixed answers, given in a loop of one environment and in a rollout."""

    def agent(observation: dict, state: int) -> tuple[np.ndarray, int]:
        n = len(observation["fresh"])
        return np.stack([np.full(n, (state % 3 == 1) * (1 + state % 2)), np.full(n, state % 2)], axis=1), state + 1

    agent.init = lambda num_envs, seed: 0  # type: ignore[attr-defined]
    want = envrate.rollout("EnvRate/Watch-Symbols-v0", agent, link=LINK, num_envs=1, num_ticks=6, seed=8, jit=False)
    env = gym.make("EnvRate/Watch-Symbols-v0", link=LINK, num_ticks=6)
    env.reset(seed=8)
    for k in range(env.unwrapped.core.clock.num_steps):
        env.step(np.array([(k % 3 == 1) * (1 + k % 2), k % 2]))
    got = env.unwrapped.trace(agent="loop")
    for table in ("ticks", "responses"):
        for name, column in getattr(want, table).items():
            np.testing.assert_array_equal(getattr(got, table)[name], column, err_msg=name)
    assert got.header.duration_ms == want.header.duration_ms and got.header.seed == 8
    # A second episode, left half-way, is added; its last ticks are not scored.
    env.reset()
    for _ in range(15):
        env.step(np.array([0, 0]))
    both = env.unwrapped.trace()
    assert both.num_episodes == 2 and both.ticks["scored"].sum() == 6 + 2
    assert both.header.duration_ms == want.header.duration_ms + 15 * 200


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="link: expected one of .*got 'moon'"):
        gym.make("EnvRate/Alert-Symbols-v0", link="moon")
    with pytest.raises(TypeError, match="colour"):
        gym.make("EnvRate/Alert-Symbols-v0", colour="red")
    with pytest.raises(gym.error.NameNotFound):
        gym.make("EnvRate/Nothing-Symbols-v0")
    with pytest.raises(ValueError, match="num_ticks: expected an integer >= 1, got 0"):
        gym.make("EnvRate/Alert-Symbols-v0", num_ticks=0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        EnvRateVectorEnv(2, "alert", max_episode_steps=3)
    with pytest.raises(ValueError, match="autoreset_mode"):
        EnvRateVectorEnv(2, "alert", autoreset_mode="Disabled")
    env = EnvRateEnv("watch", num_ticks=2)
    with pytest.raises(ValueError, match="call reset"):
        env.step(np.array([0, 0]))
    with pytest.raises(ValueError, match="no step was taken"):
        env.trace()
    env.reset(seed=0)
    for action in (np.array([3, 0]), np.array([0, 5]), np.array([-1, 0]), np.array([0.5, 0]), np.array([np.nan, 0]), 1):
        with pytest.raises(ValueError, match="action: expected"):
            env.step(action)
    with pytest.raises(ValueError, match="options: unknown key 'delay'"):
        env.reset(options={"delay": 3})
    with pytest.raises(ValueError, match="delay_ms: expected an integer"):
        env.reset(options={"link": {"kind": "link", "delay_ms": -3}})
    envs = EnvRateVectorEnv(2, "alert")
    with pytest.raises(ValueError, match="seed: expected 2 seeds"):
        envs.reset(seed=[1, 2, 3])
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"action: expected shape \(2,\)"):
        envs.step(np.zeros(3, int))


def test_length_in_micro_turns() -> None:
    """2000 ms of horizon: with 25 steps of 100 ms the ticks at 0 are scored, and 450 ms more hold none at 500."""
    envs = EnvRateVectorEnv(2, "alert", max_episode_steps=25)
    assert envs.core.clock.num_steps == 25 and envs.core.clock.num_ticks == 1
    envs = EnvRateVectorEnv(2, "alert", max_episode_steps=26)
    assert envs.core.clock.num_ticks == 2  # 500 + 2000 < 2600
