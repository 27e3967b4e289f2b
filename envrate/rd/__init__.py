"""Rate-distortion functions with certificates. Rates are in bits per source letter."""

from envrate.rd._profile import ProfileRate, profile_rate
from envrate.rd._types import Bracket, RDPoint

__all__ = ["Bracket", "ProfileRate", "profile_rate", "RDPoint"]
