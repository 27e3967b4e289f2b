"""Scores of a trace: what got through, what it cost, and why the rest did not."""

from envrate.scorers._comparison import Comparison, Difference, compare
from envrate.scorers._credited import CreditedRate, classes_for
from envrate.scorers._frontier import Frontier, Point, frontier
from envrate.scorers._information import Information, information
from envrate.scorers._information_tracking import tracking_information
from envrate.scorers._latency_metrics import (
    LatencyMetrics,
    average_lagging,
    average_proportion,
    average_token_delay,
    differentiable_average_lagging,
    latency_metrics,
    length_adaptive_average_lagging,
    yet_another_average_lagging,
)
from envrate.scorers._latency_metrics_rates import (
    SelectionRates,
    achieved_bitrate,
    fitts_throughput,
    selection_rates,
    wolpaw_rate,
)
from envrate.scorers._profile import Profile, profile
from envrate.scorers._ranking import Ranked, Ranking, Transfer, rank, transfer
from envrate.scorers._ranking_pairwise import BradleyTerry, bradley_terry, wins_matrix
from envrate.scorers._references import CAUTION, ReferenceRate, reference_rates
from envrate.scorers._restraint import RestraintRow, RestraintTable, restraint_table
from envrate.scorers._retention import Retention, retention
from envrate.scorers._split import Split, SplitPoint, split
from envrate.scorers._tally import Tally, tally

__all__ = [
    "CAUTION",
    "BradleyTerry",
    "Comparison",
    "CreditedRate",
    "Difference",
    "Frontier",
    "Information",
    "LatencyMetrics",
    "Point",
    "Profile",
    "Ranked",
    "Ranking",
    "ReferenceRate",
    "RestraintRow",
    "RestraintTable",
    "Retention",
    "SelectionRates",
    "Split",
    "SplitPoint",
    "Tally",
    "Transfer",
    "achieved_bitrate",
    "average_lagging",
    "average_proportion",
    "average_token_delay",
    "bradley_terry",
    "classes_for",
    "compare",
    "differentiable_average_lagging",
    "fitts_throughput",
    "frontier",
    "information",
    "latency_metrics",
    "length_adaptive_average_lagging",
    "profile",
    "rank",
    "reference_rates",
    "restraint_table",
    "retention",
    "selection_rates",
    "split",
    "tally",
    "tracking_information",
    "transfer",
    "wins_matrix",
    "wolpaw_rate",
    "yet_another_average_lagging",
]
