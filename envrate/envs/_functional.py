"""The functional face: Gymnasium's experimental `FuncEnv` over the core of one environment."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from gymnasium.experimental.functional import FuncEnv

from envrate.channels._kernel import LinkParams
from envrate.envs import _build, _spaces
from envrate.envs._clock import Tempo
from envrate.envs._core import Observation, State
from envrate.envs._settings import NUM_TICKS


class FunctionalState(NamedTuple):
    """The core's state with what its last step showed and paid."""

    core: State
    observation: Observation
    reward: Any  # () float32


class EnvRateFuncEnv(FuncEnv[FunctionalState, Any, Any, Any, Any, Any, LinkParams]):
    """One environment as pure functions; parameters are the link's numbers.

    `rng` is a JAX key at `initial`, from which all that is random follows; later keys are not used. The environment
    never terminates: stop after `num_steps`.

    Args:
        task: a `Task`, its dict or a preset's name.
        modality: a renderer, its dict or its kind.
        link: a `Link`, its dict, a standard link's name, or None for the ideal one.
        num_ticks: ticks that an episode scores.
        compute_ms: the agent's own time, a constant.
    """

    def __init__(
        self,
        task: Any = "alert",
        modality: Any = "symbols",
        *,
        link: Any = None,
        num_ticks: int = NUM_TICKS,
        compute_ms: int = 0,
    ) -> None:
        """Builds the core."""
        self.core = _build.make_core(task, modality, link, num_ticks=num_ticks, compute_ms=compute_ms)
        super().__init__()
        self.observation_space = _spaces.observation_space(self.core)
        self.action_space = _spaces.action_space(self.core)

    @property
    def num_steps(self) -> int:
        """Micro-turns of an episode."""
        return self.core.clock.num_steps

    def get_default_params(self, **kwargs: Any) -> LinkParams:
        """The numbers of the link that the environment was made with."""
        return self.core.params

    def initial(self, rng: Any, params: LinkParams | None = None) -> FunctionalState:
        """The state at reset."""
        words = jax.random.key_data(rng) if jnp.issubdtype(rng.dtype, jax.dtypes.prng_key) else rng
        state, observation = self.core.init(params or self.core.params, (words[0], words[1]), jnp.int32(0))
        return FunctionalState(state, observation, jnp.float32(0))

    def transition(
        self, state: FunctionalState, action: Any, rng: Any, params: LinkParams | None = None
    ) -> FunctionalState:
        """One micro-turn."""
        given = jnp.asarray(action)
        if not self.core.task.is_tracking:
            given = given.astype(jnp.int32)
        moved, observation, reward, _ = self.core.step(params or self.core.params, state.core, given)
        return FunctionalState(moved, observation, reward)

    def observation(self, state: FunctionalState, rng: Any, params: LinkParams | None = None) -> Any:
        """What the last step showed, as a dict."""
        return state.observation._asdict()

    def reward(
        self,
        state: FunctionalState,
        action: Any,
        next_state: FunctionalState,
        rng: Any,
        params: LinkParams | None = None,
    ) -> Any:
        """What the step from `state` to `next_state` paid."""
        return next_state.reward

    def terminal(self, state: FunctionalState, rng: Any, params: LinkParams | None = None) -> Any:
        """Never; see `truncated`."""
        return jnp.bool_(False)

    def truncated(self, state: FunctionalState) -> Any:
        """Whether the episode's length is reached."""
        return state.core.now[Tempo.STEP] >= self.num_steps
