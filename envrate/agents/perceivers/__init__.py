"""Reference perceivers: from signals back to the latent, one per modality, with nothing learned."""

from envrate.agents.perceivers._perceiver import Perceiver

__all__ = ["Perceiver"]
