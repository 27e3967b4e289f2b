"""Scores of a trace: what got through, what it cost, and why the rest did not."""

from envrate.scorers._credited import CreditedRate, classes_for
from envrate.scorers._frontier import Frontier, Point, frontier
from envrate.scorers._profile import Profile, profile
from envrate.scorers._tally import Tally, tally

__all__ = ["CreditedRate", "Frontier", "Point", "Profile", "Tally", "classes_for", "frontier", "profile", "tally"]
