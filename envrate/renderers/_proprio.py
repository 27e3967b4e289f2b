"""Proprioception: what the joints of an arm feel while the latent moves it or pulls at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate._spec import tagged
from envrate.channels import _codec_kernels, _codecs
from envrate.renderers import _arm, _timing
from envrate.renderers._base import Legend, SignalSpec
from envrate.renderers._frames import Frames, two_turns

if TYPE_CHECKING:
    from envrate.task import Task

Array = jax.Array

#: Control period aimed at; a frame holds a whole number of periods.
PERIOD_MS = 20
#: Radians per standard deviation of a Gaussian value; torque between neighbouring states, Nm.
RADIANS, LOAD_STEP = 0.45, 1.5
#: Sensor noise and calibration error of position (rad), velocity (rad/s) and torque (Nm).
NOISE = np.array([0.002, 0.02, 0.05], np.float32)
OFFSET = np.array([0.008, 0.01, 0.05], np.float32)
#: Full scale of the three; a tap is a torque that no load reaches.
SCALE = np.array([3.2, 40.0, 100.0], np.float32)
TAP = 60.0


class ArmState(NamedTuple):
    """The arm between frames."""

    q: Array  # (3,) rad
    v: Array  # (3,) rad/s
    time: Array  # () float32 s
    draw: Array  # (12,) uniforms: rates and phases of the motion that is not the latent's


@tagged("renderer", "proprio")
@dataclass(frozen=True)
class Proprio(Frames):
    """Position, velocity and torque of three joints in MuJoCo (MJX inside a rollout), once per control period.

    Each output of a Gaussian latent is the reference of a joint's controller (at most three). A latent with states
    puts a load on the shoulder. Nuisance: slow motion of the references that the latent leaves free, sensor noise,
    calibration errors.

    Args:
        capture_ms: length of a frame; None is the micro-turn.
        codec: "raw" or `UniformSteps`; "auto" is settled by `for_link`.
    """

    capture_ms: int | None = None
    codec: Any = "raw"

    ladder: ClassVar = _codecs.PROPRIO_LADDER
    raw_bits: ClassVar = 32

    def __post_init__(self) -> None:
        """Checks the fields."""
        self._check_frames()

    @property
    def kind(self) -> str:
        """The modality."""
        return "proprio"

    def periods(self, task: Task) -> int:
        """Control periods in a frame."""
        return max(1, round(self.frame_ms(task) / PERIOD_MS))

    def period_us(self, task: Task) -> int:
        """The control period, microseconds."""
        return 1000 * self.frame_ms(task) // self.periods(task)

    def numbers(self, task: Task) -> int:
        """Numbers in a frame."""
        return self.periods(task) * 3 * _arm.JOINTS

    def window(self, task: Task) -> int:
        """Frames of at least two micro-turns."""
        return two_turns(task, self.frame_ms(task))

    def signal(self, task: Task) -> SignalSpec:
        """(periods, 3, joints) float32: rad, rad/s, Nm; raises ValueError for more outputs than there are joints."""
        if _timing.num_outputs(task) > _arm.JOINTS:
            outputs = _timing.num_outputs(task)
            raise ValueError(f"proprio: expected at most {_arm.JOINTS} outputs, one per joint, got {outputs}")
        top = float(SCALE.max())
        return SignalSpec((self.periods(task), 3, _arm.JOINTS), "float32", -top, top, 0.0)

    def legend(self, task: Task) -> Legend:
        """The load of each state, or the joint of each output."""
        packet = (
            f"{self.periods(task)} readings of an arm, {self.period_us(task) / 1000:g} ms apart: position (rad), "
            f"velocity (rad/s) and torque (Nm) of {_arm.JOINTS} joints"
        )
        question = f"all joints at rest with torques of {TAP:.0f} Nm to and fro"
        if _timing.is_gaussian(task):
            meanings = tuple(
                f"the reference of joint {i + 1}: {RADIANS} rad per standard deviation of {sd:.3g}"
                for i, sd in enumerate(_timing.scale_of(task.latent))
            )
            return Legend(packet, meanings, question)
        middle = (task.latent.num_states - 1) / 2
        meanings = tuple(
            f"a load of {LOAD_STEP * (k - middle):+.2f} Nm on joint 1" for k in range(task.latent.num_states)
        )
        return Legend(packet, meanings, question)

    def init(self, task: Task, key: Array) -> ArmState:
        """The arm at rest at a drawn posture."""
        draw = _timing.uniforms(key, 12)
        return ArmState(_free(draw, jnp.zeros(1))[0], jnp.zeros(_arm.JOINTS), jnp.float32(0.0), draw)

    def capture(self, task: Task, state: ArmState, z0: Array, z1: Array, key: Array) -> tuple[ArmState, Array]:
        """Moves the arm through the frame; the payload is what its sensors would say without error."""
        count, period = self.periods(task), self.period_us(task)
        times = state.time + np.float32(period / 1e6) * jnp.arange(count + 1, dtype=jnp.float32)
        # A frame that spans an onset: the new value comes in half way.
        z = jnp.where((np.arange(count) >= count // 2)[:, None], _flat(z1)[None], _flat(z0)[None])
        references, loads = commands(task, state.draw, times[:-1], z)
        moved = _arm.frame(period)(state.q, state.v, references, loads)
        return ArmState(moved[-1, 0], moved[-1, 1], times[-1], state.draw), moved

    def render(self, task: Task, payload: Array, end_ms: Array, probe: Array, episode_key: Array, key: Array) -> Array:
        """The frame with the sensors' errors; a probe is a tap: torque to and fro, with the arm at rest."""
        bias = _timing.normals(_timing.fold(episode_key, 0), 3 * _arm.JOINTS).reshape(3, _arm.JOINTS)
        noise = _timing.normals(key, payload.size).reshape(payload.shape)
        shown = payload + (OFFSET[:, None] * bias)[None] + NOISE[None, :, None] * noise
        tap = np.zeros(payload.shape, np.float32)
        tap[:, 2] = TAP * (-1.0) ** np.arange(payload.shape[0])[:, None]
        shown = jnp.where(probe, tap + NOISE[None, :, None] * noise, shown)
        scale = SCALE[None, :, None]
        return _codec_kernels.through(self.codec, jnp.clip(shown / scale, -1.0, 1.0)) * scale

    def picture(self, task: Task, signal: Any, *, height: int = 240, width: int = 320) -> Any:
        """(height, width, 3) the arm at the newest position in an observation's signal (W, periods, 3, joints)."""
        return _arm.picture(np.asarray(signal, dtype=np.float64)[-1, -1, 0], height, width)


def commands(task: Task, draw: Array, times: Array, z: Array) -> tuple[Array, Array]:
    """(references, loads), each (n, 3) float32, that values (n, d) of the latent stand for at times (n,) in seconds."""
    free = _free(draw, times)
    if _timing.is_gaussian(task):
        outputs = _timing.num_outputs(task)
        if outputs > _arm.JOINTS:
            raise ValueError(f"proprio: expected at most {_arm.JOINTS} outputs, one per joint, got {outputs}")
        asked = RADIANS * z / jnp.asarray(_timing.scale_of(task.latent))[None]
        return jnp.concatenate([asked, free[:, outputs:]], axis=1), jnp.zeros_like(free)
    middle = (task.latent.num_states - 1) / 2
    torque = np.float32(LOAD_STEP) * (z.astype(jnp.float32) - np.float32(middle))
    return free, jnp.concatenate([torque, jnp.zeros((len(z), _arm.JOINTS - 1), jnp.float32)], axis=1)


def _flat(z: Any) -> Array:
    """(d,) a value of the latent; (1,) the state of a chain."""
    return jnp.atleast_1d(_timing.shown(z))


def _free(draw: Array, times: Array) -> Array:
    """(n, 3) references that the latent leaves free: a slow wave per joint."""
    rate, phase = 0.05 + 0.15 * draw[:3], draw[3:6]
    waves = jnp.sin(np.float32(2 * np.pi) * (rate[None] * times[:, None] + phase[None]))
    return (0.2 + 0.5 * draw[6:9])[None] * waves
