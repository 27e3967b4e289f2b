from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from matplotlib.image import imread

from envrate import tasks
from envrate.cli import _preview_files
from envrate.cli._preview import preview
from envrate.renderers import Symbols, Video
from envrate.renderers._stretch import stretch


def test_files_of_sound_and_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    preview("alert", modality="symbols,audio", seconds=2.0, out=tmp_path, seed=1, as_json=True)
    document = json.loads(capfd.readouterr().out)
    assert [Path(f).name for f in document["files"]] == ["alert-symbols.txt", "alert-audio.wav", "alert.png"]
    sound, rate = soundfile.read(tmp_path / "alert-audio.wav")
    assert rate == 16000 and len(sound) == 32000 and 0.02 < sound.std() < 0.2
    z = _preview_files.latent(tasks.get("alert"), 2.0, 1)
    said = (tmp_path / "alert-symbols.txt").read_text(encoding="utf-8").split("\n")
    assert said[:4] == [f"{500 * i} ms: state {k}" for i, k in enumerate(z)]
    assert imread(tmp_path / "alert.png").ndim == 3


def test_films_and_strips(tmp_path: Path) -> None:
    task = tasks.get("track")
    z = _preview_files.latent(task, 1.0, 0)
    assert z.shape == (5, 1)
    shown = stretch(task, Video(height=32, width=32), z, 0)
    assert shown.signal.shape == (10, 32, 32, 3) and shown.end_ms.tolist() == list(range(100, 1001, 100))
    film, strip = _preview_files.write(task, shown, tmp_path)
    assert film.suffix in (".mp4", ".gif") and film.stat().st_size > 500
    assert imread(strip).shape == (256, 8 * 256, 4)
    tokens = stretch(task, Symbols(), z, 0)
    assert np.allclose(tokens.signal, z)


def test_bad_options_are_refused(tmp_path: Path) -> None:
    for options in ({"modality": "smell"}, {"seconds": 0.1}):
        with pytest.raises(ValueError, match="--modality|--seconds"):
            preview(
                "alert",
                **({"modality": "symbols", "seconds": 2.0, "out": tmp_path, "seed": 0, "as_json": False} | options),
            )
