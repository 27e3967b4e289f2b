"""The core equals a list of events on random tasks, links and actions."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from channels.link_reference import random_link
from envs.env_reference import ReferenceEnv, threefry

from envrate import _counters
from envrate.channels import Link, _kernel
from envrate.envs import _record
from envrate.envs._core import Core
from envrate.latents import MarkovChain
from envrate.renderers import Symbols
from envrate.task import Probes, Severity, Task

CORES, LINKS = 15, 20


def test_threefry_known_answer() -> None:
    """Known-answer vectors of Random123 (kat_vectors, threefry2x32 20)."""
    assert threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert threefry((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)) == (0xC4923A9C, 0x483DF7A0)
    key = tuple(jnp.full(3, word, jnp.uint32) for word in (0x13198A2E, 0x03707344))
    words = _counters.block(key, jnp.uint32(5), 2, _counters.Stream.LINK)
    assert [int(w[1]) for w in words] == list(threefry((0x13198A2E, 0x03707344), (5, 2 * 16 + 1)))


def random_task(rng: np.random.Generator) -> Task:
    states = int(rng.integers(2, 6)) if rng.random() < 0.9 else 9
    matrix = rng.random((states, states)) * (rng.random((states, states)) < 0.7) + 0.02
    matrix = np.where(np.roll(np.eye(states), 1, axis=1) > 0, matrix, matrix * (matrix > 0.05))
    if rng.random() < 0.2:
        matrix = np.tile(matrix[:1] + 0.01, (states, 1))
    response = rng.integers(0, 4, states)
    response[rng.integers(states)] = rng.integers(1, 4)
    symbols = int(response.max())
    m = int(rng.integers(20, 300))
    tick = m if rng.random() < 0.15 else int(rng.integers(m, 4 * m))
    horizon = int(rng.integers(m, 3000)) if rng.random() < 0.7 else m * int(rng.integers(1, 12))
    probes = None
    if rng.random() < 0.4:
        probes = Probes(
            rate=float(rng.choice([0.3, 1.0])),
            after_ms=horizon + int(rng.integers(0, 500)),
            deadline_ms=int(rng.integers(1, 1500)),
        )
    return Task(
        latent=MarkovChain(matrix / matrix.sum(1, keepdims=True)),
        response=tuple(response.tolist()),
        tick_ms=tick,
        micro_turn_ms=m,
        horizon_ms=horizon,
        severity=Severity(
            miss=tuple(rng.uniform(0.5, 20, symbols).tolist()),
            wrong=float(rng.uniform(0.5, 5)),
            over=tuple(rng.uniform(0.5, 2, symbols).tolist()) if rng.random() < 0.5 else 1.0,
        ),
        probes=probes,
        reply=str(rng.choice(["named", "newest"])),
    )


def episode(core: Core, steps: int):
    """A compiled function: (link vector, key, actions) -> all that happens in `steps` steps."""

    def run(vector, key, actions):
        p = _kernel.unpack(vector)
        state, first = core.init(p, (key[0], key[1]), jnp.int32(3))

        def body(state, action):
            state, observation, reward, record = core.step(p, state, action)
            return state, (observation, reward, record)

        last, (observations, rewards, records) = jax.lax.scan(body, state, actions)
        return first, observations, rewards, records, state.z[0], last.transit

    return jax.jit(jax.vmap(run))


@pytest.mark.parametrize("number", range(CORES))
def test_equals_the_events(number: int) -> None:
    rng = np.random.default_rng(1000 + number)
    task = random_task(rng)
    num_ticks, compute = int(rng.integers(3, 14)), int(rng.choice([0, 0, 35, 350]))
    window, oldest = int(rng.integers(1, 5)), number % 5 == 0
    links = []
    while len(links) < LINKS:
        link, bits, _ = random_link(rng)
        limit = link.max_age_ms
        link = dataclasses.replace(
            link,
            uplink_ms=int(rng.choice([0, 0, 20, 333])),
            max_age_ms=None if limit is None else min(limit, task.horizon_ms + 1000),
            drop="oldest" if oldest and rng.random() < 0.7 else "newest",
            bandwidth_bps=None if link.bandwidth_bps is None else 64 * link.bandwidth_bps / bits,
            buffer_bits=None if link.buffer_bits is None else max(1, 64 * link.buffer_bits // bits),
        )
        links.append(link)
    shape = Link(buffer_bits=10**6, drop="oldest") if oldest else Link()
    core = Core(task, Symbols(shown=window), shape, num_ticks=num_ticks, compute_ms=compute)
    steps = core.clock.num_steps
    sizes = np.array(core.action_sizes)
    actions = rng.integers(0, sizes, (LINKS, steps, len(sizes))).astype(np.int32)
    actions[:, :, 0] *= rng.random((LINKS, steps)) < 0.6
    keys = np.stack([_counters.keys(77 + i, 5)[:, 4] for i in range(LINKS)])
    vectors = np.stack([_kernel.pack(core.link_params(link)) for link in links])
    given = actions if core.num_factors() else actions[..., 0]
    out = jax.tree.map(np.asarray, episode(core, steps)(vectors, keys, given))
    for i, link in enumerate(links):
        mine = jax.tree.map(lambda leaf, i=i: leaf[i], out)
        compare(core, link, mine, actions[i], 77 + i, f"core {number}, link {i}: {task} {link}")


def compare(core: Core, link: Link, mine: tuple, actions: np.ndarray, seed: int, name: str) -> None:
    first, observations, rewards, records, first_z, transit = mine
    reference = ReferenceEnv(
        core.task,
        link,
        num_ticks=core.clock.num_ticks,
        compute_ms=core.compute_ms,
        bits=64,
        window=core.window,
        seed=seed,
        index=4,
        episode=3,
    )
    steps = core.clock.num_steps
    assert steps == reference.num_steps
    asked, answered, costs = [], [], []
    for k in range(steps + 1):
        want = reference.observe(k)
        got = first if k == 0 else jax.tree.map(lambda leaf, k=k: leaf[k - 1], observations)
        assert want == {n: np.asarray(v).tolist() for n, v in got._asdict().items()}, f"observation {k}: {name}"
        if k < steps:
            cost, tick, probe = reference.act(k, actions[k].tolist())
            costs.append(cost), answered.append(tick), asked.append(probe)
    np.testing.assert_array_equal(records.tick, answered, err_msg=name)
    np.testing.assert_array_equal(records.probe_tick, asked, err_msg=name)
    np.testing.assert_allclose(rewards, costs, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(rewards.sum(), sum(costs), rtol=1e-5, err_msg=name)
    check_tables(core, link, reference, records, first_z, transit, actions, name)


def check_tables(core, link, reference, records, first_z, transit, actions, name) -> None:
    """The trace's columns say what the events say."""
    batched = jax.tree.map(lambda leaf: leaf[..., None], (records, first_z, transit))
    records, first_z, transit = batched
    steps = _record.Steps(*records, first_z, transit.arrival, transit.probe_arrival)
    ticks, responses, fates = _record.tables(core, steps, uplink_ms=link.uplink_ms)
    count = len(ticks["tick"])
    assert ticks["delivered_ms"].tolist() == reference.delivered(), name
    assert ticks["latent"].tolist() == reference.z[:count]
    assert ticks["required"].tolist() == reference.required[:count]
    assert ticks["scored"].sum() == core.clock.num_ticks
    said = [(k, a) for k, a in enumerate(actions[:, 0].tolist()) if a > 0]
    acts = responses["kind"] == 0
    assert responses["value"][acts].tolist() == [a for _, a in said]
    delay = core.compute_ms + link.uplink_ms
    assert responses["time_ms"][acts].tolist() == [k * core.clock.turn_ms + delay for k, _ in said]
    signal = [p for p in reference.packets if not p["probe"]]
    assert fates["lost"] == sum(p["fate"] == "lost" for p in signal)
    assert fates["dropped_full"] == sum(p["fate"] == "full" for p in signal)
    assert fates["dropped_late"] == sum(p["fate"] == "late" for p in signal)
    if core.task.probes is not None:
        m = core.clock.turn_ms
        probes = {p["tick"]: p for p in reference.packets if p["probe"]}
        seen = [
            -1 if i not in probes or probes[i]["arrival"] is None else -(-probes[i]["arrival"] // m) * m
            for i in range(count)
        ]
        # A question in the last observation can no longer be answered, so it was not put.
        assert ticks["probe_ms"].tolist() == [-1 if s >= reference.end else s for s in seen], name
        want = [core.task.question[reference.z[i]] if i in probes else -1 for i in range(count)]
        assert ticks["probe_required"].tolist() == want, name
