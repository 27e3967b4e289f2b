"""Entropy and mutual information from samples, in bits: estimates, never bounds."""

from envrate.rd.estimators._counts import entropy, mutual_information
from envrate.rd.estimators._ksg import ksg
from envrate.rd.estimators._neural import neural
from envrate.rd.estimators._types import Estimate

__all__ = ["Estimate", "entropy", "ksg", "mutual_information", "neural"]
