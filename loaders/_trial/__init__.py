"""The instrument: one strategy, run once, in a fresh process with nothing else in it.

=============  ==================================================================================
``record``     the values that are passed around: what to run, and the result
``memory``     resident memory, its peak, what malloc holds; verified ways of reading them
``drain``      the only reader of clocks: builds a strategy, drains it, and stamps each batch
``timing``     stamps to metrics; pure arithmetic
``growth``     a memory trace to a verdict: leak, plateau, or the allocator; pure arithmetic
``pagecache``  how much of a file is in memory already
``child``      what happens inside the fresh process
``convert``    a strategy's conversion, measured in its own process
``imports``    the modules that strategies were seen to import while they were measured
``keeper``     sits between parent and trial; if either ends, no process of the trial is left
``group``      the kernel's own limits on memory and processes, where they are available
``watch``      the parent's side: start, deadline, memory limit, no orphans, the record
``log``        one JSON line for each finished trial, appended as soon as it exists
``machine``    the machine, versions and settings that every figure must be quoted with
=============  ==================================================================================
"""

from loaders._trial.record import Environment, Metrics, Record, Status, Trial
from loaders._trial.watch import run_trial

__all__ = ["Environment", "Metrics", "Record", "Status", "Trial", "run_trial"]
