"""A screen: an application with a table, windows behind it, a notification that tells the latent, a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate._spec import tagged
from envrate.channels import _codec_kernels, _codecs
from envrate.renderers import _cells, _font, _shapes, _timing
from envrate.renderers import _screen_text as words
from envrate.renderers._base import Legend, SignalSpec
from envrate.renderers._frames import Frames

if TYPE_CHECKING:
    from envrate.task import Task

Array = jax.Array

#: The cursor, tip first: 1 is its body, 2 its edge.
CURSOR = np.array(
    [
        [2, 0, 0, 0, 0],
        [2, 2, 0, 0, 0],
        [2, 1, 2, 0, 0],
        [2, 1, 1, 2, 0],
        [2, 1, 1, 1, 2],
        [2, 1, 1, 2, 2],
        [2, 2, 1, 2, 0],
        [0, 0, 2, 2, 0],
    ],
    dtype=np.int32,
)
#: Heads of the table's columns, and the cells of one set of them.
HEAD, COLUMN = " NAME   USE PORT", 18
#: Names of the fields that show a Gaussian latent's outputs.
FIELDS = "XYZUVW"


@tagged("renderer", "screen")
@dataclass(frozen=True)
class Screen(Frames):
    """RGB screen shots in a 3 x 5 pixel font.

    A notification shows the latent: a text and an icon per state, or a signed number per output of a Gaussian latent.
    Nuisance: theme, places and titles of windows, the corner of the notification, the rows of a scrolling table, a
    clock, a moving cursor that may cover anything.

    Args:
        height: pixels, at least 54.
        width: pixels, at least 56.
        capture_ms: time between pictures; None is the micro-turn.
        codec: "raw" or a `Picture`; "auto" is settled by `for_link`.
    """

    height: int = 96
    width: int = 128
    capture_ms: int | None = None
    codec: Any = "raw"

    ladder: ClassVar = _codecs.PICTURE_LADDER
    raw_bits: ClassVar = _codecs.PIXEL_BITS

    def __post_init__(self) -> None:
        """Checks every field."""
        _checks.integer("height", self.height, 54, 4096, "pixels")
        _checks.integer("width", self.width, 56, 4096, "pixels")
        self._check_frames()

    @property
    def kind(self) -> str:
        """The modality."""
        return "screen"

    def numbers(self, task: Task) -> tuple[int, int]:
        """A picture's height and width."""
        return self.height, self.width

    def window(self, task: Task) -> int:
        """One picture."""
        return 1

    def signal(self, task: Task) -> SignalSpec:
        """(height, width, 3) uint8; raises ValueError for more outputs than a notification has lines."""
        if _timing.num_outputs(task) > len(FIELDS):
            raise ValueError(f"screen: expected at most {len(FIELDS)} outputs, got {_timing.num_outputs(task)}")
        return SignalSpec((self.height, self.width, 3), "uint8", 0, 255, 0, holds=True)

    def legend(self, task: Task) -> Legend:
        """The notification of each state, or the field of each output."""
        packet = f"a picture of {self.width} x {self.height} pixels of a desktop; what counts is the notification"
        question = "a yellow question mark on a dark panel"
        if _timing.is_gaussian(task):
            meanings = tuple(
                f"the field {name} of the notification, in standard deviations of {sd:.3g}"
                for name, sd in zip(FIELDS, _timing.scale_of(task.latent), strict=False)
            )
            return Legend(packet, meanings, question)
        meanings = tuple(f'the notification "{words.notice(k)}"' for k in range(task.latent.num_states))
        return Legend(packet, meanings, question)

    def init(self, task: Task, key: Array) -> tuple[()]:
        """No state."""
        return ()

    def capture(self, task: Task, state: tuple[()], z0: Array, z1: Array, key: Array) -> tuple[tuple[()], Array]:
        """A picture is taken at the end of its frame: the payload is the latent then."""
        return (), _timing.shown(z1)

    def render(self, task: Task, payload: Array, end_ms: Array, probe: Array, episode_key: Array, key: Array) -> Array:
        """The picture; a probe is a question mark on a dark panel."""
        draw = _timing.uniforms(jax.random.fold_in(episode_key, 0), 24)
        salt = jax.random.bits(jax.random.fold_in(episode_key, 1), (), jnp.uint32)
        rows, columns = self.height // _font.CELL_HEIGHT, self.width // _font.CELL_WIDTH
        grid = _desktop(rows, columns, draw[0:2], end_ms)
        back = _back_window(max(4, rows // 2), max(8, columns // 2), draw[2:4], salt)
        grid = _placed(grid, back, draw[4:6], rows - 1, columns)
        main = _main_window(max(6, rows - 4), max(10, 3 * columns // 4), draw[6:10], salt, end_ms)
        grid = _placed(grid, main, draw[10:12], rows - 1, columns)
        note = _notification(task, payload, draw[12])
        # In a corner, at most one cell from the edges.
        corner = jnp.floor(2.0 * draw[13:15]) + 0.12 * (draw[15:17] - 0.5)
        grid = _placed(grid, note, jnp.clip(corner, 0.0, 0.999), rows - 1, columns)
        themes = words.themes()
        palette = jnp.asarray(themes)[jnp.floor(draw[17] * len(themes)).astype(jnp.int32)]
        pixels = _cells.raster(grid, palette)
        below, right = self.height - pixels.shape[0], self.width - pixels.shape[1]
        pixels = jnp.pad(pixels, ((0, below), (0, right), (0, 0)), mode="edge")
        pixels = _with_cursor(pixels, draw[18:22], end_ms)
        question = jnp.asarray(_shapes.question(self.height, self.width)).astype(jnp.uint8)
        pixels = jnp.where(probe, question, pixels)
        if self.codec == "raw":
            return pixels
        return jnp.round(_codec_kernels.through(self.codec, pixels.astype(jnp.float32))).astype(jnp.uint8)


def _placed(grid: Array, block: Array, where: Array, rows: int, columns: int) -> Array:
    """The block laid at a place drawn by two uniforms within (rows, columns)."""
    row = jnp.floor(where[0] * (rows - block.shape[0] + 1)).astype(jnp.int32)
    column = jnp.floor(where[1] * (columns - block.shape[1] + 1)).astype(jnp.int32)
    return _cells.lay(grid, block, row, column)


def _hash(salt: Array, number: Array) -> Array:
    """A uint32 that mixes the two; constants of MurmurHash3's finaliser."""
    h = salt ^ (number.astype(jnp.uint32) * np.uint32(0x9E3779B1))
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def _desktop(rows: int, columns: int, draw: Array, end_ms: Array) -> Array:
    """The desk with two columns of icons and the bar with its clock at the bottom."""
    desk = _cells.cells(np.zeros((rows - 1, columns), np.int32), words.MUTED, words.DESK)
    icons = [_font.INDEX[name] for name in ("disk", "mail", "gear", "bell")]
    for i, icon in enumerate(icons):
        if 2 * i + 1 < rows - 1:
            desk = desk.at[2 * i + 1, 1].set(
                icon | words.BAR_TEXT << _cells.INK_SHIFT | words.BAR << _cells.PAPER_SHIFT
            )
    seconds = (end_ms // 1000) + jnp.floor(3600.0 * draw[0]).astype(jnp.int32)
    clock = jnp.concatenate(
        [
            _cells.digits(seconds // 60 % 60, 2),
            jnp.full((1,), _font.INDEX[":"], jnp.int32),
            _cells.digits(seconds % 60, 2),
        ]
    )
    start = [_cells.text(" START ", words.TITLE_TEXT, words.TITLE), _cells.text("", 0, words.BAR, columns - 13)]
    bar = _cells.line([*start, _cells.cells(clock, words.BAR_TEXT, words.BAR)], columns, words.BAR)
    return jnp.concatenate([desk, bar[None]])


def _title(draw: Array, width: int, ink: int, paper: int) -> Array:
    name = jnp.asarray(words.titles())[jnp.floor(draw * len(words.TITLES)).astype(jnp.int32)]
    fill = _cells.text("", 0, paper, max(0, width - words.TITLE_WIDTH - 3))
    parts = [_cells.piece("gear", ink, paper), _cells.text(" ", ink, paper), _cells.cells(name, ink, paper), fill]
    return _cells.line([*parts, _cells.piece("close", ink, paper)], width, paper)


def _entry(number: Array, salt: Array, width: int, ink: Any, paper: Any) -> Array:
    """(width,) cells of one row of the table: a mark, a name, a percentage, a number; once more per `COLUMN`."""
    each = [_item(number + 10_007 * i, salt, ink, paper) for i in range(max(1, width // COLUMN))]
    return _cells.line([part for parts in each for part in parts], width, paper)


def _item(number: Array, salt: Array, ink: Any, paper: Any) -> list[Array]:
    """`COLUMN` cells in parts."""
    h = _hash(salt, number)
    name = jnp.asarray(words.words())[(h % np.uint32(len(words.WORDS))).astype(jnp.int32)]
    share = _cells.digits(((h >> np.uint32(8)) % np.uint32(100)).astype(jnp.int32), 2)
    state = jnp.where((h >> np.uint32(20)) & np.uint32(3) == 0, words.AMBER, words.GREEN)
    port = _cells.digits(((h >> np.uint32(12)) % np.uint32(10000)).astype(jnp.int32), 4)
    return [
        _cells.piece("dot", state, paper),
        _cells.cells(name, ink, paper),
        _cells.text(" ", ink, paper),
        _cells.cells(share, ink, paper),
        _cells.text("% ", words.MUTED, paper),
        _cells.cells(port, words.MUTED, paper),
        _cells.text("  ", words.MUTED, paper),
    ]


def _main_window(height: int, width: int, draw: Array, salt: Array, end_ms: Array) -> Array:
    """The application: a title, a head, a table that scrolls, one row of it selected."""
    top = [
        _title(draw[0], width, words.TITLE_TEXT, words.TITLE),
        _cells.text(f"{HEAD:{COLUMN}}" * max(1, width // COLUMN), words.MUTED, words.BAR, width),
    ]
    speed = 0.4 + 2.0 * draw[1]
    first = jnp.floor(speed * end_ms.astype(jnp.float32) / 1000.0).astype(jnp.int32)
    chosen = jnp.floor(draw[2] * (height - 2)).astype(jnp.int32)
    numbers = first + jnp.arange(height - 2)
    paper = jnp.where(jnp.arange(height - 2) == chosen, words.ACCENT, words.WINDOW)
    rows = jax.vmap(lambda n, p: _entry(n, salt, width, words.TEXT, p))(numbers, paper)
    return jnp.concatenate([jnp.stack(top), rows])


def _back_window(height: int, width: int, draw: Array, salt: Array) -> Array:
    """A window behind, dimmed, with rows of its own."""
    numbers = 1000 + jnp.arange(height - 1)
    rows = jax.vmap(lambda n: _entry(n, salt, width, words.MUTED, words.BACK))(numbers)
    return jnp.concatenate([_title(draw[0], width, words.MUTED, words.BAR)[None], rows])


def _notification(task: Task, payload: Array, draw: Array) -> Array:
    """What the latent says: a framed note of a title line and a line per field."""
    paper, ink = words.TOAST, words.TOAST_TEXT
    width = words.TEXT_WIDTH + 4
    if _timing.is_gaussian(task):
        lines = []
        for i in range(payload.shape[0]):
            # Four digits left of nothing: the scale is in standard deviations, so that any variance can be read.
            value = _cells.signed(payload[i] / _timing.scale_of(task.latent)[i])
            label = _cells.text(f" {FIELDS[i]} ", words.BLUE, paper)
            lines.append(_cells.line([label, _cells.cells(value, ink, paper)], width, paper))
    else:
        glyph, colour = (jnp.asarray(a)[payload] for a in words.icons(task.latent.num_states))
        notice = jnp.asarray(words.notices(task.latent.num_states))[payload]
        parts = [_cells.text(" ", ink, paper), _cells.cells(glyph[None], colour[None], paper)]
        lines = [_cells.line([*parts, _cells.text(" ", ink, paper), _cells.cells(notice, ink, paper)], width, paper)]
    sender = jnp.asarray(words.words())[jnp.floor(draw * len(words.WORDS)).astype(jnp.int32)]
    name = [_cells.text(" ", 0, words.ACCENT), _cells.cells(sender, words.TEXT, words.ACCENT)]
    head = _cells.line([*name, _cells.text("", 0, words.ACCENT, width - 9)], width - 1, words.ACCENT)
    head = jnp.concatenate([head, _cells.piece("close", words.TEXT, words.ACCENT)])
    return jnp.stack([head, *lines])


def _with_cursor(pixels: Array, draw: Array, end_ms: Array) -> Array:
    """The picture with the cursor over it."""
    height, width, _ = pixels.shape
    time = end_ms.astype(jnp.float32) / 1000.0
    wave = 0.5 + 0.5 * jnp.sin(np.float32(2 * np.pi) * ((0.1 + 0.2 * draw[:2]) * time + draw[2:4]))
    row = jnp.floor(wave[0] * (height - CURSOR.shape[0])).astype(jnp.int32)
    column = jnp.floor(wave[1] * (width - CURSOR.shape[1])).astype(jnp.int32)
    under = jax.lax.dynamic_slice(pixels, (row, column, jnp.int32(0)), (*CURSOR.shape, 3))
    body = np.where(CURSOR == 1, 255, 0).astype(np.uint8)[..., None]
    over = jnp.where((CURSOR > 0)[..., None], body, under)
    return jax.lax.dynamic_update_slice(pixels, over, (row, column, jnp.int32(0)))
