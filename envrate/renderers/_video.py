"""Video: a moving object whose shape, position or motion tells the latent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate._spec import tagged
from envrate.channels import _codec_kernels, _codecs
from envrate.renderers import _shapes, _timing
from envrate.renderers._base import Legend, SignalSpec
from envrate.renderers._frames import Frames

if TYPE_CHECKING:
    from envrate.task import Task

Array = jax.Array

#: Radius of the object; the picture's shorter half side is 1.
RADIUS = 0.3
#: A value's position: REACH tanh(z / (SPREAD sd)); one to one, and inside the picture.
REACH, SPREAD = 0.75, 2.0
#: Sides of the two lattices of random greys that the background interpolates, and their weights.
LATTICES = ((5, 0.6), (13, 0.4))
#: Camera shake: two sways and a tremor that is fresh in each frame.
SWAY, TREMOR = 0.03, 0.008
#: Number of distractor objects.
DISTRACTORS = 3


@tagged("renderer", "video")
@dataclass(frozen=True)
class Video(Frames):
    """RGB pictures of an object with a white outline over a drifting textured background.

    Nuisance: texture and colours of the background, its drift, camera shake, lighting, soft blobs that wander, the
    object's colour, its path where that does not carry the latent, and sensor noise.

    Args:
        carrier: for a latent with states: "shape", "position" (a place per state) or "motion" (a direction per
            state, from the centre, anew at each tick). A Gaussian latent moves the object: outputs are x, y, size.
        height: pixels.
        width: pixels.
        capture_ms: time between pictures; None is the micro-turn.
        codec: "raw" or a `Picture`; "auto" is settled by `for_link`.
    """

    carrier: str = "shape"
    height: int = 64
    width: int = 64
    capture_ms: int | None = None
    codec: Any = "raw"

    ladder: ClassVar = _codecs.PICTURE_LADDER
    raw_bits: ClassVar = _codecs.PIXEL_BITS

    def __post_init__(self) -> None:
        """Checks every field."""
        _checks.choice("carrier", self.carrier, ("shape", "position", "motion"))
        for name in ("height", "width"):
            _checks.integer(name, getattr(self, name), 16, 4096, "pixels")
        self._check_frames()

    @property
    def kind(self) -> str:
        """The modality."""
        return "video"

    def numbers(self, task: Task) -> tuple[int, int]:
        """A picture's height and width."""
        return self.height, self.width

    def window(self, task: Task) -> int:
        """One picture."""
        return 1

    def signal(self, task: Task) -> SignalSpec:
        """(height, width, 3) uint8; raises ValueError for more outputs or shapes than there are."""
        if _timing.num_outputs(task) > 3:
            raise ValueError(f"video: expected at most 3 outputs (x, y, size), got {_timing.num_outputs(task)}")
        _shapes.atlas(self._shapes(task))
        return SignalSpec((self.height, self.width, 3), "uint8", 0, 255, 0, holds=True)

    def legend(self, task: Task) -> Legend:
        """The shape, place or direction of each state, or what each output moves."""
        packet = f"a picture of {self.width} x {self.height} pixels; the object that counts has a white outline"
        question = "a yellow question mark on a dark panel"
        if _timing.is_gaussian(task):
            how = (
                "place right of the middle, {reach} tanh(value / {scale:.3g}) of half the shorter side",
                "place below the middle, {reach} tanh(value / {scale:.3g}) of half the shorter side",
                "size, exp(0.5 tanh(value / {scale:.3g})) times the usual",
            )
            meanings = tuple(
                "the object's " + text.format(reach=REACH, scale=SPREAD * sd)
                for text, sd in zip(how, _timing.scale_of(task.latent), strict=False)
            )
            return Legend(packet, meanings, question)
        states = task.latent.num_states
        if self.carrier == "shape":
            return Legend(packet, tuple(f"a {_shapes.name(k)}" for k in range(states)), question)
        verb = {"position": "the object stands", "motion": "the object moves from the middle"}[self.carrier]
        meanings = tuple(f"{verb} at {360 * k / states:.0f} degrees, clockwise from the right" for k in range(states))
        return Legend(packet, meanings, question)

    def _shapes(self, task: Task) -> int:
        return task.latent.num_states if self.carrier == "shape" and not _timing.is_gaussian(task) else 1

    def init(self, task: Task, key: Array) -> tuple[()]:
        """No state."""
        return ()

    def capture(self, task: Task, state: tuple[()], z0: Array, z1: Array, key: Array) -> tuple[tuple[()], Array]:
        """A picture is taken at the end of its frame: the payload is the latent then."""
        return (), _timing.shown(z1)

    def render(self, task: Task, payload: Array, end_ms: Array, probe: Array, episode_key: Array, key: Array) -> Array:
        """The picture; a probe is a question mark on a dark panel."""
        draw = _timing.uniforms(jax.random.fold_in(episode_key, 0), 48)
        fresh = jax.random.fold_in(key, 0)
        time = end_ms.astype(jnp.float32) / 1000.0
        shake = SWAY * _waves(draw[0:4], time, 1.3) + TREMOR * (
            2.0 * _timing.uniforms(jax.random.fold_in(key, 1), 2) - 1.0
        )
        side = min(self.height, self.width)
        x = (2.0 * jnp.arange(self.width, dtype=jnp.float32) + 1.0 - self.width) / side - shake[0]
        y = (2.0 * jnp.arange(self.height, dtype=jnp.float32) + 1.0 - self.height) / side - shake[1]
        scene = _background(episode_key, draw, time, x, y)
        for i in range(DISTRACTORS):
            scene = _blob(scene, draw[12 + 6 * i : 18 + 6 * i], time, x, y)
        scene = _object(self, task, scene, payload, end_ms, draw[32:40], time, x, y)
        light = 0.86 + 0.12 * _waves(draw[40:44], time, 0.5)[0]
        slope = 0.5 * (draw[44:46] - 0.5)
        shade = light * (1.0 + slope[0] * x[None, :] + slope[1] * y[:, None])
        noisy = scene * shade[:, :, None] + _noise(fresh, self.height, self.width)[:, :, None]
        shown = jnp.where(probe, jnp.asarray(_shapes.question(self.height, self.width)), jnp.clip(noisy, 0.0, 255.0))
        return jnp.round(_codec_kernels.through(self.codec, shown)).astype(jnp.uint8)


def place(renderer: Video, task: Task, payload: Array, end_ms: Array) -> tuple[Array | None, Array | None, Array | int]:
    """Where the latent puts the object: x and y (None: free to wander) and the number of its shape."""
    if _timing.is_gaussian(task):
        outputs = _timing.num_outputs(task)
        at = REACH * jnp.tanh(payload / (SPREAD * jnp.asarray(_timing.scale_of(task.latent))))
        return at[0], (at[1] if outputs > 1 else None), 0
    states = task.latent.num_states
    if renderer.carrier == "shape":
        return None, None, payload
    angle = payload.astype(jnp.float32) * np.float32(2 * np.pi / states)
    radius: Array | float = 0.6
    if renderer.carrier == "motion":
        age = (end_ms - ((end_ms - 1) // task.tick_ms) * task.tick_ms).astype(jnp.float32)
        radius = 0.1 + 0.5 * age / task.tick_ms
    return radius * jnp.cos(angle), radius * jnp.sin(angle), 0


def _waves(draw: Array, time: Array, hz: float) -> Array:
    """(2,) two slow waves of about `hz` whose rates and phases are drawn (4 uniforms), each in -1 ... 1."""
    return jnp.sin(np.float32(2 * np.pi) * (hz * (0.6 + 0.8 * draw[:2]) * time + draw[2:4]))


def _hats(position: Array, side: int) -> Array:
    """(n, side) weights of linear interpolation on a ring of `side` points."""
    distance = jnp.abs((position[:, None] - jnp.arange(side, dtype=jnp.float32)[None] + side / 2) % side - side / 2)
    return jnp.maximum(1.0 - distance, 0.0)


def _background(episode_key: Array, draw: Array, time: Array, x: Array, y: Array) -> Array:
    """(H, W, 3) a texture between two colours that drifts."""
    texture = jnp.zeros((y.shape[0], x.shape[0]), jnp.float32)
    drift = (draw[4:6] - 0.5) * 0.5 * time
    for i, (side, weight) in enumerate(LATTICES):
        # In one row: drawn in two dimensions, XLA takes three times as long for the same numbers.
        lattice = _timing.uniforms(jax.random.fold_in(episode_key, 1 + i), side * side).reshape(side, side)
        columns = _hats(((x + drift[0]) * np.float32(side / 4.0)) % side, side)
        rows = _hats(((y + drift[1]) * np.float32(side / 4.0)) % side, side)
        texture += weight * (rows @ lattice @ columns.T)
    dark, bright = (20.0 + 70.0 * draw[6:9])[None, None], (90.0 + 90.0 * draw[9:12])[None, None]
    return dark + texture[:, :, None] * (bright - dark)


def _blob(scene: Array, draw: Array, time: Array, x: Array, y: Array) -> Array:
    """The scene with a soft blob that wanders over it."""
    at = 0.9 * _waves(draw[:4], time, 0.15)
    radius = 0.12 + 0.15 * draw[4]
    square = ((x - at[0])[None, :] ** 2 + (y - at[1])[:, None] ** 2) / radius**2
    opacity = 0.7 * jnp.maximum(1.0 - square, 0.0)
    grey = 30.0 + 150.0 * draw[5]
    return scene + opacity[:, :, None] * (grey * jnp.stack([draw[0], draw[2], draw[5]])[None, None, :] - scene)


def _object(
    renderer: Video,
    task: Task,
    scene: Array,
    payload: Array,
    end_ms: Array,
    draw: Array,
    time: Array,
    x: Array,
    y: Array,
) -> Array:
    """The scene with the object over it."""
    px, py, shape = place(renderer, task, payload, end_ms)
    wander = 0.5 * _waves(draw[0:4], time, 0.2)
    px, py = wander[0] if px is None else px, wander[1] if py is None else py
    radius: Array | float = RADIUS
    if _timing.num_outputs(task) == 3:
        radius = RADIUS * jnp.exp(0.5 * jnp.tanh(payload[2] / (SPREAD * _timing.scale_of(task.latent)[2])))
    states = renderer._shapes(task)
    half = min(x.shape[0], y.shape[0]) / 2  # pixels per unit
    largest = RADIUS * (1.65 if _timing.num_outputs(task) == 3 else 1.0) * _shapes.REACH
    side = min(2 * int(np.ceil(largest * half)) + 2, *scene.shape[:2])
    # Only the square of pixels around the object is drawn, then laid on a canvas with room beyond the edges.
    left, top = (jnp.floor((p - axis[0]) * half).astype(jnp.int32) - side // 2 for p, axis in ((px, x), (py, y)))
    steps = jnp.arange(side, dtype=jnp.float32)
    u, v = (
        (axis[0] + (first.astype(jnp.float32) + steps) / half - p) / (radius * _shapes.REACH)
        for first, axis, p in ((left, x, px), (top, y, py))
    )
    distance = _distance(states, shape, u, v) * (radius * half)  # pixels
    canvas = (scene.shape[0] + 2 * side, scene.shape[1] + 2 * side)
    far = jnp.full(canvas, 1e3, jnp.float32)
    laid = jax.lax.dynamic_update_slice(far, distance, (top + side, left + side))[side:-side, side:-side]
    opacity = jnp.clip(0.5 + _shapes.OUTLINE * radius * half - laid, 0.0, 1.0)[:, :, None]
    inside = jnp.clip(0.5 - laid, 0.0, 1.0)[:, :, None]
    # A saturated colour: one channel low, one high, one between, in a drawn order.
    hue = draw[4] * 6.0 + jnp.asarray([0.0, 2.0, 4.0], jnp.float32)
    fill = (40.0 + 200.0 * jnp.clip(jnp.abs(hue % 6.0 - 3.0) - 1.0, 0.0, 1.0))[None, None]
    return scene + opacity * (245.0 + inside * (fill - 245.0) - scene)


def _distance(states: int, shape: Array | int, u: Array, v: Array) -> Array:
    """(rows, columns) signed distance to the outline of a shape, in radii; u, v are -1 ... 1 over the drawn square."""
    column, row = (jnp.floor((a + 1.0) * (_shapes.SIDE / 2)).astype(jnp.int32) for a in (u, v))
    outside = ((column < 0) | (column >= _shapes.SIDE))[None, :] | ((row < 0) | (row >= _shapes.SIDE))[:, None]
    index = (shape * _shapes.SIDE + jnp.clip(row, 0, _shapes.SIDE - 1)[:, None]) * _shapes.SIDE
    index = index + jnp.clip(column, 0, _shapes.SIDE - 1)[None, :]
    return jnp.where(outside, 1e3, jnp.asarray(_shapes.atlas(states).reshape(-1))[index])


def _noise(key: Array, height: int, width: int) -> Array:
    """(H, W) sensor noise with a standard deviation near 4, from a byte per pixel."""
    words = jax.random.bits(key, (-(-height * width // 4),), jnp.uint32)
    parts = jnp.concatenate([words & 0xFF, (words >> 8) & 0xFF, (words >> 16) & 0xFF, words >> 24])[: height * width]
    return ((parts.astype(jnp.int32) - 127).astype(jnp.float32) * np.float32(14.0 / 255.0)).reshape(height, width)
