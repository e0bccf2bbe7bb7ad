"""Run comparisons: their servers, the time budget, and the log."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from loaders._compare.plans import SEED, Plan
from loaders._compare.schedule import Block, blocks, held_to, is_checked, is_left
from loaders._errors import InputError
from loaders._trial import Record, Trial, log, machine, run_trial, watch
from loaders._trial.launch import LostServerError, Server

CONTINUE_WITHIN = timedelta(hours=24)
"""An older interrupted run is started again: too much of the machine may have changed."""


def run(
    planned: Plan,
    *,
    done: Callable[[Record], None] = lambda _: None,
    begin: Callable[[Trial], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Run one comparison to its end and return its records; see ``run_together``."""
    return run_together([planned], done=done, begin=begin, say=say)[planned.question]


def run_together(
    plans: Sequence[Plan],
    *,
    seconds: float | None = None,
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
        The time budget. No trial is begun that would probably end more than half of its time after it.

    Raises
    ------
    InputError
        If another comparison is under way, if the log cannot be written, or if servers keep ending.
    """
    end = None if seconds is None else clock() + seconds
    with log.exclusive(machine.machine_name()):
        path = log.log_path(machine.machine_name())
        log.refuse_other_processor(path, machine.processor())
        names, records = _continued(plans, log.read(path, say))
        before = [record for of_question in records.values() for record in of_question]
        if before:
            say(f"continuing the run of {min(each.started for each in before)}: {len(before)} trials are there")
        for each in before:
            done(each)
        with _Servers(plans, say) as servers:
            for block in blocks(plans, records):
                for strategy in block.strategies:
                    trial = block.plan.trial(strategy, block.case, SEED + block.index)
                    of_question = records[trial.question]
                    if end is not None and end - clock() <= _typical(trial, of_question) / 2:
                        return records
                    begin(trial)
                    record = _run_trial(block, trial, names[trial.question], servers, of_question)
                    if record:
                        log.append(path, record)
                        of_question.append(record)
                        done(record)
    return records


def _typical(trial: Trial, records: Sequence[Record]) -> float:
    """Return the seconds that a trial usually takes, or those of its case; 0 if nothing is known."""
    in_case = [each for each in records if each.case == trial.case]
    own = [each.seconds for each in in_case if each.strategy == trial.strategy]
    return statistics.median(own or [each.seconds for each in in_case] or [0.0])


class _Servers:
    """One server for each round, for all questions: one layout of addresses must not be that of all trials."""

    def __init__(self, plans: Sequence[Plan], say: Callable[[str], None]) -> None:
        self._plans, self._say = [each for each in plans if each.forks], say
        self._server: Server | None = None
        self._round = -1
        self._refused = False

    def __enter__(self) -> _Servers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server:
            self._server.end()

    def of(self, index: int) -> Server | None:
        """Return the server of a round, a new one if it was lost; ``None`` once one has said that it cannot serve."""
        if self._refused:
            return None
        if self._server and self._round == index and not self._server.is_lost:
            return self._server
        if self._server:
            self._server.end()
        self._server, self._round = Server(self._modules()), index
        if self._server.reason:
            self._server.end()
            self._refused = True
            self._say(f"trials run in fresh processes, which takes longer: {self._server.reason}")
            return None
        return self._server

    def _modules(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for plan in self._plans:
            for name, attributes in plan.modules.items():
                found.setdefault(name, set()).update(attributes)
        return found


def _run_trial(block: Block, trial: Trial, run: str, servers: _Servers, records: Sequence[Record]) -> Record | None:
    """Run a trial, once more if its server is lost; ``None`` if it cannot start as the others of its block did."""
    begun = {each.process for each in records if each.round == block.index and each.case == block.case}
    own = [each for each in records if each.strategy == trial.strategy]
    in_case = [each for each in own if each.case == trial.case]
    # A quick look checks a strategy with one amount of data only.
    checked = is_checked(block.index, own if block.plan.staged else in_case)
    trial = msgspec.structs.replace(trial, checked=checked)

    def once() -> tuple[Record | None, Server | None]:
        server = None if block.fresh else servers.of(block.index)
        if begun - {"forked" if server else "fresh"}:
            return None, server
        record = run_trial(
            trial,
            block.plan.corpus,
            run=run,
            round=block.index,
            planned=block.planned,
            server=server,
            repeats=0 if block.plan.staged else watch.repeats_left(records),  # a quick look has no time for it
        )
        return held_to(record, in_case), server

    with contextlib.suppress(LostServerError):
        record, server = once()
        if record is None or record.status != "failed" or server is None or not server.is_lost:
            return record
    try:
        return once()[0]
    except LostServerError:
        raise InputError(
            "the process that trials are forked from has ended twice; finished trials are kept, and --fresh does "
            "without it"
        ) from None


def _continued(plans: Sequence[Plan], logged: Sequence[Record]) -> tuple[dict[str, str], dict[str, list[Record]]]:
    """Return the names and records, by question, of the last runs of these plans if something of them is left.

    Otherwise all are measured anew.
    """
    now = datetime.now(UTC)
    new = {plan.question: f"{now:%Y%m%dT%H%M%S}-{plan.key}" for plan in plans}
    names, found = dict(new), {question: list[Record]() for question in new}
    for question, name in new.items():
        key = name.rpartition("-")[2]
        runs = [record.run for record in logged if record.run.endswith(f"-{key}")]
        records = [record for record in logged if runs and record.run == runs[-1]]
        if records and now - datetime.fromisoformat(records[0].started) < CONTINUE_WITHIN:
            names[question], found[question] = runs[-1], records
    if is_left(plans, found):
        return names, found
    return new, {question: [] for question in new}
