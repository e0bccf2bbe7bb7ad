"""The instrument: one strategy, run once, in a fresh process with nothing else in it.

=============  ===========================================================================
``record``     the values that travel: what to run, what came of it
``memory``     resident memory, its peak, what malloc holds; verified ways of reading them
``drain``      the only reader of clocks: builds a strategy, drains it, and stamps each batch
``timing``     stamps to metrics; pure arithmetic
``growth``     a memory trace to a verdict: leak, plateau, or the allocator; pure arithmetic
``pagecache``  how much of a file is in memory already
``child``      what happens inside the fresh process
``keeper``     between parent and trial: whichever ends, nothing of the trial is left
``group``      the kernel's own limits on memory and processes, where it has them to give
``watch``      the parent's side: start, deadline, memory limit, no orphans, the record
``log``        one JSON line for each finished trial, appended the moment it exists
``machine``    what a figure must never be quoted without
=============  ===========================================================================
"""

from loaders._trial.record import Environment, Metrics, Record, Status, Trial
from loaders._trial.watch import run_trial

__all__ = ["Environment", "Metrics", "Record", "Status", "Trial", "run_trial"]
