"""Rate-distortion functions with certificates. Rates are in bits per source letter."""

from envrate.rd._blahut_arimoto import blahut_arimoto
from envrate.rd._entropy_rate import entropy_rate, hidden_markov_entropy_rate
from envrate.rd._markov import block_rate, markov
from envrate.rd._markov_profile import MarkovProfile
from envrate.rd._profile import ProfileRate, profile_rate
from envrate.rd._types import Bracket, RDPoint

__all__ = [
    "blahut_arimoto",
    "block_rate",
    "Bracket",
    "entropy_rate",
    "hidden_markov_entropy_rate",
    "markov",
    "MarkovProfile",
    "profile_rate",
    "ProfileRate",
    "RDPoint",
]
