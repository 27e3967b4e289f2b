"""One stretch of a latent in every modality, as files to look at and to listen to."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate.renderers._stretch import Stretch
from envrate.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]

#: Pictures in a strip and in a row of the figure.
STRIP = 8
#: What the vertical axes of the figure are in.
UNITS = {"audio": ", kHz", "proprio": ", rad"}
#: Tokens that fit side by side into the figure.
MOST_ACROSS = 24
#: Pictures are enlarged to at least this height in films and strips.
FILM_HEIGHT = 256


def latent(task: Task, seconds: float, seed: int) -> Any:
    """The latent at ticks 0, 1 ...: (ticks,) states or (ticks, d) values, as environment 0 of that seed draws it."""
    import jax.numpy as jnp

    from envrate import _counters
    from envrate.latents import _kernels

    count = max(1, int(np.ceil(1000 * seconds / task.tick_ms)))
    kernel = _kernels.kernel(task.latent, task.tick_ms)
    key = tuple(jnp.asarray(word[0]) for word in _counters.keys(seed, 1))

    def bits(tick: int) -> Any:
        return _kernels.Draws(_counters.block(key, jnp.int32(tick), jnp.int32(0), _counters.Stream.LATENT))

    state, z = kernel.start(bits(0), count)
    found = [z]
    for tick in range(1, count):
        state, z = kernel.move(state, bits(tick), jnp.int32(tick))
        found.append(z)
    if isinstance(z, dict):
        raise ValueError("task: a preview expected a latent of states or of values, got both")
    return np.stack([np.asarray(z) for z in found])


def _large(picture: Array) -> Array:
    zoom = max(1, -(-FILM_HEIGHT // picture.shape[0]))
    return np.repeat(np.repeat(picture, zoom, 0), zoom, 1)


def pictures(task: Task, stretch: Stretch) -> list[Array]:
    """Every packet as a picture, for modalities that have pictures."""
    if stretch.renderer.kind in ("video", "screen"):
        return [_large(picture) for picture in stretch.signal]
    return [stretch.renderer.picture(task, signal[None]) for signal in stretch.signal]


def write(task: Task, stretch: Stretch, folder: Path) -> list[Path]:
    """The files of one modality: sound as .wav; pictures as a film and a strip; tokens as text."""
    kind = stretch.renderer.kind
    stem = folder / f"{task.name}-{kind}"
    if kind == "symbols":
        said = [
            f"{t} ms: {stretch.renderer.text(task, s)}" for t, s in zip(stretch.end_ms, stretch.signal, strict=True)
        ]
        stem.with_suffix(".txt").write_text("\n".join(said) + "\n", encoding="utf-8")
        return [stem.with_suffix(".txt")]
    if kind == "audio":
        import soundfile

        from envrate.channels._codecs import AUDIO_RATE

        soundfile.write(stem.with_suffix(".wav"), stretch.signal.ravel(), AUDIO_RATE)
        return [stem.with_suffix(".wav")]
    drawn = pictures(task, stretch)
    rate = 1000.0 / (stretch.end_ms[1] - stretch.end_ms[0]) if len(stretch.end_ms) > 1 else 5.0
    pick = np.linspace(0, len(drawn) - 1, min(STRIP, len(drawn))).astype(int)
    import matplotlib.image

    strip = stem.with_suffix(".png")
    matplotlib.image.imsave(strip, np.concatenate([drawn[i] for i in pick], axis=1))
    return [_film(drawn, rate, stem), strip]


def _film(drawn: list[Array], rate: float, stem: Path) -> Path:
    """An .mp4 where imageio-ffmpeg is installed, else a .gif."""
    try:
        import imageio_ffmpeg
    except ImportError:
        from PIL import Image

        images = [Image.fromarray(picture) for picture in drawn]
        path = stem.with_suffix(".gif")
        images[0].save(path, save_all=True, append_images=images[1:], duration=int(1000 / rate), loop=0)
        return path
    path = stem.with_suffix(".mp4")
    height, width = drawn[0].shape[:2]
    with warnings.catch_warnings():
        # JAX warns of any fork in its process; this child becomes ffmpeg at once and touches nothing of JAX's.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=rate, macro_block_size=2, quality=8)
        writer.send(None)
        for picture in drawn:
            writer.send(np.ascontiguousarray(picture))
        writer.close()
    return path


def figure(task: Task, z: Array, stretches: list[Stretch], path: Path) -> Path:
    """The latent and every modality above one time axis."""
    from matplotlib.figure import Figure

    heights = [1.0, *(0.6 if s.renderer.kind == "symbols" else 1.4 for s in stretches)]
    drawn = Figure(figsize=(11, 1.1 * sum(heights)), layout="constrained")
    axes = drawn.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    seconds = len(z) * task.tick_ms / 1000
    times = np.arange(len(z) + 1) * task.tick_ms / 1000
    for column in z.reshape(len(z), -1).T:
        axes[0].step(times, np.append(column, column[-1]), where="post")
    axes[0].set_ylabel("latent")
    for ax, stretch in zip(axes[1:], stretches, strict=True):
        _row(ax, task, stretch, seconds)
        ax.set_ylabel(stretch.renderer.kind + UNITS.get(stretch.renderer.kind, ""))
    drawn.align_ylabels(axes)
    for ax in axes:
        ax.set_xlim(0, seconds)
        for t in times[1:-1]:
            ax.axvline(t, color="black", alpha=0.15, linewidth=0.6)
    axes[-1].set_xlabel("time, s")
    drawn.suptitle(f"{task.name}: one latent, demand {task.demand().mid:.3g} bits/s in every modality")
    drawn.savefig(path, dpi=120)
    return path


def _row(ax: Axes, task: Task, stretch: Stretch, seconds: float) -> None:
    kind, ends = stretch.renderer.kind, stretch.end_ms / 1000
    if kind == "symbols":
        for t, s in zip(ends, stretch.signal, strict=True):
            said = stretch.renderer.text(task, s).removeprefix("state ").removeprefix("value ").replace(" ", "\n")
            # Numbers are wider than a tick of the figure; upright they have room.
            turn = 90 if len(ends) > MOST_ACROSS else 0
            ax.text(t + task.tick_ms / 2000, 0.5, said, ha="center", va="center", fontsize=7, rotation=turn)
        ax.set_ylim(0, 1)
        ax.set_yticks([])
    elif kind == "audio":
        from envrate.renderers._audio import spectrogram

        ax.imshow(spectrogram(stretch.signal.ravel(), 160, 1200), extent=(0, seconds, 0, 4), aspect="auto")
        ax.set_yticks([0, 2, 4])
    elif kind == "proprio":
        step = (stretch.end_ms[1] - stretch.end_ms[0]) / 1000 / stretch.signal.shape[1]
        flat = stretch.signal.reshape(-1, *stretch.signal.shape[2:])
        at = (np.arange(len(flat)) + 1) * step
        for joint, position in enumerate(flat[:, 0].T):
            ax.plot(at, position, linewidth=1, label=f"joint {joint + 1}")
        twin = ax.twinx()
        twin.plot(at, flat[:, 2, 0], color="black", linewidth=0.7, alpha=0.6)
        twin.set_ylabel("torque of 1, Nm")
        ax.legend(loc="best", ncols=3, fontsize=7, framealpha=0.8)
    else:
        wide = seconds / STRIP
        for i in range(STRIP):
            at = int(np.argmin(np.abs(ends - (i + 0.5) * wide)))
            ax.imshow(stretch.signal[at], extent=(i * wide, (i + 0.96) * wide, 0, 1), aspect="auto")
        ax.set_ylim(0, 1)
        ax.set_yticks([])
