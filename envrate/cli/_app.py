"""The typer application and what every command shares: JSON output, progress, errors."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="envrate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from envrate import __version__

        sys.stdout.write(f"envrate {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Task-relevant bits per second within an allowed latency."""


@contextlib.contextmanager
def only_json(enabled: bool) -> Iterator[None]:
    """While enabled, whatever a library prints to file descriptor 1 goes to stderr; print JSON after leaving it."""
    if not enabled:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def emit_json(document: Any) -> None:
    """Prints one JSON document on stdout; NaN is not JSON, so numbers that cannot be had must already be None."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def register() -> None:
    """Imports every command module; each adds its commands to `app`."""
    from envrate.cli import (  # noqa: F401
        _compare,
        _demo,
        _live,
        _preview,
        _rank,
        _rd,
        _report,
        _run,
        _score,
        _sweep,
        _tasks,
    )


register()
