"""Terminal output: progress on standard error, tables on standard output."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import msgspec
from rich import box
from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)
from rich.table import Table

from loaders import _evidence, _faults
from loaders._check import equivalence, selftest, show
from loaders._check.equivalence import Equivalence
from loaders._check.run import Outcome
from loaders._check.selftest import Tally
from loaders._compare.schedule import Open
from loaders._evidence import Experiment
from loaders._figures import declared
from loaders._resolution import Calibration
from loaders._rows import FIGURES, Comparison, Row
from loaders._rows.figures import OF_TREE, is_untold
from loaders._trial.growth import Growth
from loaders._trial.metrics import MemoryTrace, Metrics
from loaders._trial.record import SCHEMA, Record, Trial
from loaders._words import (
    NOT_CLOSED,
    OLDER,
    UNCORRECTED,
    UNITS,
    amount,
    calibrated_cells,
    case_in_words,
    disturbed,
    duration,
    estimated,
    figure_in_words,
    growth_in_words,
    machine_in_words,
    measure_on,
    of_times,
    over_steps,
    times,
    to_fastest,
    without_start,
)

if TYPE_CHECKING:
    from pathlib import Path

    from loaders._advise.words import Answer
    from loaders._faults import FaultTally
    from loaders._folder.advice import Advice
    from loaders._probe.found import Found
    from loaders._probe.gates import Gate

T = TypeVar("T")

CALM = 2
"""How often a second a progress bar is drawn, while trials are measured that could use the core."""


class Console(RichConsole):
    """One whose closed pipe ends the command as any other does: rich would end it with 1, a result of its own."""

    def on_broken_pipe(self) -> None:
        """Let the command handle it."""
        raise BrokenPipeError


# What trials, files and systems say is shown as it is: never as markup, however many brackets are in it.
PLAIN = partial(Console, markup=False, highlight=False, emoji=False)
_errors = PLAIN(stderr=True)
_output = PLAIN(width=None if sys.stdout.isatty() else 160)


def track_pictures(pictures: Iterable[T], count: int) -> Iterable[T]:
    """Show progress while a corpus is built."""
    return track(pictures, description="building the corpus", total=count, console=_errors)


class Bar:
    """The progress of comparisons: the share of the trials, or of the time budget."""

    def __init__(self, bar: Progress, trials: int, seconds: float | None) -> None:
        self._bar, self._seconds = bar, seconds
        self._begun, self._trials, self._done = time.monotonic(), trials, 0
        self._task = bar.add_task("comparing", total=seconds or trials, strategy="")

    def begin(self, trial: Trial) -> None:
        """Show the name of the trial in progress."""
        self.describe(" ".join(filter(None, [trial.question, trial.strategy, case_in_words(trial.case)])))

    def describe(self, words: str) -> None:
        """Say what is under way."""
        self._bar.update(self._task, strategy=words)

    def done(self, record: Record) -> None:
        """Count a trial; report a failure at once."""
        self.count()
        if record.went_wrong:
            self._bar.console.print(f"{record.strategy}: {record.status.replace('_', ' ')}: {record.message}")

    def count(self) -> None:
        """Count something that is done."""
        self._done += 1
        if self._seconds:
            self._bar.update(self._task, completed=time.monotonic() - self._begun)
        else:  # what is still open may take more trials than were foreseen
            self._bar.update(self._task, completed=self._done, total=max(self._trials, self._done))


@contextmanager
def progress(trials: int, seconds: float | None) -> Iterator[Bar]:
    """Show the progress of comparisons of this many trials, or with a budget of so many seconds."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn() if seconds else MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[strategy]}"),
    )
    with Progress(*columns, console=_errors, refresh_per_second=CALM) as bar:
        yield Bar(bar, trials, seconds)


NAMED = 3
"""How many ratios that need more rounds are named for each case; the others are counted."""


def show_open(question: str, ratios: Sequence[Open]) -> None:
    """Print which ratios of a comparison need more rounds, the widest first, and how many rounds in total."""
    for case, of_case in groupby(ratios, lambda each: each.case):
        found = sorted(of_case, key=lambda each: -each.half)
        named = ", ".join(
            f"{each.figure} of {each.strategy} against {each.other} ({_need(each)})" for each in found[:NAMED]
        )
        more = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
        where = " ".join(filter(None, [question, case_in_words(case)]))
        _output.print(f"{where} needs more rounds: {named}{more}", soft_wrap=True)


def _need(ratio: Open) -> str:
    known = "measured once" if math.isinf(ratio.half) else f"± {ratio.half:.0%}"
    return f"{known}; {ratio.rounds} rounds in total" if ratio.rounds else known


def show_comparison(comparison: Comparison) -> None:
    """Print a comparison: one table per case."""
    for case, rows in comparison.cases:
        further = _further(rows)
        table = Table(
            title=" ".join(filter(None, [comparison.question, case_in_words(case)])),
            box=box.SIMPLE,
            title_justify="left",
        )
        for heading in (
            "strategy",
            TIMES[rows[0].ranked_by],
            "against baseline",
            "against the fastest",
            "peak memory",
            *further,
            "samples",
            "status",
        ):
            left, is_name = heading in ("strategy", "status"), heading == "strategy"
            table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=is_name)
        for row in [*rows, *comparison.missing(case)]:
            table.add_row(*_cells(row, [cell(row) for cell in further.values()]))
        _output.print(table)
    if comparison.unmeasured:
        said = f"To measure what is not measured yet: {', or '.join(measure_on(comparison))}"
        _output.print(said, soft_wrap=True)
    if said := without_start([comparison]):
        _output.print(said, soft_wrap=True)
    if comparison.schema != SCHEMA:
        _output.print(OLDER, soft_wrap=True)
    _output.print(UNCORRECTED, soft_wrap=True)
    _output.print(machine_in_words(comparison.environment), soft_wrap=True)
    if comparison.not_closed:
        _output.print(NOT_CLOSED, soft_wrap=True)
    if comparison.disturbed:
        _output.print(disturbed(comparison.disturbed), soft_wrap=True)


@contextmanager
def checking(seconds: float) -> Iterator[Callable[[list[Outcome]], None]]:
    """Show the progress of a check: elapsed time, and how many outcomes are undecided."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=_errors, refresh_per_second=CALM) as bar:
        task = bar.add_task("measuring", total=seconds, left="")
        begun = time.monotonic()

        def told(outcomes: list[Outcome]) -> None:
            asked = [each for each in outcomes if not each.skipped]
            left = [
                each.name
                for each in asked
                if any(one.verdict == "undecided" for one in each.judgements) or not each.judgements
            ]
            bar.update(task, completed=time.monotonic() - begun, left=f"{len(left)} of {len(asked)} undecided")

        yield told


def show_check(outcomes: Sequence[Outcome]) -> None:
    """Print the result of a check."""
    if outcomes:
        _show("", show.HEADINGS, show.lines(outcomes))
    _output.print(show.summary(outcomes), soft_wrap=True)
    _output.print(show.METHOD, soft_wrap=True)


def show_probe(found: Found, judged: Sequence[Gate]) -> None:
    """Print what was found about a pipeline: first the answer."""
    from loaders._probe import words

    _output.print(words.answer(found), style="bold", soft_wrap=True)
    if said := words.cure(found):
        _output.print(said, soft_wrap=True)
    table = Table(box=None, show_header=False)
    for line in words.lines(found):
        table.add_row(*line)
    _output.print(table)
    for name, state, why in words.gate_lines(judged):
        _output.print(f"{name}: {state}: {why}", soft_wrap=True)
    _output.print(words.conditions(found), soft_wrap=True)


def show_answer(answer: Answer) -> None:
    """Show which strategy to use, and every strategy."""
    from loaders._advise.command import source_in_words, table

    head = f"Use {answer.recommended}" if answer.recommended else "Nothing can be recommended"
    doubt = " (undecided)" if answer.recommended and not answer.decided else ""
    _output.print(f"{head}{doubt}.", style="bold")
    _output.print(" ".join(filter(None, [answer.because, answer.beyond])))
    have = answer.settings
    step = duration(have.step) if have.step else "none"
    case = case_in_words(answer.case)
    _output.print(
        f"\nFor {answer.question}{f', {case}' if case else ''}: memory {amount(have.memory)}, step {step}, "
        f"batch {have.batch}, {have.samples} samples, {have.epochs} epochs.",
    )
    _output.print(source_in_words(answer) or "No results from the current instrument answer this.")
    _output.print(table(answer))


def show_advice(found: Advice, out: Path) -> None:
    """Print the advice for a folder: first the answer, then every loader."""
    from loaders._advise.command import table
    from loaders._folder import words

    for place, sentence in enumerate(words.answer(found)):
        _output.print(sentence, style=None if place else "bold", soft_wrap=True)
    _output.print(table(found.answer))
    if found.module:
        _output.print(f"Written: {out}. To train with it:", soft_wrap=True)
        _output.print(words.usage(found, words.path(found)), soft_wrap=True)


def told_of_selftest(tally: Tally) -> None:
    """Show the progress of one kind of check."""
    _errors.print(f"{tally.kind}: {tally.checks} checks, {tally.verdicts}")


def show_selftest(tallies: Sequence[Tally]) -> None:
    """Print how often the check is wrong."""
    _show("", selftest.HEADINGS, map(selftest.line, tallies))
    for sentence in selftest.sentences(tallies):
        _output.print(sentence, soft_wrap=True)


def show_equivalence(found: Sequence[Equivalence]) -> None:
    """Print whether forked trials measure the same as fresh ones, by question and by strategy."""
    measured = [each for each in found if not each.skipped]
    if measured:
        _show("fresh and forked trials", equivalence.HEADINGS, equivalence.lines(measured))
    for each in measured:
        _show(
            " ".join(filter(None, [each.question, case_in_words(each.case)])),
            equivalence.STRATEGY_HEADINGS,
            equivalence.strategy_lines(each),
        )
    said = [sentence for each in measured for sentence in equivalence.sentences(each)]
    said += [equivalence.METHOD, machine_in_words(measured[-1].environment)] if measured else []
    for sentence in [*said, *(f"{each.question}: skipped: {each.skipped}." for each in found if each.skipped)]:
        _output.print(sentence, soft_wrap=True)


def show_faults(found: Sequence[FaultTally]) -> None:
    """Print what came of each fault of a process of tf.data service."""
    title = "tf.data service: what arrives, and what a fault does to an epoch"
    _show(title, _faults.HEADINGS, map(_faults.line, found))
    for sentence in [*(f"{each}." for each in _faults.summary(found)), *_faults.sentences(found)]:
        _output.print(sentence, soft_wrap=True)


def _show(title: str, headings: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table of words."""
    table = Table(title=title or None, box=box.SIMPLE, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for line in lines:
        table.add_row(*line)
    _output.print(table)


def show_evidence(experiment: Experiment) -> None:
    """Print how often something happened, next to the required figure."""
    title = f"{experiment.name}: {experiment.source}, commit {experiment.commit[:8]}, {experiment.cpu}"
    _show(title, _evidence.HEADINGS, map(_evidence.line, experiment.counts))


def show_calibration(calibration: Calibration) -> None:
    """Print the instruments' readings of known values, and their resolution."""
    for each in calibration.calibrated:
        table = Table(title=each.instrument.words, box=box.SIMPLE, title_justify="left")
        for heading in ("strategy", "truth", "measured", "error", "of the truth", "spread", "resolves", "verdict"):
            table.add_column(heading, justify="left" if heading in ("strategy", "verdict") else "right")
        for reading in each.readings:
            table.add_row(*calibrated_cells(reading))
        _output.print(table)


TIMES = {"steady_time": "steady epoch", "epoch_time": "first epoch", "sample_time": "a sample"}
"""Headings of the column of times, by metric."""


def _further(rows: Sequence[Row]) -> dict[str, Callable[[Row], str]]:
    """Return the columns that are shown only if some row has a value for them: heading, and the cell's text."""
    found: dict[str, Callable[[Row], str]] = {
        figure.heading: partial(figure_in_words, figure)
        for figure in FIGURES.values()
        if figure.heading and figure.shown == "everywhere" and any(row[figure.name] for row in rows)
    }
    return {**found, "memory over the steps": over_steps} if any(row.growth for row in rows) else found


def _cells(row: Row, further: list[str]) -> list[str]:
    return [
        row.strategy,
        estimated(row["time"], duration),
        "baseline" if row.is_baseline else times(row.ratio),
        to_fastest(row),
        estimated(row["peak"], amount),
        *further,
        f"{row.samples} of {row.trials}" if row.samples < row.trials else str(row.samples),
        ", ".join([row.status, *of_times(row)]) if row.trials else "not measured yet",
    ]


def _part(name: str, figure: float | str) -> str:
    """Return a figure of a metric that has several."""
    if isinstance(figure, str):
        return figure
    if name == "memory_by_role":
        return amount(figure)
    return duration(figure) if name.endswith("batch_time") else f"{figure:.3g}"


def show_trial(record: Record) -> None:
    """Print everything that one trial measured."""
    what = " ".join(filter(None, [record.question, record.strategy, case_in_words(record.case)]))
    how = ": ".join(filter(None, [record.status.replace("_", " "), record.message]))
    _output.print(f"{what}: {how}")
    table = Table(box=None, show_header=False)
    figures = declared(Metrics)
    for name, value in msgspec.structs.asdict(record.metrics).items():
        if value is None or isinstance(value, list | MemoryTrace):
            continue
        if is_untold(record) and name in (*OF_TREE, "memory_by_role", "memory_growth"):
            table.add_row(name, "unknown: how much its processes hold together could not be read")
            continue
        if isinstance(value, Growth):
            table.add_row(name, growth_in_words(value))
        elif isinstance(value, msgspec.Struct | dict):
            parts = value if isinstance(value, dict) else msgspec.structs.asdict(value)
            for part, figure in parts.items():
                if figure is not None:
                    table.add_row(f"{name} {part}", _part(name, figure))
        else:
            unit = figures[name].unit
            table.add_row(name, UNITS[unit](value) if unit in ("s", "bytes") else f"{value:.4g} {unit}")
    _output.print(table)
    _output.print(machine_in_words(record.environment), soft_wrap=True)
    if record.status == "ok":
        _output.print("This is a single sample; for an interval, run `compare`.")
