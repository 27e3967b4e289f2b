"""Scores of a trace: what got through, what it cost, and why the rest did not."""

from envrate.scorers._tally import Tally, tally

__all__ = ["Tally", "tally"]
