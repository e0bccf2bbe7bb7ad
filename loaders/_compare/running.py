"""Run comparisons: their servers, the time budget, and the log."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from loaders import _registry
from loaders._compare.plans import PACKAGE, SEED, Plan, groups_of
from loaders._compare.schedule import Block, Records, blocks, held_to, is_checked, is_left, of_round
from loaders._errors import CHANGED, InputError
from loaders._trial import Record, Trial, log, machine, run_trial, watch
from loaders._trial.forks import Forks, group_of

CONTINUE_WITHIN = timedelta(hours=24)
"""An older interrupted run is started again: too much of the machine may have changed."""


def run(
    planned: Plan,
    *,
    anew: bool = True,
    done: Callable[[Record], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Run one comparison to its end and return its records; see ``run_together``."""
    return run_together([planned], anew=anew, done=done, say=say)[planned.question]


def run_together(
    plans: Sequence[Plan],
    *,
    seconds: float | None = None,
    anew: bool = True,
    done: Callable[[Record], None] = lambda _: None,
    begin: Callable[[Trial], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, list[Record]]:
    """Run comparisons of several questions, round by round, and return the records of each question.

    Records of an interrupted run of the same plans are included. Every record is in the trial log before ``done`` is
    called with it, so however this function ends, it loses at most the trial that was under way.

    Parameters
    ----------
    plans
        One for each question.
    seconds
        The time budget. No trial is begun that would probably end more than half of its time after it, but the first:
        each call gets further, however long the next trial takes.
    anew
        Whether a run of which nothing is left is measured anew; otherwise its records are returned.

    Raises
    ------
    InputError
        If another comparison is under way, if the log or a trial's files cannot be written, if servers keep ending, or
        if the code changes meanwhile: what follows would be measured of other code than is recorded.
    """
    end = None if seconds is None else clock() + seconds
    with log.exclusive(machine.machine_name()):
        path = log.log_path(machine.machine_name())
        log.refuse_other_processor(path, machine.processor())
        logged = log.read(path, say)
        names, records = _continued(plans, logged, anew=anew)
        before = [record for of_question in records.values() for record in of_question]
        if before:
            say(f"continuing the run of {min(each.started for each in before)}: {len(before)} trials are there")
        elif earlier := _earlier(plans, logged):
            say(f"measuring anew: the run of {earlier} is complete, or older than 24 hours")
        for each in before:
            done(each)
        with Forks(groups_of(each for each in plans if each.forks)) as forks:
            served = -1  # the round
            is_first = True
            for block in blocks(plans, records):
                written = _written(block.plan)
                if not _is_of(names[block.plan.question], block.plan):
                    raise InputError(CHANGED)
                for strategy in block.strategies:
                    trial = block.plan.trial(strategy, block.case, SEED + block.index)
                    of_question = records[trial.question]
                    latest = None if end is None or is_first else end - _typical(trial, of_question) / 2
                    if latest is not None and clock() >= latest:
                        return records
                    if not block.fresh and block.index != served and not forks.reason:
                        served = block.index
                        if forks.begin(_used(plans, records, served)):
                            say(f"trials run in fresh processes, which takes longer: {forks.reason}")
                        if latest is not None and clock() >= latest:
                            return records  # importing took what was left
                    begin(trial)
                    forked = None if block.fresh or forks.reason else forks
                    record = _run_trial(block, trial, names[trial.question], forked, of_question)
                    if record:
                        if (now := _written(block.plan)) != written and not _is_of(names[trial.question], block.plan):
                            raise InputError(CHANGED)  # it may be of other code than it would say
                        is_first, written = False, now
                        log.append(path, record)
                        of_question.append(record)
                        done(record)
    return records


def _is_of(run: str, plan: Plan) -> bool:
    """Whether a run is of what a plan's figures depend on now; a file that is just being written may be gone."""
    try:
        return run.endswith(f"-{plan.key}")
    except OSError:
        return False


def _written(plan: Plan) -> list[tuple[str, int, int]]:
    """Return when each file of a plan's code was written, and its size: milliseconds tell that nothing was edited."""
    found = []
    with contextlib.suppress(OSError):  # something is gone, which shows as well
        for file in [*PACKAGE.rglob("[!.]*.py"), *map(Path, plan.outside)]:
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return sorted(found)


def _used(plans: Sequence[Plan], records: Records, index: int) -> set[tuple[str, ...]]:
    """Return the groups whose servers fork what is due in a round."""
    forked = [
        (each.plan.question, name)
        for each in of_round(plans, records, index, {})
        if not each.fresh
        for name in each.strategies
    ]
    return {group_of(_registry.find_variant(*each)) for each in forked}


def _typical(trial: Trial, records: Sequence[Record]) -> float:
    """Return the seconds that a trial usually takes, or those of its case; 0 if nothing is known."""
    in_case = [each for each in records if each.case == trial.case]
    own = [each.seconds for each in in_case if each.strategy == trial.strategy]
    return statistics.median(own or [each.seconds for each in in_case] or [0.0])


def _run_trial(block: Block, trial: Trial, run: str, forks: Forks | None, records: Sequence[Record]) -> Record | None:
    """Run a trial; ``None`` if it cannot start as the others of its block did."""
    begun = {each.process for each in records if each.round == block.index and each.case == block.case}
    if begun == {"fresh"}:
        forks = None  # the servers could not fork when it began
    if begun - {"forked" if forks else "fresh"}:
        return None
    own = [each for each in records if each.strategy == trial.strategy]
    in_case = [each for each in own if each.case == trial.case]
    # A quick look checks a strategy with one amount of data only.
    checked = is_checked(block.index, own if block.plan.staged else in_case)
    record = (forks.run if forks else run_trial)(
        msgspec.structs.replace(trial, checked=checked),
        block.plan.corpus,
        run=run,
        round=block.index,
        planned=block.planned,
        repeats=0 if block.plan.staged else watch.repeats_left(records),  # a quick look has no time for it
    )
    return held_to(record, in_case)


def _continued(
    plans: Sequence[Plan], logged: Sequence[Record], *, anew: bool
) -> tuple[dict[str, str], dict[str, list[Record]]]:
    """Return the names and records, by question, of the last runs of these plans.

    If nothing of them is left, all are measured ``anew``, if that is asked for. Otherwise a run that is complete counts
    however old it is, and whatever was begun after it.
    """
    now = datetime.now(UTC)
    new = {plan.question: f"{now:%Y%m%dT%H%M%S}-{plan.key}" for plan in plans}
    names, found = dict(new), {question: list[Record]() for question in new}
    for plan in plans:
        runs = _runs(plan, logged)
        whole = (each for each in runs if not anew and not is_left([plan], {plan.question: each}))
        recent = (each for each in runs if now - datetime.fromisoformat(each[0].started) < CONTINUE_WITHIN)
        if records := next(itertools.chain(whole, recent), None):
            names[plan.question], found[plan.question] = records[0].run, records
    if anew and not is_left(plans, found):
        return new, {question: [] for question in new}
    return names, found


def _runs(plan: Plan, logged: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each run of a plan, or of one that may share trials with it, the last run first."""
    ending = f"-{plan.key}"  # the key is a digest of all code: it is made once, and not for each record
    found: dict[str, list[Record]] = {}
    for record in logged:
        if record.run.endswith(ending):
            found.setdefault(record.run, []).append(record)
    return list(found.values())[::-1]


def _earlier(plans: Sequence[Plan], logged: Sequence[Record]) -> str:
    """Return when the last of the plans' runs began; empty if there is none."""
    return max((each[0].started for plan in plans for each in _runs(plan, logged)[:1]), default="")
