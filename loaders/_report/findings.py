"""What a comparison found, in sentences made from its figures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loaders._calibration import INSTRUMENTS, Calibration
from loaders._rows import Row, Scaling
from loaders._stats import ratio_of
from loaders._words import amount, duration, factor, percent, promise, quantity, small_amount, times

FAT = 2
"""Peak memory over the baseline's, by the lower end of the interval, from which on a slow strategy is to be avoided."""

CURED = 1.25
"""Peak over floor below which a cure is worth naming."""

MONOTONE = 0.9
"""Share of the last tenth of all steps that goes on to the next record."""


def name_of(row: Row, rows: Sequence[Row]) -> str:
    """Return a strategy's name, with its tier where there are several: they do not deliver the same."""
    return f"{row.strategy} ({row.tier})" if len({each.tier for each in rows}) > 1 else row.strategy


def of_time(rows: Sequence[Row]) -> str:
    """Say which strategy is fastest, and by how much, if the intervals allow. ``rows`` stand fastest first."""
    timed = [row for row in rows if row.time]
    if not timed:
        return "No strategy was timed"
    best = timed[0]
    if best.is_baseline:
        return f"No strategy is faster than {best.strategy}, the baseline"
    baseline = next((row.strategy for row in rows if row.is_baseline), "the baseline")
    if best.ratio is None or best.ratio.low is None:
        return f"{name_of(best, rows)} was fastest, but a single sample shows no difference"
    if not best.ratio.differs_from_one:
        return f"No difference in time between {best.strategy} and {baseline}"
    alike = sum(_overlap(best, row) for row in timed[1:])
    name = f"{name_of(best, rows)}{', once converted,' if best.convert_time else ''}"
    those = f"{name} and {alike} more within its interval are" if alike else f"{name} is"
    return f"{those} fastest: {factor(1 / best.ratio.value)} faster than {baseline}"


def _overlap(one: Row, other: Row) -> bool:
    """Whether the intervals of two ratios to the baseline have a part in common."""
    if one.ratio is None or other.ratio is None or one.ratio.high is None or other.ratio.low is None:
        return False
    return other.ratio.low <= one.ratio.high


def frontier(rows: Sequence[Row]) -> list[Row]:
    """Return the strategies that no other beats in both time and peak memory, fastest first."""
    both = sorted((row.time.value, row.peak.value, row.strategy, row) for row in rows if row.time and row.peak)
    best: list[Row] = []
    leanest = float("inf")
    for _, peak, _, row in both:
        if peak < leanest:
            best.append(row)
            leanest = peak
    return best


def of_memory(rows: Sequence[Row]) -> str:
    """Say which strategies need least and most memory."""
    measured = sorted((row.peak.value, row.strategy) for row in rows if row.peak)
    if not measured:
        return "No strategy's memory was measured"
    (least, leanest), (most, fattest) = measured[0], measured[-1]
    return f"From {amount(least)} ({leanest}) to {amount(most)} ({fattest})"


def of_worst(rows: Sequence[Row]) -> str:
    """Say which strategy to avoid: beyond doubt slower than the baseline, at a multiple of its memory."""
    fat = [
        (row.peak.value, row.strategy, row)
        for row in rows
        if row.peak and row.peak_ratio and row.peak_ratio.resolved and (row.peak_ratio.low or 0.0) > FAT
        if row.ratio and row.ratio.resolved and (row.ratio.low or 0.0) > 1 and not (row.saved and row.saved.value > 0)
    ]
    baseline = next((row.strategy for row in rows if row.is_baseline), "")
    if not fat:
        return ""
    peak, name, row = max(fat, key=lambda each: each[:2])
    why = row.label.replace("`", "").rstrip(".")
    memory, time = times(row.peak_ratio, "leaner", "fatter"), times(row.ratio)
    return f"Avoid {name} ({why}): {amount(peak)}, {memory} than {baseline}, and {time}"


def of_later(rows: Sequence[Row]) -> str:
    """Say which strategy is fastest after the first epoch; nothing where there are no later epochs."""
    later = sorted((row.later.value, row.strategy) for row in rows if row.later)
    baseline = next((row.later.value for row in rows if row.is_baseline and row.later), None)
    if not later or baseline is None:
        return ""
    (time, name) = later[0]
    return f"In later epochs {name} takes {duration(time)}, the baseline {duration(baseline)}"


def of_pairs(rows: Sequence[Row]) -> str:
    """Say what is left of a gap where two strategies deliver the same; nothing without such pairs."""
    said = []
    for row in rows:
        if row.pair is None or row.pair.low is None:
            continue
        ratio = row.pair.value
        less_or_more = f"{factor(1 / ratio)} faster than" if ratio < 1 else f"{factor(ratio)} slower than"
        differs = less_or_more if row.pair.differs_from_one else "no different in time from"
        said.append(f"{row.strategy} is {differs} {row.matches}")
    return f"With the same output: {'; '.join(said)}" if said else ""


def of_level(rows: Sequence[Row]) -> str:
    """Say who holds memory beyond what the buffers need, and whose it is; nothing without cures."""
    cures = cures_of(rows)
    if not cures:
        return ""
    ill, _ = cures[0]
    if not ill.floor or not ill.level:
        return ""
    held = ill.level_held.value if ill.level_held else 0.0
    beyond = ill.level.value - ill.floor
    whose = f", and {amount(held)} of it was freed and is held by the allocator: no leak" if held > beyond / 2 else ""
    return f"{ill.strategy} holds {amount(ill.level.value)}, {factor(ill.level.value / ill.floor)} its floor{whose}"


def of_growth(rows: Sequence[Row]) -> str:
    """Say what ``of_level`` says, and what brings the memory down at which price; nothing without cures.

    A cure is a strategy that ``matches`` the one that it cures, and costs what it takes longer.
    """
    sentence = of_level(rows)
    if not sentence:
        return ""
    _, healed = cures_of(rows)[0]
    good = [row for row in healed if row.over_floor and row.over_floor.value < CURED]
    said = [
        f"{row.settings or row.strategy} brings its peak to {factor(row.over_floor.value)} the floor, {times(row.pair)}"
        for row in good
        if row.over_floor
    ]
    return f"{sentence}. {'; '.join(said)}" if said else sentence


def cures_of(rows: Sequence[Row]) -> list[tuple[Row, list[Row]]]:
    """Return each strategy that others cure with those others, leanest first; the one with most cures comes first."""
    by_name = {row.strategy: row for row in rows if row.samples}
    healed = [row for row in by_name.values() if row.over_floor and row.matches in by_name]
    names = Counter(row.matches for row in healed)
    return [
        (
            by_name[name],
            sorted(
                (row for row in healed if row.matches == name),
                key=lambda row: row.over_floor.value if row.over_floor else 0.0,
            ),
        )
        for name, _ in names.most_common()
        if name
    ]


def of_sweep(rows: Sequence[Row]) -> str:
    """Say how many bodies ran where most were asked for, and what that costs in memory."""
    swept = [row for row in rows if row.series and row.at.isdecimal() and row.in_flight and row.peak]
    if not swept:
        return "Time and memory over the sweep"
    most_asked = max(swept, key=lambda row: int(row.at))
    least_asked = min((row for row in swept if row.series == most_asked.series), key=lambda row: int(row.at))
    if not (most_asked.in_flight and most_asked.peak and least_asked.peak):
        return "Time and memory over the sweep"
    return (
        f"{most_asked.strategy}: {most_asked.at} asked for, {most_asked.in_flight.value:.3g} in flight; "
        f"{amount(most_asked.peak.value)} instead of {amount(least_asked.peak.value)}"
    )


def of_scaling(scaling: Sequence[Scaling]) -> str:
    """Say which strategy's memory follows the data most, and which least."""
    if not scaling:
        return ""
    least, most = scaling[0], scaling[-1]
    return (
        f"{most.strategy} needs {small_amount(most.per_sample.value)} more for each added sample, "
        f"{least.strategy} {small_amount(max(0.0, least.per_sample.value))}"
    )


def of_ceiling(rows: Sequence[Row], ceiling: str) -> str:
    """Say which strategy comes closest to the ceiling, and how much of its speed it keeps; nothing without one.

    One that reads what a conversion has decoded before does less, and is left out.
    """
    top = next((row for row in rows if row.strategy == ceiling), None)
    others = [row for row in rows if row.time and top and row is not top and row.tier == top.tier]
    others = [row for row in others if row.convert_time is None]
    if top is None or not others:
        return ""
    best = min(others, key=lambda row: row.time.value if row.time else 0.0)
    kept = ratio_of(top.time, best.time)
    if kept is None:
        return ""
    interval = "" if kept.low is None or kept.high is None else f" ({kept.low:.0%} to {kept.high:.0%})"
    return f"{best.strategy} keeps {kept.value:.0%}{interval} of what {ceiling} reaches"


def of_calibration(calibration: Calibration) -> str:
    """Say how far the instruments were off where the truth is known: times by a share, memory by an amount."""
    said = []
    for each in calibration.calibrated:
        unit, known = each.instrument.unit, [reading for reading in each.readings if reading.truth]
        if not known:
            continue
        span = " to ".join(dict.fromkeys(quantity(reading.truth, unit) for reading in (known[0], known[-1])))
        by_share = unit in ("s", "bytes a step")
        worst = max(abs((reading.share or 0.0) if by_share else reading.error.value) for reading in known)
        within = percent(worst) if by_share else quantity(worst, unit)
        said.append(f"{each.instrument.words} ({span}) {f'within {within}' if worst else 'exactly'}")
    sentences = [f"Known truths are read so: {', '.join(said)}"] if said else []
    off = [reading for reading in calibration.readings if reading.verdict == "off"]
    if off:
        named = (f"{INSTRUMENTS[each.metric].words} of {each.strategy}, {promise(each)}" for each in off)
        sentences.append(f"Not to be trusted: {'; '.join(named)}")
    open_ = {each.metric: None for each in calibration.readings if each.verdict == "undecided"}
    if open_:
        names = ", ".join(INSTRUMENTS[metric].words for metric in open_)
        sentences.append(f"Undecided, as the trials differ too much (was the machine busy?): {names}")
    return ". ".join(sentences)


def of_order(rows: Sequence[Row]) -> str:
    """Say which strategies end with one file read alone, in order."""
    ending = [row.strategy for row in rows if row.order and (row.order.tail_monotony or 0) > MONOTONE]
    mixing = [row.strategy for row in rows if row.order and (row.order.tail_monotony or 0) <= MONOTONE]
    if not ending:
        return f"{', '.join(mixing)} mix to the end"
    return f"{', '.join(ending)} end with one file, in order" + (f"; {', '.join(mixing)} do not" if mixing else "")


def of(rows: Sequence[Row]) -> str:
    """Return all of it as one line, what to avoid first."""
    memory = of_memory(rows)
    sentences = [
        of_worst(rows),
        of_time(rows),
        of_later(rows),
        of_pairs(rows),
        f"Peak memory {memory[0].lower()}{memory[1:]}",
    ]
    return ". ".join(filter(None, sentences)) + "."
