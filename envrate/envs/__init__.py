"""Environments: a pure core, Gymnasium faces and the rollout. Importing this package imports jax and gymnasium."""

from envrate._ids import IDS, pairs
from envrate.envs._core import Core, Observation, Record, State
from envrate.envs._env import EnvRateEnv
from envrate.envs._functional import EnvRateFuncEnv
from envrate.envs._rollout import rollout
from envrate.envs._vector import EnvRateVectorEnv

__all__ = [
    "IDS",
    "Core",
    "EnvRateEnv",
    "EnvRateFuncEnv",
    "EnvRateVectorEnv",
    "Observation",
    "Record",
    "State",
    "pairs",
    "rollout",
]
