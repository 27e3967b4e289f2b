"""Rate-distortion functions with certificates. Rates are in bits per source letter."""

from envrate.rd import estimators
from envrate.rd._blahut_arimoto import blahut_arimoto
from envrate.rd._causal import (
    causal_binary_markov,
    causal_gauss_markov,
    causal_gauss_markov_vector,
    causal_ornstein_uhlenbeck,
)
from envrate.rd._closed_forms import circulant, erasure, hamming, weighted_binary
from envrate.rd._curve import RDCurve, curve
from envrate.rd._entropy_rate import entropy_rate, hidden_markov_entropy_rate
from envrate.rd._gaussian import GaussianAgreement, gaussian, gaussian_agreement, gaussian_vector
from envrate.rd._gaussian_process import gaussian_process
from envrate.rd._markov import block_rate, markov
from envrate.rd._markov_profile import MarkovProfile
from envrate.rd._profile import ProfileRate, profile_rate
from envrate.rd._remote import binary_wyner_ziv, conditional, remote, remote_gaussian
from envrate.rd._types import Bracket, RDPoint

__all__ = [
    "binary_wyner_ziv",
    "blahut_arimoto",
    "block_rate",
    "Bracket",
    "causal_binary_markov",
    "causal_gauss_markov",
    "causal_gauss_markov_vector",
    "causal_ornstein_uhlenbeck",
    "circulant",
    "conditional",
    "curve",
    "entropy_rate",
    "erasure",
    "estimators",
    "gaussian",
    "gaussian_agreement",
    "gaussian_process",
    "gaussian_vector",
    "GaussianAgreement",
    "hamming",
    "hidden_markov_entropy_rate",
    "markov",
    "MarkovProfile",
    "profile_rate",
    "ProfileRate",
    "RDCurve",
    "RDPoint",
    "remote",
    "remote_gaussian",
    "weighted_binary",
]
