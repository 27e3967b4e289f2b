"""A filter for the arm: the reference from position and torque, the load from what the torque leaves unexplained."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate.agents.perceivers._perceiver import Reader, Reading, is_gaussian
from envrate.renderers import _arm, _proprio
from envrate.task import Task


def reader(task: Task, renderer: Any) -> Reader:
    """Reader of a frame."""
    count, period = renderer.periods(task), np.float32(renderer.period_us(task) / 1e6)
    inertia = _inertia()

    def read(signal: Any, end_ms: Any) -> Reading:
        probe = jnp.abs(signal[:, 2]).min() > 0.8 * _proprio.TAP
        if is_gaussian(task):
            # torque = gain (reference - position before the period)
            before = signal[:-1, 0] if count > 1 else signal[:, 0]
            asked = before + signal[-before.shape[0] :, 2] / jnp.asarray(_arm.GAINS, jnp.float32)[None]
            asked = asked[before.shape[0] // 2 :].mean(axis=0)[: task.latent.num_outputs]
            sd = np.sqrt(np.diag(task.latent.output_covariance)).astype(np.float32)
            return Reading(asked * sd / np.float32(_proprio.RADIANS), probe, jnp.bool_(True))
        late = signal[count // 2 - (count > 1) :]
        span = max(1, late.shape[0] - 1)
        acceleration = (late[-1, 1] - late[0, 1]) / (span * period)
        mass = inertia(late[:, 0].mean(axis=0))[0]
        torque = late[1:, 2, 0].mean() if late.shape[0] > 1 else late[0, 2, 0]
        speed = late[1:, 1, 0].mean() if late.shape[0] > 1 else late[0, 1, 0]
        load = mass @ acceleration + np.float32(_damping()[0]) * speed - torque
        state = jnp.round(load / np.float32(_proprio.LOAD_STEP) + np.float32((task.latent.num_states - 1) / 2))
        state = jnp.clip(state, 0, task.latent.num_states - 1).astype(jnp.int32)
        return Reading(state, probe, jnp.bool_(True))

    return read


def _damping() -> Any:
    return _arm.model(20000).dof_damping.copy()


def _inertia() -> Any:
    """The arm's inertia matrix as a function of the joints' positions, from its links' masses."""
    arm = _arm.model(20000)
    mass, turning = arm.body_mass[2 - 1 :].copy(), arm.body_inertia[1:].copy()
    centre = arm.body_ipos[1:, 0].copy()
    reach = np.array([arm.body_pos[2, 0], arm.body_pos[3, 0]])
    about = turning.max(axis=1)  # slender links turn about an axis across them

    def centres(q: Any) -> Any:
        angle = jnp.cumsum(q)
        at = jnp.zeros(2, jnp.float32)
        out = []
        for i in range(_arm.JOINTS):
            way = jnp.stack([jnp.cos(angle[i]), jnp.sin(angle[i])])
            out.append(at + np.float32(centre[i]) * way)
            if i < len(reach):
                at = at + np.float32(reach[i]) * way
        return jnp.stack(out)

    below = np.tril(np.ones((_arm.JOINTS, _arm.JOINTS), np.float32))

    def matrix(q: Any) -> Any:
        slope = jax.jacfwd(centres)(q)  # (links, 2, joints)
        moving = jnp.einsum("l,lxi,lxj->ij", jnp.asarray(mass, jnp.float32), slope, slope)
        spinning = jnp.asarray(below.T @ (about[:, None] * below), jnp.float32)
        return moving + spinning + jnp.asarray(np.diag(arm.dof_armature), jnp.float32)

    return matrix
