"""Environments: a pure core, Gymnasium faces and the rollout. Importing this package imports jax and gymnasium."""

from envrate.envs._core import Core, Observation, Record, State
from envrate.envs._rollout import rollout

__all__ = ["Core", "Observation", "Record", "State", "rollout"]
