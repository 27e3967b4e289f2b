"""Laws of the hidden latent z_t."""

from envrate.latents._continuous import ContinuousMarkovChain
from envrate.latents._gaussian_process import GaussianProcess
from envrate.latents._laws import MarkovChain
from envrate.latents._product import Product

__all__ = ["ContinuousMarkovChain", "GaussianProcess", "MarkovChain", "Product"]
