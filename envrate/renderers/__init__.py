"""Renderers: how a latent is shown. Importing this package imports jax."""

from envrate.renderers._audio import Audio
from envrate.renderers._base import Legend, Renderer, SignalSpec
from envrate.renderers._proprio import Proprio
from envrate.renderers._screen import Screen
from envrate.renderers._symbols import Symbols
from envrate.renderers._video import Video

__all__ = ["Audio", "Legend", "Proprio", "Renderer", "Screen", "SignalSpec", "Symbols", "Video"]
