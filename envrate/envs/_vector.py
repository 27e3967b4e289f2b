"""The native vector environment: a batch of environments in one compiled step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envrate import _checks, _counters
from envrate.envs import _arrivals, _docs, _render, _spaces
from envrate.envs._core import Core
from envrate.envs._settings import NUM_TICKS, Settings, fresh_seed

Observation = dict[str, NDArray[Any]]
MODES = {mode.value: mode for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)}


class EnvRateVectorEnv(gym.vector.VectorEnv[Observation, Any, Any]):
    """`num_envs` environments of one task, modality and link.

    `gym.make_vec(id, num_envs=n, vectorization_mode="vector_entry_point")` makes them.

    All episodes have the same length, so all environments reset together. In NEXT_STEP mode the step after the last
    one resets: it ignores the action, pays nothing and emits no response. In SAME_STEP mode the last step itself
    returns the first observation of the next episode, and `info` holds `final_obs` and `final_info`.

    Args:
        num_envs: environments.
        task: a `Task`, its dict or a preset's name.
        modality: a renderer, its dict or its kind.
        link: a `Link`, its dict, a standard link's name, or None for the ideal one.
        num_ticks: ticks that an episode scores.
        compute_ms: the agent's own time, a constant.
        autoreset_mode: "NextStep" or "SameStep", or Gymnasium's enum.
        max_episode_steps: an episode's length in micro-turns, in place of `num_ticks`.
        render_mode: None, "rgb_array", or "ansi" for symbols.
    """

    metadata: dict[str, Any] = {
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 5,
    }

    def __init__(
        self,
        num_envs: int = 1,
        task: Any = "alert",
        modality: Any = "symbols",
        *,
        link: Any = None,
        num_ticks: int = NUM_TICKS,
        compute_ms: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Builds the environments; the first reset compiles them."""
        self.num_envs = _checks.integer("num_envs", num_envs, 1, 2**24)
        mode = autoreset_mode.value if isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        self._same_step = MODES[_checks.choice("autoreset_mode", mode, MODES)] is AutoresetMode.SAME_STEP
        self._settings = Settings(
            task,
            modality,
            link,
            num_ticks=num_ticks,
            compute_ms=compute_ms,
            batch=(self.num_envs,),
            recording=False,
            max_steps=max_episode_steps,
        )
        self.single_observation_space = _spaces.observation_space(self.core)
        self.single_action_space = _spaces.action_space(self.core)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = _render.checked_mode(render_mode, self.core)
        self.metadata = _render.metadata(self.core) | {"autoreset_mode": MODES[mode]}
        self.__doc__ = _docs.page(self.core)
        self._key: NDArray[np.uint32] | None = None
        self._episode, self._step = -1, 0
        self._state: Any = None
        self._seen: Observation = {}
        self._nobody = np.zeros(self.num_envs, bool)
        self._everybody = np.ones(self.num_envs, bool)

    @property
    def core(self) -> Core:
        """The pure functions behind these environments."""
        return self._settings.core

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode in every environment.

        Args:
            seed: one integer >= 0, which environments tell apart by their number; or a sequence of one seed per
                environment, each as the single environment of that seed. None goes on with the next episode.
            options: {"link": ...} changes the link from this episode on.
        """
        if seed is None and self._key is None:
            seed = fresh_seed()
        if seed is not None:
            key = _counters.keys(seed, self.num_envs)
            super().reset(seed=int(np.atleast_1d(seed)[0]))
            self._key, self._episode = key, -1
        self._settings.take_options(options)
        return self._begin(), {}

    def _begin(self) -> Observation:
        assert self._key is not None
        self._episode += 1
        self._step = 0
        self._state, observation, _ = self._settings.stepper.reset(self._settings.vector, self._key, self._episode)
        self._seen = _batch_first(observation)
        return self._seen

    def step(self, actions: Any) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One micro-turn of every environment."""
        if self._state is None:
            raise ValueError("step: no episode was begun; call reset() first")
        given = _spaces.checked_actions(self.core, actions, self.num_envs)
        if self._step >= self.core.clock.num_steps:
            return self._begin(), np.zeros(self.num_envs, np.float32), self._nobody.copy(), self._nobody.copy(), {}
        settings = self._settings
        self._state, observation, reward, _ = settings.stepper.step(settings.vector, self._state, given)
        self._step += 1
        self._seen = _batch_first(observation)
        if self._step < self.core.clock.num_steps:
            return self._seen, reward, self._nobody.copy(), self._nobody.copy(), {}
        info: dict[str, Any] = {}
        if self._same_step:
            info = {
                "final_obs": self._split(self._seen),
                "_final_obs": self._everybody.copy(),
                "final_info": {},
                "_final_info": self._everybody.copy(),
            }
            self._begin()
        return self._seen, reward, self._nobody.copy(), self._everybody.copy(), info

    def _split(self, observation: Observation) -> NDArray[Any]:
        """(num_envs,) object array of single observations, as SyncVectorEnv gives them."""
        final = np.empty(self.num_envs, dtype=object)
        for i in range(self.num_envs):
            final[i] = {name: np.array(value[i]) for name, value in observation.items()}
        return final

    def render(self) -> tuple[Any, ...] | None:
        """The last observation of each environment as a picture or as text."""
        if self.render_mode is None:
            return None
        now = self._step * self.core.clock.turn_ms
        single = ({name: value[i] for name, value in self._seen.items()} for i in range(self.num_envs))
        return tuple(_render.render(self.core, self.render_mode, seen, now) for seen in single)


def _batch_first(observation: Any) -> Observation:
    """The observation as a dict of views with the batch as the leading axis."""
    return {name: _arrivals.batch_first(value, np) for name, value in observation._asdict().items()}
