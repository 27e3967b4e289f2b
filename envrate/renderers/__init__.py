"""Renderers: how a latent is shown. Importing this package imports jax."""

from envrate.renderers._base import Renderer, SignalSpec
from envrate.renderers._symbols import Symbols

__all__ = ["Renderer", "SignalSpec", "Symbols"]
