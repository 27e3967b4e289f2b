"""The Gymnasium environment: one environment, stepped from Python, that keeps what a Trace needs."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import numpy as np
from numpy.typing import NDArray

from envrate import _counters
from envrate.envs import _docs, _record, _render, _spaces
from envrate.envs._core import Core
from envrate.envs._settings import NUM_TICKS, Settings, fresh_seed
from envrate.envs._trace_log import TraceLog
from envrate.trace import Trace

Observation = dict[str, NDArray[Any]]


class EnvRateEnv(gym.Env[Observation, Any]):
    """One task in one modality behind a link. `gym.make(id)` makes it; its instance's `__doc__` describes the id.

    Args:
        task: a `Task`, its dict or a preset's name.
        modality: a renderer, its dict or its kind.
        link: a `Link`, its dict, a standard link's name, or None for the ideal one.
        num_ticks: ticks that an episode scores; it goes on for a horizon more and is then truncated.
        compute_ms: the agent's own time, a constant.
        render_mode: None, "rgb_array", or "ansi" for symbols.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 5}

    def __init__(
        self,
        task: Any = "alert",
        modality: Any = "symbols",
        *,
        link: Any = None,
        num_ticks: int = NUM_TICKS,
        compute_ms: int = 0,
        render_mode: str | None = None,
    ) -> None:
        """Builds the environment; the first reset compiles it."""
        self._settings = Settings(
            task, modality, link, num_ticks=num_ticks, compute_ms=compute_ms, batch=(), recording=True
        )
        self.observation_space: gym.spaces.Space[Any] = _spaces.observation_space(self.core)
        self.action_space = _spaces.action_space(self.core)
        self.render_mode = _render.checked_mode(render_mode, self.core)
        self.metadata = _render.metadata(self.core)
        self.__doc__ = _docs.page(self.core)
        self._key: NDArray[np.uint32] | None = None
        self._episode = -1
        self._step = 0
        self._state: Any = None
        self._seen: Observation = {}
        self._log = TraceLog()

    @property
    def core(self) -> Core:
        """The pure functions behind this environment."""
        return self._settings.core

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; a seed starts its sequence anew, else the next episode of the sequence follows.

        Args:
            seed: an integer >= 0; None at the first reset draws one, which `np_random_seed` then tells.
            options: {"link": ...} changes the link from this episode on.
        """
        if seed is None and self._key is None:
            seed = fresh_seed()
        super().reset(seed=seed)
        self._settings.take_options(options)
        self._keep_episode()
        if seed is not None:
            self._key, self._episode = _counters.keys(seed, 1)[:, 0], -1
        self._episode += 1
        assert self._key is not None
        stepper = self._settings.stepper
        self._state, observation, z = stepper.reset(self._settings.vector, self._key, self._episode)
        self._step = 0
        self._log.begin(z)
        self._seen = _as_dict(observation)
        return self._seen, {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One micro-turn; never terminates, truncates when the episode's length is reached."""
        if self._state is None or self._step >= self.core.clock.num_steps:
            raise ValueError("step: the episode is over or not begun; call reset() first")
        given = _spaces.checked_action(self.core, action)
        stepper = self._settings.stepper
        self._state, observation, reward, record = stepper.step(self._settings.vector, self._state, given)
        self._step += 1
        self._log.add(record)
        self._seen = _as_dict(observation)
        return self._seen, float(reward), False, self._step >= self.core.clock.num_steps, {}

    def render(self) -> Any:
        """The last observation as a picture (H, W, 3) uint8, or as text."""
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode; give one to gym.make")
            return None
        now = self._step * self.core.clock.turn_ms
        return _render.render(self.core, self.render_mode, self._seen, now)

    def _keep_episode(self) -> None:
        """Lays the running episode aside for the trace."""
        if self._state is not None and self._step:
            self._log.end(self.core, self._settings.link, self._arrivals(), self._step)

    def _arrivals(self) -> tuple[Any, Any]:
        transit = self._state.transit
        arrivals: tuple[Any, Any] = jax.tree.map(np.asarray, (transit.arrival, transit.probe_arrival))
        return arrivals

    def trace(self, agent: str = "") -> Trace:
        """All that has happened since the environment was made, the running episode included.

        Args:
            agent: a name for the header.

        Raises:
            ValueError: no step was taken yet.
        """
        parts, duration = self._log.finished(), self._log.duration_ms
        if self._state is not None and self._step:
            parts = [*parts, self._log.part(self.core, self._settings.link, self._arrivals(), self._step)]
            duration += self._step * self.core.clock.turn_ms
        if not parts:
            raise ValueError("trace: no step was taken yet")
        return _record.trace(
            self.core,
            parts,
            link=self._settings.link,
            modality=self.core.renderer.kind,
            agent=agent,
            seed=self.np_random_seed,
            duration_ms=duration,
        )


def _as_dict(observation: Any) -> Observation:
    return {"signal": observation.signal, "age_ms": observation.age_ms, "fresh": observation.fresh}
