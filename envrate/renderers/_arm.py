"""The arm: its MuJoCo model, one control period in MJX and in C, its picture. MuJoCo is imported when first used."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import ctypes.util
import io
import os
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import jax
import jax.custom_batching
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = jax.Array
FloatArray = NDArray[np.float64]

JOINTS = 3
#: What to do where there is no graphics library.
INSTALL = "install one (Debian: libegl1 libgl1-mesa-dri, or libosmesa6)"
#: Proportional gains of the position controller, Nm per rad; the joints' damping is in the model.
GAINS = np.array([60.0, 40.0, 20.0])


def import_mujoco() -> Any:
    """The module `mujoco`; a headless machine draws with EGL, else OSMesa, else has physics only."""
    if sys.platform == "linux" and "MUJOCO_GL" not in os.environ and not os.environ.get("DISPLAY"):
        os.environ["MUJOCO_GL"] = _headless()
    try:
        import mujoco
    except ModuleNotFoundError as error:
        raise ImportError("proprio: it needs MuJoCo; pip install mujoco mujoco-mjx") from error
    except (AttributeError, OSError) as error:  # what PyOpenGL makes of a library that is not there
        raise ImportError(
            f"proprio: MUJOCO_GL={os.environ.get('MUJOCO_GL')}, but that graphics library does not load; {INSTALL}, or "
            "set MUJOCO_GL=disable: everything but the arm's picture works without"
        ) from error
    return mujoco


def _headless() -> str:
    """The first graphics library that loads; MuJoCo cannot be imported at all with one that does not."""
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        name = ctypes.util.find_library(library)
        with contextlib.suppress(OSError):
            if name and ctypes.CDLL(name):
                return backend
    return "disable"


def import_mjx() -> Any:
    """The module `mujoco.mjx`, whose notice about a missing optional backend is kept off the standard output."""
    import_mujoco()
    with contextlib.redirect_stdout(io.StringIO()):
        from mujoco import mjx
    return mjx


@lru_cache
def model(period_us: int, bare: bool = False) -> Any:
    """The C model with a control period in microseconds; `bare` leaves out all that has no mass: it cannot be drawn."""
    mujoco = import_mujoco()
    text = resources.files("envrate.renderers").joinpath("assets/arm.xml").read_text(encoding="utf-8")
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.discardvisual = bare
    loaded = spec.compile()
    loaded.opt.timestep = period_us / 1e6
    return loaded


@lru_cache
def _mjx_parts(period_us: int) -> tuple[Any, Any]:
    """(MJX model, its empty data); concrete even when asked for inside a trace."""
    mjx, bare = import_mjx(), model(period_us, bare=True)
    with _lenient(), jax.ensure_compile_time_eval():
        return mjx.put_model(bare), mjx.make_data(bare)


@contextlib.contextmanager
def _lenient() -> Any:
    """MJX mixes types and ranks; a caller's strict settings are for his own code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def step_mjx(period_us: int, q: Array, v: Array, reference: Array, load: Array) -> tuple[Array, Array, Array]:
    """One control period from joint positions and velocities (3,) float32.

    Args:
        period_us: the control period.
        q: positions, rad.
        v: velocities, rad/s.
        reference: positions asked of the controller, rad.
        load: outside torque, Nm.

    Returns:
        Positions and velocities after the period, and the motors' torque during it.
    """
    mjx = import_mjx()
    arm, data = _mjx_parts(period_us)
    torque = jnp.asarray(GAINS, jnp.float32) * (reference - q)
    # `mjx.step` without the stages that an arm with nothing to touch, no tendon and no outside wrench has no use for:
    # a third less time per period, and half the tracing. The motors' torques are forces on the joints.
    with _lenient():
        data = data.replace(qpos=q, qvel=v)
        for stage in (mjx.kinematics, mjx.com_pos, mjx.crb, mjx.com_vel, mjx.rne, mjx.passive):
            data = stage(arm, data)
        data = mjx.euler(arm, data.replace(qfrc_smooth=data.qfrc_passive - data.qfrc_bias + torque + load))
    return data.qpos.astype(jnp.float32), data.qvel.astype(jnp.float32), torque


def simulate_c(period_us: int, q: FloatArray, v: FloatArray, references: FloatArray, loads: FloatArray) -> FloatArray:
    """(n, 3, 3) position, velocity and torque of n control periods in C MuJoCo; `references`, `loads` are (n, 3)."""
    mujoco = import_mujoco()
    arm, data, lock = _c_parts(period_us)
    out = np.empty((len(references), 3, JOINTS))
    with lock:
        mujoco.mj_resetData(arm, data)
        data.qpos[:], data.qvel[:] = q, v
        for i, (reference, load) in enumerate(zip(references, loads, strict=True)):
            data.ctrl[:] = GAINS * (reference - data.qpos)
            data.qfrc_applied[:] = load
            torque = data.ctrl.copy()
            mujoco.mj_step(arm, data)
            out[i] = data.qpos, data.qvel, torque
    return out


@lru_cache
def _c_parts(period_us: int) -> tuple[Any, Any, threading.Lock]:
    """(model, data, lock): data are large to make, and one thread at a time may step them."""
    arm = model(period_us, bare=True)
    return arm, import_mujoco().MjData(arm), threading.Lock()


@lru_cache
def frame(period_us: int) -> Callable[..., Array]:
    """A frame of control periods: (q, v, references, loads) -> (n, 3, 3) position, velocity and torque after each.

    `q` and `v` are (3,) float32, `references` and `loads` (n, 3). A single arm moves in C MuJoCo, which has nothing to
    compile; a batch of arms, made by `vmap`, moves in MJX. The two agree to float32's rounding.
    """

    @jax.custom_batching.custom_vmap
    def run(q: Array, v: Array, references: Array, loads: Array) -> Array:
        form = jax.eval_shape(lambda: jnp.zeros((references.shape[0], 3, JOINTS), jnp.float32))
        out: Array = jax.pure_callback(in_c, form, q, v, references, loads)
        return out

    def in_c(*given: Any) -> NDArray[np.float32]:
        return simulate_c(period_us, *(np.asarray(array, np.float64) for array in given)).astype(np.float32)

    def in_mjx(q: Array, v: Array, references: Array, loads: Array) -> Array:
        def period(carry: tuple[Array, Array], given: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
            q, v, torque = step_mjx(period_us, *carry, *given)
            return (q, v), jnp.stack([q, v, torque])

        return jax.lax.scan(period, (q, v), (references, loads))[1]

    @run.def_vmap
    def batched(size: int, is_batched: Any, *given: Array) -> tuple[Array, bool]:
        return jax.vmap(in_mjx, in_axes=tuple(0 if one else None for one in is_batched))(*given), True

    return run  # type: ignore[no-any-return]


_PAINTERS: dict[tuple[int, int], Any] = {}


def picture(q: FloatArray, height: int = 240, width: int = 320) -> NDArray[np.uint8]:
    """(height, width, 3) the arm at positions q, from above.

    Raises:
        RuntimeError: no graphics library; says what to install.
    """
    mujoco = import_mujoco()
    arm = model(20000)
    try:
        if (height, width) not in _PAINTERS:
            _PAINTERS[height, width] = mujoco.Renderer(arm, height, width)
            atexit.register(_PAINTERS[height, width].close)  # OSMesa's is gone when the interpreter ends
        painter = _PAINTERS[height, width]
        data = mujoco.MjData(arm)
        data.qpos[:] = q
        mujoco.mj_forward(arm, data)
        painter.update_scene(data, camera="above")
        return np.asarray(painter.render())
    except Exception as error:  # the bindings raise whatever the missing library makes of them
        raise RuntimeError(
            f"proprio: MuJoCo cannot draw without a graphics library; {INSTALL} and set MUJOCO_GL=egl or osmesa; "
            f"everything but this picture works without ({error})"
        ) from error
