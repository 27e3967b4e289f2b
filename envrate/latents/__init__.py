"""Laws of the hidden latent z_t."""

from envrate.latents._laws import MarkovChain

__all__ = ["MarkovChain"]
