"""The instrument: one strategy, run once, in a process of its own with nothing else in it.

=============  ==================================================================================
``record``     the values that are passed around: what to run, and the result
``metrics``    what a trial measures; each field declares its figure
``memory``     resident memory, its peak, what malloc holds; verified ways of reading them
``drain``      the only reader of clocks: builds a strategy, drains it, and stamps each batch
``timing``     stamps to metrics; pure arithmetic
``steady``     the steady epochs: enough of them, and again if others had the processor
``turns``      two trials that are alive at once and run their epochs in turn
``workers``    enough readings of the memory of a process tree
``growth``     a memory trace to a verdict: leak, plateau, or the allocator; pure arithmetic
``pagecache``  how much of a file is in memory already
``assemble``   readings to metrics: the process's own, then what only its parent could see
``prepare``    in the process, before anything is measured: imports, inputs, files, the baseline
``child``      the process of a trial: prepare, measure, check, assemble
``failure``    what went wrong in it, in words
``convert``    a strategy's conversion, measured in its own process
``imports``    no import is measured: late ones are found, remembered and done beforehand
``launch``     how a trial's process comes to be, where it works, and how it is ended
``server``     the process that has done the imports, from which trials are forked
``pages``      what of a server's memory a fork must have too
``forks``      trials in forks of one server after another
``clone``      forks that serve what a trial measures, made before it runs anything
``keeper``     sits between parent and trial; if either ends, no process of the trial is left
``group``      the kernel's own limits on memory and processes, where they are available
``watch``      the parent's side: the deadline, the memory limit, the record
``log``        one JSON line for each finished trial, appended as soon as it exists
``machine``    the machine, versions and settings that every figure must be quoted with
=============  ==================================================================================
"""

from loaders._trial.metrics import Metrics
from loaders._trial.record import Environment, Record, Status, Trial
from loaders._trial.watch import run_trial

__all__ = ["Environment", "Metrics", "Record", "Status", "Trial", "run_trial"]
