"""Rollouts: what they return, counts against traces, agents of every kind, errors, constant memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import envrate
from envrate import Probes, _counters, tasks
from envrate.channels import Exponential, GilbertElliott, Link, Uniform
from envrate.envs import _arrivals, _build, _compiled, _rollout
from envrate.envs._counts import Counter
from envrate.renderers import Video
from envrate.scorers import Tally, tally

LINK = Link(
    bandwidth_bps=300.0,
    delay_ms=50,
    jitter=Uniform(0, 700),
    loss=GilbertElliott(0.2, 0.4),
    buffer_bits=192,
    uplink_ms=40,
)
OFF_GRID = tasks.get("watch").replace(tick_ms=530, probes=Probes(rate=0.4, after_ms=2100, deadline_ms=900))


@pytest.mark.parametrize(
    ("task", "num_envs", "agent"),
    [("alert", 30, "random"), ("watch", 6, "random"), (OFF_GRID, 25, "random"), (OFF_GRID, 4, "reactive")],
)
def test_counts_equal_the_tally_of_the_trace(task: Any, num_envs: int, agent: str) -> None:
    settings = {"link": LINK, "num_envs": num_envs, "num_ticks": 60, "seed": 3, "compute_ms": 30}
    want = tally(envrate.rollout(task, agent, **settings))
    got = envrate.rollout(task, agent, record="counts", **settings)
    assert isinstance(got, Tally)
    np.testing.assert_array_equal(got.counts[0], want.counts[0])
    np.testing.assert_array_equal(got.episode, want.episode)
    np.testing.assert_array_equal(got.latencies_ms, want.latencies_ms)
    for name in ("by_episode", "link_log", "censored", "redundant", "premature", "no_tick", "num_ticks", "probed"):
        assert getattr(got, name) == getattr(want, name), name
    assert want.redundant > 0 or agent == "reactive"
    assert got.header.duration_ms == want.header.duration_ms


def bytes_of_counts(num_ticks: int, record: str = "counts") -> int:
    """What the compiled run holds at once: arguments, results and temporaries."""
    core = _build.make_core("alert", "symbols", "4g", num_ticks=num_ticks, compute_ms=0, keep=record == "counts")
    agent = envrate.agents.get("reactive", core.task)
    state, seen = _compiled.start(core, tuple(jnp.asarray(word) for word in _counters.keys(0, 32)))
    carry = _compiled.Carry(state, seen, agent.init(32, 0), jnp.zeros(32, bool))
    if record == "counts":
        run, rest = _compiled.counting(core, agent, 32), (Counter(core, 32).start(state), core.clock.num_steps)
    else:
        run, rest = _compiled.scan(core, agent, 32, core.clock.num_steps), (core.clock.num_steps,)
    sizes = run.func.lower(*run.args, carry, *rest).compile().memory_analysis()
    return sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes


def test_counts_take_memory_that_does_not_grow_with_the_run() -> None:
    """A thousand times the ticks in the same bytes; a trace, the control, grows. In all: benchmarks/counts.py."""
    assert bytes_of_counts(10**3) == bytes_of_counts(10**6) < 2**22
    assert bytes_of_counts(10**4, "trace") > 5 * bytes_of_counts(10**3, "trace")


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a last chunk that is short: no step is made after the end, where the state holds the last arrivals."""
    settings = {"link": LINK, "num_envs": 5, "num_ticks": 40, "seed": 1}
    whole = envrate.rollout(OFF_GRID, "random", **settings)
    monkeypatch.setattr(_rollout, "CHUNK_BYTES", 2**12)
    same_events(whole, envrate.rollout(OFF_GRID, "random", **settings))
    for length in (37, 100):
        monkeypatch.setattr(_rollout, "_chunk", lambda core, num_envs, length=length: length)
        same_events(whole, envrate.rollout(OFF_GRID, "random", **settings))


@dataclass(frozen=True)
class Bright:
    """Responds 1 to what it sees where that is bright."""

    def __call__(self, observation: Any, state: Any) -> tuple[Any, Any]:
        return (observation["signal"].astype(jnp.float32).mean((1, 2, 3, 4)) > 100).astype(jnp.int32), state


PICTURES: dict[str, Any] = {"modality": Video(height=16, width=16), "num_envs": 3, "num_ticks": 8}


def same_events(a: Any, b: Any) -> None:
    for table in ("ticks", "responses"):
        for name, column in getattr(a, table).items():
            np.testing.assert_array_equal(getattr(b, table)[name], column, err_msg=name)


def test_links_share_a_compiled_scan_of_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of jitter and of loss through one compiled scan gives what a scan of its own gives."""
    busy = replace(LINK, bandwidth_bps=1e5, buffer_bits=20_000)
    links = ["worked", Link(jitter=Exponential(90.0), loss=0.2), busy]
    _compiled._cached_scan.cache_clear()
    shared = [envrate.rollout("alert", Bright(), link=link, **PICTURES) for link in links]
    assert _compiled._cached_scan.cache_info().misses == 1
    assert [trace.header.link["delay_ms"] for trace in shared] == [300, 0, 50]
    monkeypatch.setattr(_compiled, "_shared", lambda core: (core, None))
    for link, trace in zip(links, shared, strict=True):
        alone = envrate.rollout("alert", Bright(), link=link, **PICTURES)
        assert 0 < len(alone.responses["tick"]) < 3 * 60
        same_events(trace, alone)
    assert _compiled._cached_scan.cache_info().misses == 1 + len(links)


def test_pictures_step_by_step_are_those_of_the_scan() -> None:
    whole = envrate.rollout("alert", Bright(), link="worked", **PICTURES)
    assert len(whole.responses["tick"]) > 0
    same_events(whole, envrate.rollout("alert", Bright(), link="worked", jit=False, **PICTURES))


def test_another_size_is_another_scan() -> None:
    """A link that keeps packets for longer, or drops its oldest, needs other arrays."""
    _compiled._cached_scan.cache_clear()
    kinds = [Link(), Link(max_age_ms=9000), Link(bandwidth_bps=1e6, buffer_bits=10**5, drop="oldest"), Link(delay_ms=9)]
    for link in kinds:
        envrate.rollout("alert", "never", link=link, **PICTURES)
    assert _compiled._cached_scan.cache_info().misses == 3


def test_nothing_is_drawn_for_an_agent_that_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    shown = _arrivals.shown
    monkeypatch.setattr(_arrivals, "shown", lambda *arguments: drawn.append(1) or shown(*arguments))
    for agent in ("never", "always", "random"):
        envrate.rollout("alert", agent, link=Link(delay_ms=77), **PICTURES | {"num_ticks": 9})
        assert not drawn
    envrate.rollout("alert", Bright(), **PICTURES | {"num_ticks": 9})
    assert drawn


def test_scores_exactly_the_ticks_asked_for() -> None:
    trace = envrate.rollout(OFF_GRID, "never", num_envs=3, num_ticks=17)
    assert trace.ticks["scored"].sum() == 3 * 17
    assert (trace.ticks["tick"][trace.ticks["scored"]] < 17).all()
    duration = trace.header.duration_ms // 3
    assert duration % 200 == 0 and 16 * 530 + 2000 < duration <= 16 * 530 + 2000 + 200


def test_header_says_what_the_link_did() -> None:
    trace = envrate.rollout("alert", "never", link=Link(loss=1.0), num_envs=2, num_ticks=5)
    sent = 2 * len(np.unique(trace.ticks["tick"]))
    assert trace.header.extra["packets"]["lost"] >= sent
    assert "were lost" in trace.header.notes[0]
    assert (trace.ticks["delivered_ms"] == -1).all()
    assert trace.header.link == {"kind": "link"} | {
        "delay_ms": 0,
        "jitter": {"kind": "constant", "value_ms": 0},
        "loss": 1.0,
        "drop": "newest",
        "uplink_ms": 0,
    }


@dataclass(frozen=True)
class Compiled:
    """Responds 1 to the newest tick whenever something arrived."""

    def __call__(self, observation: Any, state: Any) -> tuple[Any, Any]:
        return (observation["fresh"] > 0).astype(jnp.int32), state


def in_numpy(observation: dict[str, np.ndarray], state: Any) -> tuple[np.ndarray, Any]:
    assert isinstance(observation["signal"], np.ndarray)
    return (observation["fresh"] > 0).astype(int), state


class StableBaselines:
    """The interface of a trained Stable-Baselines3 model."""

    def predict(self, observation: Any, state: Any = None, deterministic: bool = False) -> tuple[np.ndarray, Any]:
        assert deterministic
        return (observation["fresh"] > 0).astype(np.int64), state


def test_every_kind_of_agent() -> None:
    settings = {"link": LINK, "num_envs": 4, "num_ticks": 12, "seed": 2}
    traces = [
        envrate.rollout("alert", Compiled(), **settings),
        envrate.rollout("alert", in_numpy, jit=False, **settings),
        envrate.rollout("alert", StableBaselines(), jit=False, **settings),
    ]
    assert [t.header.agent for t in traces] == ["Compiled", "in_numpy", "StableBaselines"]
    assert len(traces[0].responses["tick"]) > 20
    for other in traces[1:]:
        same_events(traces[0], other)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="agent: expected one of always"):
        envrate.rollout("alert", "nobody")
    with pytest.raises(ValueError, match="env: expected EnvRate/TASK-MODALITY-v0 .* got 'EnvRate/Nothing-v0'"):
        envrate.rollout("EnvRate/Nothing-v0", "never")
    with pytest.raises(ValueError, match="task: expected one of"):
        envrate.rollout("nothing", "never")
    with pytest.raises(ValueError, match="record: expected one of counts, trace"):
        envrate.rollout("alert", "never", record="all")
    with pytest.raises(ValueError, match="modality.kind: expected one of"):
        envrate.rollout("alert", "never", modality="smell")
    with pytest.raises(ValueError, match="num_envs: expected an integer"):
        envrate.rollout("alert", "never", num_envs=0)
    with pytest.raises(ValueError, match="more than 2 GB; use record='counts'"):
        envrate.rollout("alert", "never", num_envs=4096, num_ticks=100_000)
    with pytest.raises(ValueError, match="num_ticks: expected at most"):
        envrate.rollout("alert", "never", num_ticks=10**8)
    small = {"num_envs": 2, "num_ticks": 2}
    with pytest.raises(ValueError, match="pass jit=False"):
        envrate.rollout("alert", lambda o, s: (np.asarray(o["fresh"]), s), **small)
    with pytest.raises(ValueError, match="action: environment 1 got one outside the space"):
        envrate.rollout("alert", lambda o, s: (jnp.array([0, 2]), s), **small)
    with pytest.raises(ValueError, match="action: expected values within Discrete"):
        envrate.rollout("alert", lambda o, s: (np.array([0, 2]), s), jit=False, **small)
    with pytest.raises(ValueError, match=r"action: expected shape \(2,\), got \(3,\)"):
        envrate.rollout("alert", lambda o, s: (jnp.zeros(3, jnp.int32), s), **small)
    with pytest.raises(ValueError, match="action: expected whole numbers"):
        envrate.rollout("alert", lambda o, s: (jnp.zeros(2), s), **small)
    with pytest.raises(ValueError, match="not compiled; pass jit=False"):
        envrate.rollout("alert", StableBaselines(), **small)
    with pytest.raises(ValueError, match="agent: expected a callable"):
        envrate.rollout("alert", 3, **small)


def test_worked_example() -> None:
    """60 % of the packets after 300 ms, the rest after 600: the shares, and who is answered when."""
    trace = envrate.rollout("EnvRate/Alert-Symbols-v0", "reactive", link="worked", num_envs=20, num_ticks=250)
    t = trace.ticks
    late = t["delivered_ms"] - t["onset_ms"]
    scored = t["scored"]
    assert set(late[scored].tolist()) == {300, 600}
    assert abs((late[scored] == 300).mean() - 0.6) < 0.035  # 5 standard errors of 5000
    answered = set(zip(trace.responses["episode"].tolist(), trace.responses["tick"].tolist(), strict=True))
    wanted = scored & (t["required"] == 1)
    assert all(pair in answered for pair in zip(t["episode"][wanted].tolist(), t["tick"][wanted].tolist(), strict=True))
    assert (trace.responses["value"] == 1).all()


def test_compute_time_moves_responses_and_misattributes_none() -> None:
    """350 ms of compute on 100 ms micro-turns: the same ticks are answered with the same symbols 350 ms later."""
    settings = {"link": Link(delay_ms=200), "num_envs": 4, "num_ticks": 50}
    quick = envrate.rollout("alert", "reactive", **settings)
    slow = envrate.rollout("alert", "reactive", compute_ms=350, **settings)
    for name in ("episode", "tick", "value"):
        np.testing.assert_array_equal(slow.responses[name], quick.responses[name])
    np.testing.assert_array_equal(slow.responses["time_ms"], quick.responses["time_ms"] + 350)
    assert (slow.responses["compute_ms"] == 350).all()


def test_same_seed_same_run_and_other_seed_another() -> None:
    settings = {"link": LINK, "num_envs": 3, "num_ticks": 30}
    a, b, c = (envrate.rollout("choice8", "random", seed=seed, **settings) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.ticks["latent"], b.ticks["latent"])
    np.testing.assert_array_equal(a.responses["value"], b.responses["value"])
    assert (a.ticks["latent"] != c.ticks["latent"]).any()
    latent = a.ticks["latent"].reshape(3, -1)
    assert (latent[0] != latent[1]).any() and (latent[1] != latent[2]).any()


def test_latent_does_not_depend_on_link_or_micro_turn() -> None:
    task = tasks.get("hold")
    a = envrate.rollout(task, "never", num_envs=2, num_ticks=30)
    b = envrate.rollout(replace(task, micro_turn_ms=70), "random", link=LINK, num_envs=2, num_ticks=30)
    first, second = (t.ticks["latent"][t.ticks["scored"]] for t in (a, b))
    np.testing.assert_array_equal(first, second)


def test_chain_has_its_law() -> None:
    """Transition shares of 40,000 ticks within 5 standard errors; a forbidden move never happens."""
    task = tasks.get("watch")
    trace = envrate.rollout(task, "never", num_envs=40, num_ticks=1000)
    latent = trace.ticks["latent"].reshape(40, -1)
    pairs = np.zeros((5, 5))
    np.add.at(pairs, (latent[:, :-1].ravel(), latent[:, 1:].ravel()), 1)
    matrix = task.latent.matrix
    assert (pairs[matrix == 0] == 0).all()
    visits = pairs.sum(axis=1, keepdims=True)
    assert (np.abs(pairs / visits - matrix) <= 5 * np.sqrt(matrix * (1 - matrix) / visits) + 1e-12).all()
    start = np.bincount(latent[:, 0], minlength=5) / 40
    assert abs(start[0] - task.latent.stationary[0]) < 5 * 0.5 / np.sqrt(40)
