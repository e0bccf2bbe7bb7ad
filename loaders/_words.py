"""Figures in words, with units and uncertainty. Shared by the terminal, the page and the README."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from loaders._contract import Delivery, OddFiles, OrderQuality
from loaders._corpus import OWN
from loaders._errors import printable
from loaders._figures import Figure, Unit
from loaders._judge import MEMORY_SHARE, MOST_ROUNDS, TIME_MARGIN, Judged
from loaders._resolution import INSTRUMENTS, Reading
from loaders._resolution import Unit as ReadingUnit
from loaders._rows import BUSY, Comparison, Disturbed, Row
from loaders._stats import Estimate
from loaders._trial.growth import IN_USE, Growth
from loaders._trial.machine import PINNED, QUIET
from loaders._trial.record import Environment

ABSENT = "–"
EXACT = 99
"""In dB: identical pixels; a trial records this for an infinite ratio."""
MIB = 2**20


def duration(seconds: float) -> str:
    """Return a duration with three digits: ``1.04 s``, ``83.4 ms``, ``212 µs``."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * factor >= 0.9995 or unit == "µs":  # 999.6 ms is 1.00 s, not 1000 ms
            return f"{_digits(seconds * factor)} {unit}"
    raise AssertionError("unreachable: the last unit always returns")


def rate(samples: float) -> str:
    """Return a throughput; the column states the unit: ``2650``, ``26.5``."""
    return _digits(samples)


def amount(count: float) -> str:
    """Return an amount of memory in MiB: ``1054 MiB``, ``3.6 MiB``; the instrument is accurate to 1 MiB."""
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if abs(mebibytes) >= 99.95 else f"{mebibytes:.1f} MiB"


def enough(count: float) -> str:
    """Return an amount of memory rounded up, for what it must not be below: 731.4 MiB do not fit into 731 MiB."""
    mebibytes = count / 2**20
    digits = 1 if abs(mebibytes) >= 99.95 else 10
    return amount(math.ceil(mebibytes * digits - 1e-6) / digits * 2**20)


def small_amount(count: float) -> str:
    """Return the memory that a sample adds, in KiB: ``588 KiB``, ``0.10 KiB``."""
    return f"{_digits(count / 2**10)} KiB"


def _digits(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def estimated(estimate: Estimate | None, unit: Callable[[float], str]) -> str:
    """Return the value and its 95 % interval: ``83.4 ms (81.0 to 85.9)``; a single sample says so."""
    if estimate is None:
        return ABSENT
    if estimate.low is None or estimate.high is None:
        return f"{unit(estimate.value)} (single sample)"
    low, high = unit(estimate.low), unit(estimate.high)
    if low.split()[-1] == high.split()[-1] == unit(estimate.value).split()[-1]:
        low, high = low.split()[0], high.split()[0]
    return f"{unit(estimate.value)} ({low} to {high})"


def factor(value: float) -> str:
    """Return a factor with two or three digits: ``1.90×``, ``45.2×``, ``173×``."""
    return f"{_digits(value)}×"


LITTLE_TIME = f"by less than {round(100 * (TIME_MARGIN - 1))} %"
LITTLE_MEMORY = f"by less than {round(100 * (MEMORY_SHARE - 1))} % or 1 MiB"


def times(judged: Judged | None, less: str = "faster", more: str = "slower", little: str = LITTLE_TIME) -> str:
    """Put a judged ratio into words: ``1.90× faster (1.85 to 1.95)``, ``no difference (0.97 to 1.04)``.

    A decided ratio within the margin says so (``1.04× slower (1.02 to 1.06), by less than 10 %``). An undecided one
    says how many rounds would decide (``undecided (0.87 to 2.61): 14 rounds would decide``). A difference that the
    instrument cannot resolve has no direction: ``below resolution (0.97 to 0.99)``. A single sample says so.
    """
    if judged is None:
        return ABSENT
    ratio = judged.ratio
    if not ratio.count:
        return "undecided: no round in common"
    if ratio.low is None or ratio.high is None:
        if not ratio.resolved:
            return "below resolution (single sample)"
        value = 1 / ratio.value if ratio.value < 1 else ratio.value
        return f"{factor(value)} {less if ratio.value < 1 else more} (single sample)"
    if not ratio.resolved:
        return f"below resolution ({_between(ratio.low, ratio.high)})"
    if judged.verdict == "no difference":
        return f"no difference ({_between(ratio.low, ratio.high)})"
    if judged.verdict == "undecided":
        needed = f"{judged.rounds}" if judged.rounds else f"more than {MOST_ROUNDS}"
        return f"undecided ({_between(ratio.low, ratio.high)}): {needed} rounds would decide"
    by_little = f", {little}" if judged.small else ""
    if judged.verdict == "less":
        return f"{factor(1 / ratio.value)} {less} ({_between(1 / ratio.high, 1 / ratio.low)}){by_little}"
    return f"{factor(ratio.value)} {more} ({_between(ratio.low, ratio.high)}){by_little}"


def fatter(judged: Judged | None) -> str:
    """Put a judged ratio of memory into words: ``2.10× fatter (2.05 to 2.15)``."""
    return times(judged, "leaner", "fatter", LITTLE_MEMORY)


AMONG_BEST = "among the best"
"""What is said of the ratio to the fastest of whatever may be the fastest."""


def to_fastest(row: Row) -> str:
    """Put a strategy's ratio to the fastest into words: ``among the best (0.93 to 1.13): 8 rounds would decide``.

    Within the best set no ratio says *slower*: the set allows for having picked the fastest, one interval does not.
    """
    if row.best is None:
        return "the fastest" if row.in_best else ABSENT
    ratio = row.best.ratio
    if not row.in_best or ratio.low is None or ratio.high is None:
        return times(row.best)
    needed = f": {row.best.rounds} rounds would decide" if row.best.rounds else ""
    return f"{AMONG_BEST} ({_between(ratio.low, ratio.high)}){needed}"


UNCORRECTED = (
    "Ratios in tables are not corrected for multiple comparisons: of twenty pairs without a difference, about one "
    "shows a difference by chance. The set of the fastest is found by a method that allows for having picked the "
    "fastest. The sentences that open a question are corrected together (Holm's method)."
)
"""The note required wherever several ratios are shown."""


NOT_CLOSED = (
    "A time ends at an epoch's last batch, in these older trials; a data set of tf.data may take as long again (by "
    "its code, at most a minute) to drop its iterator, unless it has `options.autotune.enabled = False`."
)
"""The note required wherever times are shown that leave that out."""

OLDER = (
    "These figures come from an older instrument. It measured start-up and steady running as one time, and did not "
    "separate the memory that the system can reclaim. They are kept for reference only; no conclusion rests on them."
)
"""The note required wherever records of an older schema are shown."""


def _between(low: float, high: float) -> str:
    return f"{_digits(low)} to {_digits(high)}"


def quantity(value: float, unit: ReadingUnit) -> str:
    """Return a figure of a calibrated instrument, precise enough for an error: ``310 µs``, ``12.0 KiB``, ``2``."""
    if value == 0:
        return "0"
    if unit == "s":
        return duration(value)
    if unit == "bytes" and abs(value) >= MIB / 10:
        return amount(value)
    return f"{value:.3g}" if unit == "count" else small_amount(value)


def calibrated_cells(reading: Reading) -> tuple[str, ...]:
    """Return one row of the table of instruments.

    The cells are: strategy, truth, measured, error, error as a share of the truth, spread, resolution, verdict.
    """
    unit, resolution = INSTRUMENTS[reading.metric].unit, reading.resolution()
    return (
        reading.strategy,
        quantity(reading.truth, unit),
        estimated(reading.measured, lambda value: quantity(value, unit)),
        estimated(reading.error, lambda value: quantity(value, unit)),
        ABSENT if reading.share is None else percent(reading.share),
        ABSENT if reading.spread is None else quantity(reading.spread, unit),
        ABSENT if resolution is None else quantity(resolution, unit),
        promise(reading),
    )


def promise(reading: Reading) -> str:
    """Say whether an instrument reads a known truth as it should: ``within 1 %``, ``off by 2.0 MiB (0.78 %)``."""
    promised, error = INSTRUMENTS[reading.metric], reading.error.value
    if reading.misjudged:
        return f"misjudged: {reading.misjudged}"
    if reading.verdict == "undecided":
        return "undecided: the trials vary too much"
    if reading.verdict == "off":
        share = "" if reading.share is None else f" ({percent(reading.share)})"
        return f"off by {quantity(error, promised.unit)}{share}"
    if reading.tolerance == 0:
        return "exact"
    in_share = reading.tolerance > promised.floor
    return f"within {100 * promised.share:g} %" if in_share else f"within {quantity(promised.floor, promised.unit)}"


def percent(share: float) -> str:
    """Return a share in per cent with two digits: ``0.43 %``, ``12 %``."""
    size = abs(100 * share)
    return (
        f"{100 * share:.0f} %" if size >= 9.95 else f"{100 * share:.1f} %" if size >= 0.95 else f"{100 * share:.2f} %"
    )


def multiple(ratio: Estimate | None) -> str:
    """Return a factor with its interval: ``1.04× (1.02 to 1.06)``."""
    return ABSENT if ratio is None else estimated(ratio, factor)


UNITS: dict[Unit, Callable[[float], str]] = {
    "s": duration,
    "bytes": amount,
    "samples/s": rate,
    "times the floor": factor,
}
"""How an estimate in a unit is written; a count is written without its interval."""


def figure_in_words(figure: Figure, row: Row) -> str:
    """Return the cell of a figure's column."""
    found = row[figure.name]
    if figure.name == "saved":
        return pays_off(row["convert_time"], found)
    if figure.name == "waiting":
        return waiting(found, row["waiting_bytes"])
    return estimated(found, UNITS[figure.unit]) if figure.unit in UNITS else most(found)


def level(growth: str | None, level: Estimate | None, held: Estimate | None) -> str:
    """Put a verdict on memory over the steps into words, with the level and how much the allocator holds."""
    if level is None:
        return "undecided: too few steps"
    kept = held.value if held and 2**20 <= held.value <= level.value else 0.0
    whose = f", {amount(kept)} of it held by the allocator" if kept else ""
    return f"{growth or 'undecided'} at {amount(level.value)}{whose}"


def over_steps(row: Row) -> str:
    """Put a row's verdict on memory over the steps into words, with the bound behind it."""
    said = level(row.growth, row["level"], row["level_held"])
    if row.growth_bound is None or "growing" in (row.growth or "growing"):
        return said
    return f"{said}: grows by at most {gain(row.growth_bound)}"


def one_line(text: str) -> str:
    """Return a text on a single printable line, whatever characters it contains."""
    return printable(" ".join(text.split()))


def in_markdown(text: str) -> str:
    """Return a text that stays a single line of text in Markdown, whatever it holds."""
    return " ".join(text.split()).replace("<", "&lt;")


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, each text of which stays in its cell."""
    every = (
        [in_markdown(each).replace("|", "\\|") for each in row] for row in (headings, ["---"] * len(headings), *rows)
    )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in every)


def ordered(order: OrderQuality | None) -> str:
    """Describe an order in figures: ``displacement 0.33, label runs of 1.1, 18 % same-shard neighbours``."""
    if order is None:
        return ABSENT
    tail = "" if order.tail_monotony is None else f", last tenth {order.tail_monotony:.0%} in order"
    return (
        f"displacement {order.displacement:.2f}, label runs of {order.label_run_length:.1f}, "
        f"{order.same_shard_neighbours:.0%} same-shard neighbours{tail}"
    )


def odd(files: OddFiles | None) -> str:
    """Say what a decoder makes of odd files: ``turns by EXIF; rejects CMYK, cut off``."""
    if files is None:
        return ABSENT
    turns = "turns by EXIF" if files.turned else "does not turn by EXIF"
    return f"{turns}; rejects {', '.join(files.rejected) or 'none'}"


def delivered(delivery: Delivery | None) -> str:
    """Say whether samples came as often as is documented: ``every image once: kept``."""
    if delivery is None:
        return ABSENT
    counts = "" if delivery.verdict == "kept" else f" ({delivery.words})"
    return f"{delivery.promised}: {delivery.verdict}{counts}"


def pays_off(convert: Estimate | None, saved: Estimate | None) -> str:
    """Say after how many epochs a conversion has paid for itself: its time over what an epoch saves."""
    if convert is None or saved is None:
        return ABSENT
    if convert.value <= 0 and saved.value > 0:
        return "immediately"
    if saved.low is None or saved.high is None:
        epochs = f"after {_epochs(convert.value / saved.value)}" if saved.value > 0 else "never: it is slower to read"
        return f"{epochs} (single sample)"
    if saved.high < 0:
        return "never: it is slower to read"
    if saved.low <= 0:
        return "undecided: it may save no time"
    soonest, latest = math.ceil(convert.value / saved.high), math.ceil(convert.value / saved.low)
    return f"after {_epochs(convert.value / saved.value)} ({soonest} to {latest})"


MAY_LOSE = "may lose samples"


def roles(row: Row) -> list[str]:
    """Return why a strategy is never recommended: ``historic``, ``ceiling``, ``may lose samples``, or nothing."""
    what = (("historic", row.historic), ("ceiling", row.ceiling), (MAY_LOSE, row.may_lose))
    return [word for word, holds in what if holds]


def of_times(row: Row) -> list[str]:
    """Return what else is to be known of a strategy's times."""
    many = f"delivers {row.delivered} samples instead of {row.instead_of}" if row.instead_of else ""
    late = f"epochs end up to {duration(row.ends_late)} late" if row.ends_late else ""
    return [*filter(None, (many, late))]


def rounds(rows: Sequence[Row]) -> str:
    """Return ``3 rounds``, or ``3 to 10 rounds`` where some of these rows have more trials than others."""
    forked = sum(len(row.forked) for row in rows)
    which = f", {forked} of {sum(row.samples for row in rows)} trials forked" if forked else ""
    trials = [row.trials for row in rows if row.samples]
    return f"{in_rounds(min(trials, default=0), max(trials, default=0))}{which}"


def fewest_rounds(comparisons: Iterable[Comparison]) -> int:
    """Return in how few rounds a strategy that was measured at all was measured."""
    return min((row.trials for each in comparisons for row in each.rows if row.samples), default=0)


def in_rounds(fewest: int, most: int) -> str:
    """Return ``1 round``, ``8 rounds`` or ``8 to 24 rounds``."""
    span = f"{fewest} to {most}" if 0 < fewest < most else str(most)
    return f"{span} {'round' if most == 1 else 'rounds'}"


def processes(comparisons: Iterable[Comparison]) -> str:
    """Say in what processes the trials ran."""
    if any(comparison.has_forks for comparison in comparisons):
        return "in a fresh process or a fork of one that had done the imports"
    return "in a fresh process"


def sampled(method: str) -> str:
    """Say what memory is where the kernel keeps no peak: ``resident sets sampled every 5 ms``; empty where it does."""
    return f"resident sets {method}" if method.startswith("sampled") else ""


def of_memory(environment: Environment) -> str:
    """Say what figures of memory rest on where the system tells less than Linux; empty where it tells all."""
    sets = sampled(environment.memory_method)
    return sets and (
        f"Memory rests on {sets}: this system does not tell what of it can be reclaimed, a short peak may be missed, "
        f"and the memory of several processes is unknown, as they share some."
    )


def without_start(comparisons: Iterable[Comparison]) -> str:
    """Say why some strategies have no start figures; empty if none lacks them."""
    lacking = [
        each for each in comparisons if any(row.lacks_start for row in each.rows if row.case == each.about.default_case)
    ]
    if not lacking:
        return ""
    command = to_measure([each.question for each in lacking], lacking, "--fresh")
    return f"Start is measured in fresh processes only; to measure it where it is missing, run {command}."


def to_measure(questions: Iterable[str], like: Sequence[Comparison], *options: str) -> str:
    """Return the command that measures questions with the data of comparisons of one set."""
    data = _data_of(like[0]) if like else []
    return shlex.join(["python", "-m", "loaders", "compare", *questions, *options, *data])


def measure_on(comparison: Comparison) -> list[str]:
    """Return the commands that measure what is not measured yet; ``make bench`` is one if it measures any of it."""
    about = comparison.about
    words = ["python", "-m", "loaders", "compare", comparison.question, *conditions(comparison)]
    if not all(about.is_default(row.case) for row in comparison.unmeasured):
        words.append("--all-cases")
    is_default = any(about.is_default(row.case) for row in comparison.unmeasured)
    has_bench = comparison.size == "small" and is_default and not about.apart and not comparison.data.startswith(OWN)
    return [*["make bench"] * has_bench, shlex.join(words)]


def conditions(comparison: Comparison) -> list[str]:
    """Return the options that a trial and a comparison share."""
    epochs = ["--epochs", str(comparison.epochs)] if comparison.epochs > 1 else []
    return [*_data_of(comparison), *epochs]


def _data_of(comparison: Comparison) -> list[str]:
    """Return the options that choose its data."""
    return ["--size", comparison.size, *(["--data", "FOLDER"] if comparison.data.startswith(OWN) else [])]


def most(counts: Estimate | None) -> str:
    """Return the mean over trials of a peak count: ``2``, ``7.3``."""
    return ABSENT if counts is None else f"{counts.value:.3g}"


def waiting(elements: Estimate | None, size: Estimate | None) -> str:
    """Return the peak number of waiting elements, and their size: ``6 (240 MiB)``."""
    if elements is None:
        return ABSENT
    return most(elements) + (f" ({amount(size.value)})" if size and size.value else "")


def _epochs(count: float) -> str:
    whole = math.ceil(count)
    return f"{whole:,} {'epoch' if whole == 1 else 'epochs'}"


def case_in_words(case: dict[str, str]) -> str:
    """Return ``scale 0.5``; empty for a question without axes."""
    return ", ".join(f"{axis} {value}" for axis, value in case.items())


def growth_in_words(growth: Growth) -> str:
    """Return the verdict with the figure that decides it.

    ``flat at 12.0 MiB: grows by at most 0.8 MiB per 1000 steps (measured over 400 steps)``, ``growing, in use: 64.0 KiB
    a step (63.1 to 64.9)``. "No leak" appears only if the memory in use has such a bound (see ``growth.IN_USE``).
    """
    bound = None if growth.verdict == IN_USE else growth.in_use_bound
    leaks = "" if bound is None else f"no leak: memory in use grows by at most {gain(bound)}"
    if growth.verdict == "undecided":
        return f"undecided: {growth.message}"
    if growth.verdict in ("flat", "plateau"):
        kept = max(0.0, growth.held or 0.0)
        # The allocator's share may exceed the level: pages that were returned to the system are not resident.
        whose = f", {amount(kept)} of it held by the allocator" if 2**20 <= kept <= growth.level else ""
        said = f"{growth.verdict} at {amount(growth.level)}{whose}"
        if growth.bound is None:  # an older record
            return f"{said} over {growth.steps} steps, with no bound on its growth"
        said = f"{said}: grows by at most {gain(growth.bound)} (measured over {growth.over} steps)"
        return "; ".join(filter(None, [said, leaks]))
    slope, low, high = (each / 2**10 for each in (growth.slope, growth.low, growth.high))
    said = f"{growth.verdict}: {slope:.1f} KiB a step ({low:.1f} to {high:.1f})"
    return "; ".join(filter(None, [said, leaks, growth.message]))


def gain(bound: float) -> str:
    """Return a bound on growth, rounded up: ``0.8 MiB per 1000 steps``."""
    return f"{amount(math.ceil(bound / MIB * 10) * MIB / 10)} per 1000 steps"


def cached(shares: Iterable[tuple[float, float] | None]) -> str:
    """Return how much of the files was in the page cache: ``100 %``, ``0 to 2 %``; empty if no files were read."""
    known = [share for each in shares if each for share in each]
    if not known:
        return ""
    low, high = (round(100 * share) for share in (min(known), max(known)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def hardware_in_words(environment: Environment) -> str:
    """Return only the machine, for a heading over results of several commits."""
    return (
        f"{environment.machine}: {environment.cpu}, {environment.cores} cores, {environment.memory / 2**30:.0f} GiB; "
        f"{environment.system} {environment.kernel}, {environment.allocator}"
    )


def set_beforehand(environment: Environment) -> str:
    """Return the environment variables that whoever ran the trials had set: ``TF_ENABLE_ONEDNN_OPTS=1``."""
    always = {*PINNED, *QUIET}
    return " ".join(f"{name}={value}" for name, value in sorted(environment.variables.items()) if name not in always)


def elsewhere(environment: Environment, usual: str) -> str:
    """Say in brackets on which machine something was measured, unless on the usual one, and with what set."""
    where = f"on {environment.machine}" if environment.machine != usual else ""
    given = set_beforehand(environment)
    said = ", ".join(filter(None, [where, given and f"measured with `{given}` set"]))
    return f" ({said})" if said else ""


def software_in_words(environment: Environment) -> str:
    """Return the software that ran: ``Python 3.11.7; tensorflow 2.21.0, numpy 2.4.6; commit 1234abcd``."""
    commits = ", ".join(each[:8] for each in environment.commit.split(", ")) or "unknown"
    versions = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    onednn = f"; oneDNN {environment.onednn}" if environment.onednn else ""
    given = f"; with {given}" if (given := set_beforehand(environment)) else ""
    return f"Python {environment.python}; {versions}{onednn}{given}; commit {commits}"


def machine_in_words(environment: Environment) -> str:
    """Return, on one line, the context that must accompany every quoted figure."""
    if not environment.packages:
        return f"{environment.machine}: the trial ended before it could describe its environment"
    return (
        f"{hardware_in_words(environment)}; {software_in_words(environment)}; peaks: {environment.memory_method}"
        + ("" if environment.page_cache is None else f"; records in the page cache: {environment.page_cache:.0%}")
        + "".join(f"; {each}" for each in _settings(environment))
    )


def _settings(environment: Environment) -> Iterator[str]:
    """Yield the machine's settings and its state during the run, as far as they are known."""
    if environment.virtual:
        yield "a virtual machine"
    if environment.governor:
        yield f"governor {environment.governor}"
    if environment.frequency or environment.frequency_limit:
        now = f"{environment.frequency / 1e9:.2f} " if environment.frequency else ""
        limit = f"of {environment.frequency_limit / 1e9:.2f} " if environment.frequency_limit else ""
        yield f"{now}{limit}GHz" if now else f"at most {limit.removeprefix('of ')}GHz"
    if environment.huge_pages:
        yield f"huge pages: {environment.huge_pages}"
    if environment.load is not None:
        yield f"load before: {environment.load:.2f}"
    if environment.swap:
        yield f"swap in use: {amount(environment.swap)}"


def disturbed(found: Disturbed | None) -> str:
    """Say what disturbed a comparison, or for how many trials that was not recorded; empty if all were quiet."""
    if found is None:
        return ""
    said = []
    if found.busy:
        whose = [f"other processes up to {found.others:.0%}"] if found.others >= 0.005 else []
        whose += [f"other guests of its host up to {found.stolen:.0%}"] if found.stolen >= 0.005 else []
        said.append(
            f"in {found.busy} of {found.trials} trials, others used more than {BUSY:.0%} of the processor time "
            f"({', '.join(whose)})"
        )
    if found.swapped:
        said.append(f"in {found.swapped} of {found.trials} trials, it swapped (up to {amount(found.most_swapped)})")
    if found.throttled:
        said.append(f"in {found.throttled} of {found.trials} trials, heat throttled its processors")
    every = found.trials + found.unrecorded
    sentences = []
    if found.is_busy:
        sentences.append(
            f"The machine was not quiet: {'; '.join(said)}. Repeat the comparison with nothing else running."
        )
    if found.unrecorded:
        which = "any trial" if not found.trials else f"{found.unrecorded} of {every} trials"
        sentences.append(f"Whether the machine was quiet was not recorded for {which}.")
    if found.repeated:
        sentences.append(
            f"{found.repeated} of {every} trials were repeated because others used the processor; "
            "the least disturbed run counts."
        )
    return " ".join(sentences)
