"""Perceivers: from signals back to the latent. One reference per modality with nothing learned, and pretrained ones."""

from envrate.agents.perceivers._perceiver import Perceiver
from envrate.agents.perceivers._pretrained import ScreenReader, VoiceActivity

__all__ = ["Perceiver", "ScreenReader", "VoiceActivity"]
