"""Comparison runs: rounds of trials, each trial saved at once, resumable after a break.

``plans``     what a comparison runs, and how its trials start
``schedule``  which trials come next, from those that are there; pure
``running``   servers, the time budget, and the log
"""

from loaders._compare.plans import LEAST_ROUNDS, SEED, Plan, groups_of, plan, weightiest_first
from loaders._compare.running import run, run_together
from loaders._compare.schedule import CHECKED, GIVE_UP_AFTER, is_left, open_ratios

__all__ = [
    "CHECKED",
    "GIVE_UP_AFTER",
    "LEAST_ROUNDS",
    "SEED",
    "Plan",
    "groups_of",
    "is_left",
    "open_ratios",
    "plan",
    "run",
    "run_together",
    "weightiest_first",
]
