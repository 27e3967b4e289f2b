"""Counting outcomes while they happen: a Tally in memory that does not grow with the length of the run.

A tick is settled once everything about it is known; then three counts go up, over (first response and its latency),
(when silence ended) and (when something about it was delivered). They hold the outcome at every allowed latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate.channels import _kernel
from envrate.envs import _answers, _rings
from envrate.envs._clock import Tempo
from envrate.envs._core import Core, Record, State
from envrate.scorers import _tally
from envrate.scorers._outcome import DONT_KNOW, NOT_PROBED, RIGHT, WRONG
from envrate.scorers._tally import SILENT_KINDS, Tally
from envrate.trace import Header


class Counts(NamedTuple):
    """Ticks that are not settled, in rings of Q slots, and the counts of those that are."""

    letter: Any  # (Q, num_envs) int32, index into the task's table
    value: Any  # (Q, num_envs) int32, the first response, 0 none
    level: Any  # (Q, num_envs) int32, its latency in micro-turns, rounded up
    answer: Any  # (Q, num_envs) int32, the first answer to the probe + 1, 0 none
    last: Any  # (num_envs,) int32, the newest tick that has a response
    responses: Any  # (num_envs,) int32 that name a tick
    answered: Any  # (num_envs,) int32 ticks that have a response
    no_tick: Any  # (num_envs,) int32 responses that name none
    histogram: Any  # (blocks * bins,) int32


@dataclass(frozen=True)
class Counter:
    """The static side of the counts of one rollout.

    Args:
        core: made with `keep=True`, so that arrivals are still known when a tick is settled.
        num_envs: environments, an episode each.
    """

    core: Core
    num_envs: int

    @property
    def levels(self) -> int:
        """L, allowed latencies 0, m ... up to the horizon."""
        return self.core.clock.horizon_ms // self.core.clock.turn_ms + 1

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Bins of the three counts: by response, by end of silence, by delivery."""
        a, levels = self.core.task.num_symbols, self.levels + 1
        return a * a * levels, a * 4 * levels, a * 4 * levels

    @property
    def _settle_ms(self) -> int:
        """From a tick's onset until its outcome at every latency, and its probe's, can no longer change."""
        return self.core.settle_ms

    @property
    def _slots(self) -> int:
        return self.core.clock.slots(self._settle_ms, self.core.clock.tick_ms) + 1

    def _blocks(self) -> tuple[int, int, bool]:
        """(environments per block, ticks per block, whether blocks are whole episodes), as for a trace's tally."""
        a, ticks = self.core.task.num_symbols, self.core.clock.num_ticks
        most = int(np.clip(_tally.MAX_CELLS // (a * (a + SILENT_KINDS) * self.levels), 64, _tally.MAX_BLOCKS))
        if self.num_envs >= _tally.MIN_EPISODES:
            return -(-self.num_envs // most), ticks, True
        return 1, max(1, -(-ticks * self.num_envs // max(1, most - self.num_envs))), False

    def _num_blocks(self) -> tuple[int, int]:
        """Blocks of environments, blocks of ticks in each."""
        envs, ticks, _ = self._blocks()
        return -(-self.num_envs // envs), -(-self.core.clock.num_ticks // ticks)

    # -- traced -------------------------------------------------------------------------------------------------

    def start(self, state: State) -> Counts:
        """Tick 0 has begun."""
        zeros = jnp.zeros((self._slots, self.num_envs), jnp.int32)
        none = jnp.zeros(self.num_envs, jnp.int32)
        groups, stretches = self._num_blocks()
        histogram = jnp.zeros(groups * stretches * sum(self._sizes), jnp.int32)
        counts = Counts(zeros, zeros, zeros, zeros, none - 1, none, none, none, histogram)
        return self._begin(counts, state.z[0], jnp.int32(0), jnp.bool_(True))

    def _begin(self, counts: Counts, z: Any, tick: Any, onset: Any) -> Counts:
        slot = tick % self._slots
        letter = self.core.letters.letter(z).astype(jnp.int32)
        rows = {"letter": letter, "value": 0, "level": 0, "answer": 0}
        return counts._replace(
            **{
                name: _rings.write(ring, slot, jnp.where(onset, row, _rings.read(ring, slot)))
                for name, row in rows.items()
                for ring in [getattr(counts, name)]
            }
        )

    def step(self, counts: Counts, uplink_ms: Any, state: State, record: Record) -> Counts:
        """The counts after a step that led to `state`."""
        clock, slots = self.core.clock, self._slots
        end = state.now[Tempo.NOW]
        begin = end - clock.turn_ms
        current = clock.newest_tick(begin)
        held = (current - (current - jnp.arange(slots)) % slots)[:, None]
        responds = record.value > 0
        named = responds & (record.tick >= 0)
        here = (held == record.tick[None]) & named[None] & (held >= 0)
        latency = begin + self.core.compute_ms + uplink_ms - record.tick * clock.tick_ms
        level = jnp.clip((latency + clock.turn_ms - 1) // clock.turn_ms, 0, self.levels)
        first = here & (counts.value == 0)
        old = named & ~here.any(axis=0)  # a tick settled long ago: only the newest seen can be named so late
        counts = counts._replace(
            value=jnp.where(first, record.value[None].astype(jnp.int32), counts.value),
            level=jnp.where(first, level[None], counts.level),
            last=jnp.maximum(counts.last, jnp.where(named, record.tick, -1)),
            responses=counts.responses + named.astype(jnp.int32),
            answered=counts.answered + (first.any(axis=0) | (old & (record.tick > counts.last))).astype(jnp.int32),
            no_tick=counts.no_tick + (responds & ~named).astype(jnp.int32),
        )
        if self.core.task.probes is not None:
            asked = (held == record.probe_tick[None]) & (record.probe_tick >= 0)[None] & (counts.answer == 0)
            counts = counts._replace(answer=jnp.where(asked, record.probe_value[None], counts.answer))
        settled = (end - 1 - self._settle_ms) // clock.tick_ms
        due = (settled >= 0) & (settled < clock.num_ticks) & (settled * clock.tick_ms + self._settle_ms >= begin)
        histogram = jax.lax.cond(due, lambda: self._settle(counts, state, settled), lambda: counts.histogram)
        tick = clock.newest_tick(end)
        return self._begin(counts._replace(histogram=histogram), record.z, tick, tick * clock.tick_ms > begin)

    def flush(self, counts: Counts, state: State) -> Counts:
        """Settles the scored ticks that the episode's end has overtaken."""
        clock = self.core.clock
        first = max(0, (clock.end_ms - 1 - self._settle_ms) // clock.tick_ms + 1)
        for_ticks = jnp.arange(first, clock.num_ticks)

        def one(counts: Counts, tick: Any) -> tuple[Counts, None]:
            return counts._replace(histogram=self._settle(counts, state, tick)), None

        return jax.lax.scan(one, counts, for_ticks)[0]

    def _settle(self, counts: Counts, state: State, tick: Any) -> Any:
        """The histogram with one tick of every environment added."""
        slot = tick % self._slots
        letter, value = _rings.read(counts.letter, slot), _rings.read(counts.value, slot)
        required = _answers.lookup(np.asarray(self.core.task.table, np.int32), letter).astype(jnp.int32)
        last = self.levels
        first = jnp.where(value > 0, _rings.read(counts.level, slot), last)
        heard = jnp.minimum(self._delivered(state, tick), first)
        probe = self._probe(counts, state, tick, slot, letter)
        a, (size, silent, _) = self.core.task.num_symbols, self._sizes
        by_response = (first * a + required) * a + value
        by_silence = size + (first * a + required) * 4 + probe
        by_delivery = size + silent + (heard * a + required) * 4 + probe
        envs, ticks, _ = self._blocks()
        groups, stretches = self._num_blocks()
        block = (np.arange(self.num_envs, dtype=np.int32) // np.int32(envs)) * np.int32(stretches)
        base = (jnp.asarray(block) + tick // ticks) * np.int32(sum(self._sizes))
        cells = jnp.concatenate([base + by_response, base + by_silence, base + by_delivery])
        return counts.histogram.at[cells].add(1, mode="promise_in_bounds")

    def _observed(self, arrival: Any) -> Any:
        turn = self.core.clock.turn_ms
        return (jnp.minimum(arrival, _kernel.NEVER - turn) + turn - 1) // turn * turn

    def _delivered(self, state: State, tick: Any) -> Any:
        """The level at which the first packet about `tick` had been shown; L where none had."""
        clock, slots = self.core.clock, self.core.slots
        if clock.frame_ms is None:
            arrival = _rings.read(state.transit.arrival, tick % slots)
        else:  # frames whose capture ends in (onset, onset + T]
            first = tick * clock.tick_ms // clock.packet_ms + 1
            rows = [
                jnp.where(clock.tick_of_packet(n) == tick, _rings.read(state.transit.arrival, n % slots), _kernel.NEVER)
                for j in range(-(-clock.tick_ms // clock.packet_ms))
                for n in [first + j]
            ]
            arrival = jnp.stack(rows).min(axis=0)
        late = self._observed(arrival) - tick * clock.tick_ms
        level = (late + clock.turn_ms - 1) // clock.turn_ms
        return jnp.where(arrival < _kernel.NEVER, jnp.minimum(level, self.levels), self.levels)

    def _probe(self, counts: Counts, state: State, tick: Any, slot: Any, letter: Any) -> Any:
        """What came of the tick's probe, as a tally counts it."""
        if self.core.task.probes is None:
            return jnp.zeros(self.num_envs, jnp.int32)
        arrival = _rings.read(state.transit.probe_arrival, tick % self.core.probe_slots)
        seen = (arrival < _kernel.NEVER) & (self._observed(arrival) < self.core.clock.end_ms)
        answer = _rings.read(counts.answer, slot)
        right = _answers.lookup(np.asarray(self.core.task.question, np.int32), letter).astype(jnp.int32) + 1
        told = jnp.where(answer == 0, DONT_KNOW, jnp.where(answer == right, RIGHT, WRONG))
        return jnp.where(seen, told, NOT_PROBED)

    # -- host ---------------------------------------------------------------------------------------------------

    def tally(self, counts: Counts, header: Header) -> Tally:
        """The Tally of a run that is over."""
        a, levels = self.core.task.num_symbols, self.levels
        groups, stretches = self._num_blocks()
        blocks = groups * stretches
        flat = np.asarray(counts.histogram, dtype=np.int64).reshape(blocks, -1)
        size, silent, _ = self._sizes
        responses = flat[:, :size].reshape(blocks, levels + 1, a, a)
        ended = flat[:, size : size + silent].reshape(blocks, levels + 1, a, 4)
        heard = flat[:, size + silent :].reshape(blocks, levels + 1, a, 4)
        # At level l: first <= l answered; else silent, and unheard where heard > l.
        answered = responses[..., 1:].cumsum(axis=1)[:, :levels]
        still_silent = ended[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        unheard = heard[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        envs, _, by_episode = self._blocks()
        total = self.num_envs * -(-self.core.clock.end_ms // self.core.clock.tick_ms)
        return Tally(
            header=header,
            latencies_ms=np.arange(levels, dtype=np.int64) * self.core.clock.turn_ms,
            counts=(np.concatenate([still_silent - unheard, unheard, answered], axis=-1),),
            episode=np.repeat(np.arange(0, self.num_envs, envs), stretches),
            by_episode=by_episode,
            link_log=True,
            censored=total - self.num_envs * self.core.clock.num_ticks,
            redundant=int(np.asarray(counts.responses, np.int64).sum() - np.asarray(counts.answered, np.int64).sum()),
            premature=0,
            no_tick=int(np.asarray(counts.no_tick, np.int64).sum()),
        )
