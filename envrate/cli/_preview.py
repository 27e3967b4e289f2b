"""`envrate preview`: what a task looks and sounds like in each modality."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from envrate.cli._app import app, emit_json, only_json


@app.command()
def preview(
    task: Annotated[str, typer.Argument(help="A preset task.")],
    modality: Annotated[str, typer.Option("--modality", help="Modalities, separated by commas, or 'all'.")] = "all",
    seconds: Annotated[float, typer.Option("--seconds", help="Length of the stretch.")] = 8.0,
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path("preview"),
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Writes sound, films, strips of pictures, and one figure that aligns the same latent in all modalities."""
    with only_json(as_json):
        from envrate import _checks, _ids, tasks
        from envrate.cli import _preview_files
        from envrate.envs._build import as_renderer
        from envrate.renderers._stretch import stretch

        what = tasks.get(task)
        _checks.number("--seconds", seconds, what.tick_ms / 1000, 600.0)
        names = list(_ids.MODALITIES) if modality == "all" else modality.split(",")
        renderers = [as_renderer(_checks.choice("--modality", name.strip(), _ids.MODALITIES)) for name in names]
        out.mkdir(parents=True, exist_ok=True)
        z = _preview_files.latent(what, seconds, seed)
        stretches, files, left_out = [], [], {}
        for renderer in renderers:
            stretches.append(stretch(what, renderer, z, seed))
            try:
                files += _preview_files.write(what, stretches[-1], out)
            except RuntimeError as error:  # no graphics library for the arm's picture; its signals are still shown
                left_out[renderer.kind] = str(error)
        files.append(_preview_files.figure(what, z, stretches, out / f"{what.name}.png"))
    for reason in left_out.values():
        sys.stderr.write(f"envrate: {reason}\n")
    if as_json:
        emit_json({"task": what.name, "files": [str(path) for path in files], "left_out": left_out})
        return
    for path in files:
        sys.stdout.write(f"{path}\n")
