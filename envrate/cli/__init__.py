"""The command line. One module per group of commands; each is light to import and does its work inside."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of `envrate`: errors of the user's making are one line on stderr and exit status 2."""
    from envrate.cli._app import app

    try:
        app(standalone_mode=True)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"envrate: {error}\n")
        raise SystemExit(2) from None


__all__ = ["main"]
