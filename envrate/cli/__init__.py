"""The command line. One module per group of commands; each is light to import and does its work inside."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `envrate`: an error of the user's making is one line on stderr and exit status 2."""
    import typer

    from envrate.cli._app import app

    # Typer 0.2x carries its own copy of click, so the base class is found through what Typer exports.
    click_error: Any = typer.BadParameter.__mro__[2]
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = app(given or ["--help"], prog_name="envrate", standalone_mode=False)
    except click_error as error:
        context = getattr(error, "ctx", None)
        status = _fail(f"{context.command_path if context else 'envrate'}: {error.format_message()}")
    except typer.Abort:
        status = 130
    except (ValueError, OSError, ImportError) as error:
        status = _fail(f"envrate: {error}")
    raise SystemExit(status if isinstance(status, int) else 0)


def _fail(message: str) -> int:
    sys.stderr.write(" ".join(message.split()) + "\n")
    return 2


__all__ = ["main"]
