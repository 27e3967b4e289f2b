"""Strict settings for the whole suite, and what several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

# Before jax is first imported: silent promotions of type or rank are errors here.
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")

import pytest

#: Folder with oracle files and other benchmarks' sample runs. Tests that need it are skipped where it is absent.
SHARED = Path(os.environ.get("ENVRATE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder `data` of oracle values and sample files, or a skip that says why."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no oracle data at {folder}; set ENVRATE_SHARED to the folder that holds it")
    return folder
