"""What a comparison found out, as values: rows, how memory follows the data, what disturbed it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from loaders._contract import Cause, Delivery, OddFiles, OrderQuality
from loaders._judge import Judged
from loaders._law import Law
from loaders._rows.declared import FIGURES
from loaders._stats import Estimate
from loaders._trial.metrics import MemoryTrace
from loaders._trial.record import SCHEMA, Environment

BUSY = 0.1
"""A share of the machine's processor time. Whatever others take may be as much as strategies differ by, and 10 % is the
smallest difference that matters to most readers. A quiet system's own services take 1 to 3 % of two processors."""


AT_START = 10
"""A start longer than this many steady epochs did the work of all epochs: pipelines start in one or two."""


BUSY_TRIALS = 0.1
"""A share of the trials. One in ten may meet a running service; shuffled rounds and intervals allow for that."""


Parts = tuple[float, float, float, float]
"""What a total is made of (``figures.total``): the seconds of the conversion, of the first epoch as a fresh process has
it and of a steady one; and by how much the first is spread, as a logarithm (``figures.first_epochs``)."""


class About(msgspec.Struct, frozen=True):
    """A question's description of itself, for the renderers, which do not read the registry.

    Attributes
    ----------
    doc
        The question's docstring.
    axes
        The values of each axis.
    default_case
        See ``loaders._registry.Question``.
    strategies
        The cases that each strategy is restricted to, by axis; empty for most.
    has_quick
        Whether a quick comparison leaves strategies out.
    sweeps, calibrates, reports, apart, when, laws_from
        See ``loaders._registry.Question``.
    """

    doc: str = ""
    when: str = ""
    axes: dict[str, list[str]] = {}
    default_case: dict[str, str] = {}
    size_axis: str = ""
    laws_from: str = ""
    strategies: dict[str, dict[str, list[str]]] = {}
    has_quick: bool = False
    sweeps: str = ""
    calibrates: bool = False
    reports: bool = False
    apart: bool = False

    @property
    def is_sized(self) -> bool:
        """Whether memory is compared along the amount of data, here or in another question with the same loaders."""
        return bool(self.size_axis or self.laws_from)

    @property
    def chooses(self) -> bool:
        """See ``loaders._registry.Question``."""
        return not (self.calibrates or self.reports)

    def is_default(self, case: Mapping[str, str]) -> bool:
        """Whether a case is the default one, with any amount of data."""
        return {**case, self.size_axis: ""} == {**self.default_case, self.size_axis: ""}

    def running_in(self, case: Mapping[str, str]) -> list[str]:
        """Return the strategies that a comparison runs in a case; axes that are not given have their default value."""
        whole = {**self.default_case, **case}
        return [
            name
            for name, only in self.strategies.items()
            if all(whole[axis] in values for axis, values in only.items())
        ]


class Row(msgspec.Struct, frozen=True):
    """The results of a comparison for one strategy in one case.

    ``row["peak"]`` is an estimate; ``loaders._rows.declared`` says which there are and what they mean.

    Attributes
    ----------
    figures
        The estimates by name. ``peak`` is with a fast consumer, and covers the process tree if there were worker
        processes; a strategy that was ended early shows how far it got.
    ranked_by
        The metric that ranks the case: the question's, or ``epoch_time`` if a trial of the case lacks that.
    parts
        By round, what makes up a total.
    ratio, pair, best, total_best, peak_ratio
        Judged ratios: see ``loaders._rows.declared``. A ``best`` that counts no round was never measured in the same
        round as the fastest.
    in_best, in_best_total
        Whether it cannot be shown to be slower than the fastest, by ``time`` and by ``total``.
    p_values
        Two-sided, for ``ratio``, ``pair`` and ``peak_ratio`` against 1, under these names. They correct statements
        that are picked from several comparisons.
    spread
        For ``time`` and ``memory``: the moderated variance of a logarithm, its degrees of freedom, and the case's
        maximum of these. The page uses them to judge ratios to another baseline.
    effect
        The logarithm of ``time`` as fitted, the rounds' drift taken out: what strategies are ranked by.
    floor
        In bytes: the minimum that the strategy's buffers must hold, if known.
    trace
        Memory over the steps of the last ``ok`` trial, thinned.
    converts
        Whether its data must be converted and written first.
    steps, walk
        See ``loaders._trial.metrics.Metrics``.
    settings
        What its declaration sets for the process: environment variables, a library to load first.
    historic, ceiling, may_lose, ends_late
        See ``loaders._registry.Variant``.
    series, at
        See ``loaders._registry.Variant``.
    delivered
        The number of samples in an epoch.
    instead_of
        The number of samples that the baseline delivers, if that is another: its times are then held against none.
    delivery, left_behind
        See ``loaders._contract.Quality``: the worst of the checked trials, and what each of them found.
    roles
        Processor time of an epoch in seconds, by what the processes do: the mean.
    role_memory
        Bytes that they hold after the last epoch: the mean.
    page_cache
        The share of the strategy's files that was in the page cache: the smallest and the largest of all trials.
    times, peaks, needs, cpus
        ``time``, ``peak``, ``needed`` and ``cpu`` of each ``ok`` round, from which readers can compute other ratios. A
        trial that did not start as its round did (fresh or forked) is left out.
    samples
        How many of the ``trials`` were ``ok``.
    growth
        The verdicts on memory over the steps, with their counts unless one is that of all trials; ``None`` if all are
        undecided, as in short trials.
    growth_bound, in_use_bound
        In bytes per 1000 steps: upper bounds on the growth of memory and of memory in use, if every trial that was long
        enough has such a bound, and no verdict is *growing, in use*. "No leak" can be claimed only with the second.
    status
        The trials' status in words, with the reasons.
    epochs
        How often a trial read its data, before it repeated steady epochs.
    ends
        How many of its trials ended how, where that is not ``ok``.
    failed
        Whether any of its trials failed: it is not to be relied on, however fast the others were.
    commit
        The commits of the row's own trials, eight digits each, joined by ", ".
    source, imports
        The strategy's code and the modules that it imports by name; empty if this checkout lacks it.
    is_outside
        Whether a ``--with`` file declares it.
    capacity, engine, optional, asv_differs
        See ``loaders._registry.Variant``.
    forked
        The rounds of the ``ok`` trials that ran in a fork of a server; all others ran in a fresh process.
    forked_start
        In seconds: the mean ``start_time`` of forked trials. It is no figure, as a fork starts otherwise than a fresh
        process, but it tells whether a strategy does its work before the first batch.
    """

    question: str
    strategy: str
    label: str
    tier: str
    matches: str | None
    case: dict[str, str]
    is_baseline: bool
    status: str
    samples: int
    trials: int
    epochs: int = 1
    ends: dict[str, int] = {}
    failed: bool = False
    ranked_by: str = "epoch_time"
    historic: bool = False
    ceiling: bool = False
    may_lose: bool = False
    ends_late: float = 0.0
    converts: bool = False
    times: dict[int, float] = {}
    peaks: dict[int, float] = {}
    needs: dict[int, float] = {}
    cpus: dict[int, float] = {}
    parts: dict[int, Parts] = {}
    figures: dict[str, Estimate] = {}
    ratio: Judged | None = None
    pair: Judged | None = None
    best: Judged | None = None
    in_best: bool = False
    total_best: Judged | None = None
    in_best_total: bool = False
    p_values: dict[str, float] = {}
    spread: dict[str, tuple[float, float, float]] = {}
    effect: float | None = None
    peak_ratio: Judged | None = None
    growth: str | None = None
    growth_bound: float | None = None
    in_use_bound: float | None = None
    floor: float | None = None
    trace: MemoryTrace | None = None
    steps: list[int] | None = None
    walk: list[int] | None = None
    page_cache: tuple[float, float] | None = None
    series: str = ""
    at: str = ""
    settings: str = ""
    delivered: int | None = None
    instead_of: int | None = None
    psnr: float | None = None
    max_difference: float | None = None
    order: OrderQuality | None = None
    left_behind: list[int] = []
    delivery: Delivery | None = None
    roles: dict[str, float] = {}
    role_memory: dict[str, float] = {}
    odd_files: OddFiles | None = None
    commit: str = ""
    source: str = ""
    imports: list[str] = []
    is_outside: bool = False
    capacity: int = 0
    asv_differs: Cause | None = None
    engine: str = ""
    optional: tuple[str, ...] = ()
    forked: list[int] = []
    forked_start: float | None = None

    @property
    def is_apart(self) -> bool:
        """See ``loaders._registry.Variant``."""
        return self.ceiling or self.historic or self.may_lose

    @property
    def beginning(self) -> float | None:
        """How long it takes to start, in seconds, to tell strategies apart: of fresh trials, else of forked ones."""
        return self["start"].value if self["start"] else self.forked_start

    @property
    def ranked_at(self) -> float | None:
        """In seconds: ``time`` as fitted, by which strategies are ranked; ``None`` without a time."""
        time = self["time"]
        if time is None or self.effect is None:
            return time.value if time else None
        return math.exp(self.effect)

    @property
    def lacks_start(self) -> bool:
        """Whether it has no start figure because all its trials were forked."""
        return self["start"] is None and self.forked_start is not None

    def __getitem__(self, figure: str) -> Estimate | None:
        """Return an estimate by the name of its figure; ``None`` if the strategy has none.

        Raises
        ------
        KeyError
            If no figure has this name.
        """
        found = self.figures.get(figure)
        if found is None and figure not in FIGURES:
            raise KeyError(figure)
        return found


def worked_first(row: Row) -> bool:
    """Whether a strategy did its work before the first batch, so that steady epochs only hand out stored results."""
    return bool(row.beginning and row["steady"] and row.beginning > AT_START * row["steady"].value)


def plain(rows: Sequence[Row]) -> list[Row]:
    """Return strategies that do the same work in every epoch, with the baseline's output: no conversion, no caching.

    Only those that a first answer may name (``loaders_of``).
    """
    return [row for row in unprepared(rows) if not differs_at_first(row)]


def unprepared(rows: Sequence[Row]) -> list[Row]:
    """Return the same with those that keep what the first epoch made, in memory or in a file."""
    tier = next((row.tier for row in rows if row.is_baseline), "identical")
    same = [row for row in loaders_of(rows) if row["time"] and row.tier == tier]
    return [row for row in same if not (row.converts or worked_first(row))]


def loaders_of(rows: Sequence[Row]) -> list[Row]:
    """Return the strategies that a first answer may name.

    Left out is what ``advisable`` leaves out, and whatever failed in any of its trials.
    """
    return [row for row in advisable(rows) if not row.failed]


def advisable(rows: Sequence[Row]) -> list[Row]:
    """Return the strategies that would be named if they did not fail.

    Left out is what ``is_apart``, the code of others under a setting, and what delivers another number of samples.
    """
    return [row for row in rows if not (row.is_apart or row.settings or row.instead_of)]


AT_ONCE = 1.25
"""Ratio of the first epoch (less its start) to a steady one, above which it did work that later epochs skip."""


def differs_at_first(row: Row) -> bool:
    """Whether the first epoch, beyond its start, does work that later epochs skip."""
    if not (row["epoch"] and row["steady"]):
        return False
    return row["epoch"].value - max(0.0, row.beginning or 0.0) > AT_ONCE * row["steady"].value


class CaseLaws(msgspec.Struct, frozen=True):
    """How each strategy's memory follows the amount of data in one case; ``case`` omits the size axis."""

    case: dict[str, str]
    laws: dict[str, Law]


class Disturbed(msgspec.Struct, frozen=True):
    """What disturbed a comparison, and for how many trials that is unknown.

    Attributes
    ----------
    trials
        How many trials recorded what else was running.
    unrecorded
        How many did not: the machine may not have been quiet then.
    busy
        In how many of ``trials`` more than ``BUSY`` of the processor time went to other processes or other guests.
    others, stolen
        The largest shares of one trial's processor time, 0 to 1, taken by other processes and by other guests.
    swapped, throttled
        In how many of ``trials`` the machine swapped (more than 1 MiB), and in how many heat throttled its processors.
    most_swapped
        In bytes: the most swapped in one trial.
    repeated
        How many trials were repeated because others took processor time.
    """

    trials: int
    busy: int
    others: float
    stolen: float
    swapped: int
    most_swapped: int
    throttled: int
    unrecorded: int = 0
    repeated: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether the disturbances are large enough to count."""
        return self.busy > BUSY_TRIALS * self.trials or bool(self.swapped or self.throttled)


class Comparison(msgspec.Struct, frozen=True):
    """One comparison run of one question: its rows, best first within a case, and their origin.

    ``unmeasured`` are rows of the strategies that run in one of its cases and have no trial there yet. Trials that are
    ``not_closed`` are older than the figure ``closing``, which their epochs should include.
    """

    question: str
    title: str
    run: str
    size: str
    data: str
    started: str
    rounds: int
    ranked_by: str
    epochs: int
    environment: Environment
    rows: list[Row]
    laws: list[CaseLaws] = []
    schema: int = SCHEMA
    disturbed: Disturbed | None = None
    about: About = About()
    unmeasured: list[Row] = []
    not_closed: bool = False

    @property
    def has_forks(self) -> bool:
        """Whether any of its trials ran in a fork."""
        return any(row.forked for row in self.rows)

    def missing(self, case: Mapping[str, str]) -> list[Row]:
        """The strategies that are not measured yet in one of its cases."""
        return [row for row in self.unmeasured if row.case == case]

    def laws_of(self, case: Mapping[str, str]) -> dict[str, Law]:
        """The memory laws of one of its cases, by strategy."""
        return next((each.laws for each in self.laws if each.case.items() <= case.items()), {})

    @property
    def cases(self) -> list[tuple[dict[str, str], list[Row]]]:
        """The rows of each case."""
        return [(case, list(rows)) for case, rows in groupby(self.rows, lambda row: row.case)]


def document(comparison: Comparison) -> dict[str, object]:
    """Return a comparison as one JSON document: the figures are keys of their row, ``null`` where it has none.

    Strategies that are not measured yet are rows too, the last ones.
    """
    found: dict[str, Any] = msgspec.to_builtins(comparison)
    found["rows"] += found.pop("unmeasured")
    estimated = dict.fromkeys(name for name, figure in FIGURES.items() if not figure.judged)
    for row in found["rows"]:
        row.update({**estimated, **row.pop("figures")})
    return found
