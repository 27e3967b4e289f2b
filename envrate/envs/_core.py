"""The environment as pure functions over one frozen state with a trailing batch shape; only renderers are vmapped.

The clock and the episode number are scalars that the whole batch shares, since an episode ends by its length alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate._counters import Stream
from envrate.channels import Link, _kernel
from envrate.channels._kernel import LinkParams
from envrate.envs import _answers, _arrivals, _packets
from envrate.envs._answers import Pending
from envrate.envs._clock import Clock, Tempo
from envrate.envs._packets import Stamps, Transit
from envrate.latents import _kernels
from envrate.renderers._base import Renderer
from envrate.task import Task

Array = jax.Array
PyTree = Any


class State(NamedTuple):
    """Everything that the future depends on."""

    now: Any  # (9,) int32, the clock's counters; see `Tempo`
    episode: Any  # () int32
    key: Any  # two (*batch) uint32
    latent: Any  # the sampler's own
    z: Any  # the latent's values at the newest three ticks, newest first
    pending: Pending  # ticks that can still be answered
    transit: Transit  # packets that can still arrive
    held: Any  # the last picture in the signal's form, where the renderer holds; else ()


class Observation(NamedTuple):
    """What the agent sees. Shapes as inside the core; faces move the batch to the front."""

    signal: Any  # (W, ..., *batch), or `BatchFirst` where it is large
    age_ms: Any  # (W, *batch) int32, -1 in empty slots
    fresh: Any  # (*batch) int32, packets that arrived since the last observation


class Record(NamedTuple):
    """What the trace needs of one step; the schedule of ticks and packets is known without it."""

    tick: Any  # (*batch) int32, the tick answered, -1 none
    value: Any  # (*batch) int32 symbol given, or (d, *batch) float32
    probe_tick: Any  # (*batch) int32, the tick whose probe is answered, -1 none
    probe_value: Any  # (*batch) int32, 0 none, else the answer + 1
    z: Any  # the latent at the newest tick
    gone: Any  # (packets per step, *batch) int32 arrivals of the packets whose slots were taken
    gone_probe: Any  # (*batch) int32, the same for the probe


class Core:
    """One task seen through one renderer: static settings and the functions `init` and `step`.

    Each is made of two, so that a loop need not carry pictures: `start`, then `observe` and `advance` in turns.

    Args:
        task: what is demanded.
        renderer: how the latent is shown.
        link: the link; its age limit fixes how many packets are kept.
        num_ticks: ticks that an episode scores.
        compute_ms: the agent's own time, a constant.
        max_steps: length of an episode in micro-turns; it then fixes `num_ticks`.
        keep: whether arrivals are kept until the ticks that they are about are settled.
    """

    def __init__(
        self,
        task: Task,
        renderer: Renderer,
        link: Link,
        *,
        num_ticks: int,
        compute_ms: int = 0,
        max_steps: int | None = None,
        keep: bool = False,
    ) -> None:
        """Fixes every static size."""
        self.task = task
        self.renderer = renderer
        self.link = link
        self.compute_ms = _checks.integer("compute_ms", compute_ms, 0, 10**6, "ms")
        self.clock = Clock.of(task, num_ticks, renderer.frame_ms(task), max_steps)
        self.signal = renderer.signal(task)
        self.window = _checks.integer("renderer.window", renderer.window(task), 1)
        self.age_ms = _kernel.max_age(link, task.horizon_ms)
        self.keep = keep
        self.params = self.link_params(link)
        self.drops_oldest = bool(self.params.oldest)
        self.sampler = _kernels.kernel(task.latent, task.tick_ms)
        self.letters = _answers.Letters.of(task)

    def link_params(self, link: Link) -> LinkParams:
        """Another link's numbers for this task's packets."""
        return _kernel.params(link, self.renderer.packet_bits(self.task), self.task.horizon_ms)

    @cached_property
    def slots(self) -> int:
        """Packets of the signal that are kept."""
        age_ms = max(self.age_ms, self.settle_ms + self.clock.turn_ms) if self.keep else self.age_ms
        return self.clock.slots(age_ms, self.clock.packet_ms)

    @cached_property
    def tempo(self) -> Tempo:
        """The clock's counters."""
        return Tempo(self.clock, self.slots)

    @property
    def settle_ms(self) -> int:
        """From a tick's onset until its outcome at every latency, and its probe's, can no longer change."""
        probes = self.task.probes
        settled = self.clock.horizon_ms
        return settled if probes is None else max(settled, probes.after_ms + max(probes.deadline_ms, self.age_ms))

    @cached_property
    def probe_slots(self) -> int:
        """Ticks whose probes are kept, from their onset on; 0 without probes."""
        if self.task.probes is None:
            return 0
        alive = self.task.probes.after_ms + max(self.age_ms, self.task.probes.deadline_ms)
        return self.clock.slots(alive, self.task.tick_ms) + 1

    # -- functions ----------------------------------------------------------------------------------------------

    def init(self, p: LinkParams, key: Any, episode: Any) -> tuple[State, Observation]:
        """The state and the observation at reset; arguments as of `start`."""
        return self.observe(self.start(p, key, episode))

    def step(self, p: LinkParams, state: State, action: Any) -> tuple[State, Observation, Any, Record]:
        """One micro-turn: `advance`, then `observe`.

        Returns:
            The state, the observation, (*batch) float32 reward and the record.
        """
        state, reward, record = self.advance(p, state, action)
        return *self.observe(state), reward, record

    def start(self, p: LinkParams, key: Any, episode: Any) -> State:
        """The state at reset, before its observation: tick 0 has begun.

        Args:
            p: the link.
            key: two (*batch) uint32 words; see `_counters.keys`.
            episode: int32 scalar.
        """
        batch = tuple(jnp.shape(key[0]))
        now, zero = jnp.asarray(self.tempo.start()), jnp.int32(0)
        stamps = Stamps(key, episode)
        latent, z = self.sampler.start(_kernels.Draws(stamps.bits(zero, Stream.LATENT)), self.clock.total_ticks)
        values = (z, z, z)
        pending = _answers.start(self, z, batch)
        transit = _packets.start(self, stamps, z, batch)
        if self.clock.frame_ms is None:
            transit = _packets.send_signal(self, p, transit, stamps, values, zero, zero, jnp.bool_(True), zero)
        held: PyTree = _arrivals.blank(self, batch) if self.signal.holds else ()
        return State(now, jnp.asarray(episode, jnp.int32), key, latent, values, pending, transit, held)

    def observe(self, state: State, *, render: bool = True) -> tuple[State, Observation]:
        """What arrived in the micro-turn that led to `state`, and the state of one who has seen it.

        Args:
            state: from `start` or `advance`.
            render: whether the signal is wanted; else it is empty.
        """
        batch = tuple(jnp.shape(state.key[0]))
        begin = state.now[Tempo.NOW] - self.clock.turn_ms
        window, fresh = _arrivals.arrivals(self, state.transit, state.now, begin, batch)
        pending = state.pending._replace(newest=jnp.maximum(state.pending.newest, window.newest_tick))
        state = state._replace(pending=pending)
        if render:
            signal, held = _arrivals.shown(self, Stamps(state.key, state.episode), window, fresh, state.held, batch)
            state = state._replace(held=held)
        else:
            signal = _arrivals.as_signal(self, _arrivals.blank(self, batch), batch)
        return state, Observation(signal, window.age_ms, fresh)

    def advance(self, p: LinkParams, state: State, action: Any) -> tuple[State, Any, Record]:
        """The action computed from the last observation, then the world up to the next one.

        Args:
            p: the link.
            state: from `observe`.
            action: (*batch) int32; (factors, *batch) int32 where responses name ticks or probes are answered; or
                (d, *batch) float32 where the task tracks.

        Returns:
            The state, (*batch) float32 reward and the record.
        """
        stamps, before = Stamps(state.key, state.episode), state.now
        now = self.tempo.advance(before)
        begin, tick = before[Tempo.NOW], now[Tempo.TICK]
        onset = tick > before[Tempo.TICK]
        effect = begin + self.compute_ms + p.uplink_ms
        pending, reward, given = _answers.answer(self, state.pending, state.transit, action, before, now, effect)

        # Draws are made in a branch of their own: what a branch returns is computed once, not in all that uses it.
        (latent, z), chance = jax.lax.cond(
            onset,
            lambda: (
                self.sampler.move(state.latent, _kernels.Draws(stamps.bits(tick, Stream.LATENT)), tick),
                self._chance(p, state.transit, stamps, tick),
            ),
            lambda: ((state.latent, state.z[0]), self._no_chance(state.transit)),
        )
        older = jax.tree.map(lambda new, old: jnp.where(onset, new, old), state.z[:2], state.z[1:])
        values = (z, *older)
        pending = _answers.begin(self, pending, z, now, onset)
        transit, gone_probe = _packets.begin_probe(self, state.transit, stamps, z, tick, onset)
        transit, gone = _packets.send_step(self, p, transit, stamps, values, before, now, chance)
        state = State(now, state.episode, state.key, latent, values, pending, transit, state.held)
        return state, reward, Record(*given, z, gone, gone_probe)

    def null_action(self, batch: tuple[int, ...]) -> Any:
        """An action that does nothing, as `advance` takes it."""
        if self.task.is_tracking:
            return jnp.zeros((self.task.latent.num_outputs, *batch), jnp.float32)
        factors = self.num_factors()
        return jnp.zeros((factors, *batch) if factors else batch, jnp.int32)

    @property
    def _one_packet(self) -> bool:
        """Whether a tick's packet is all that is ever sent, so that its chance can be drawn at the tick's onset."""
        return self.clock.frame_ms is None and self.task.probes is None

    def _chance(self, p: LinkParams, transit: Transit, stamps: Stamps, tick: Any) -> Any:
        return _packets.chance(self, p, transit, stamps, tick) if self._one_packet else ()

    def _no_chance(self, transit: Transit) -> Any:
        return _kernel.Draws(transit.link.busy_us, transit.link.bad, transit.link.bad) if self._one_packet else ()

    def num_factors(self) -> int:
        """Factors of the action: 0 for a plain symbol or a tracked value."""
        if self.task.is_tracking:
            return 0
        factors = 1 + (self.task.reply == "named") + (self.task.probes is not None)
        return 0 if factors == 1 else factors

    @cached_property
    def action_sizes(self) -> tuple[int, ...]:
        """Sizes of the action's factors: the symbol, the tick named, the probe's answer; empty when tracking."""
        if self.task.is_tracking:
            return ()
        sizes = [self.task.num_symbols]
        if self.task.reply == "named":
            sizes.append(self.task.ticks_nameable)
        if self.task.probes is not None:
            sizes.append(self.task.num_answers + 1)
        return tuple(sizes)

    @cached_property
    def distortion(self) -> np.ndarray:
        """(A, A) float32 severity."""
        return np.asarray(self.task.distortion, dtype=np.float32)
