"""What a check found, as lines of a table: for a terminal, and as Markdown for a pull request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loaders._check.judge import (
    ALIKE_LEVEL,
    FAMILY,
    LOOKS,
    MEMORY_ALIKE,
    MEMORY_MARGIN,
    MISSED,
    TIME_ALIKE,
    TIME_MARGIN,
    Judgement,
)
from loaders._check.run import LEFT_OUT, Outcome
from loaders._words import ABSENT, amount, duration, in_markdown, markdown_table

HEADINGS = ("strategy", "time", "change", "memory", "change", "blocks", "start", "failed")


def lines(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return the cells under ``HEADINGS``, a line for each strategy that was not skipped, regressions first."""
    run = [each for each in outcomes if not each.skipped]
    ordered = sorted(run, key=lambda each: (not each.is_regression, bool(each.message), each.name))
    return [_line(each) for each in ordered]


def _line(outcome: Outcome) -> tuple[str, ...]:
    failed = failures_in_words(outcome)
    if not outcome.judgements:
        return outcome.name, outcome.message, *[ABSENT] * 4, outcome.start, failed
    blocks = str(max(each.blocks for each in outcome.judgements))
    return (
        outcome.name,
        *_cells(outcome.time, time_in_words, duration),
        *_cells(outcome.memory, memory_in_words, amount),
        blocks,
        outcome.start,
        f"{failed}; {outcome.message}" if outcome.message else failed,
    )


def _cells(each: Judgement | None, words: Callable[[Judgement], str], unit: Callable[[float], str]) -> tuple[str, str]:
    return (f"{unit(each.a)} to {unit(each.b)}", words(each)) if each else (ABSENT, ABSENT)


def failures_in_words(outcome: Outcome) -> str:
    """Return ``more often: B 8 of 8, A 0 of 8``."""
    found = outcome.failures
    if not found.a + found.b:
        return ABSENT
    counts = f"B {found.b} of {found.of_b}, A {found.a} of {found.of_a}"
    return f"more often: {counts}" if outcome.broken else counts


def time_in_words(judged: Judgement) -> str:
    """Return ``slower: +10.2 % (+7.1 to +13.4)``."""
    return _in_words(judged, lambda ratio: f"{100 * (ratio - 1):+.1f}", " %")


def memory_in_words(judged: Judgement) -> str:
    """Return ``fatter: +8.0 MiB (+7.9 to +8.1)``."""
    return _in_words(judged, lambda count: f"{count / 2**20:+.1f}", " MiB")


def _in_words(judged: Judgement, number: Callable[[float], str], unit: str) -> str:
    change = judged.change
    if change.low is None or change.high is None:
        return f"{judged.verdict}: {number(change.value)}{unit}, too few blocks"
    words = f"{judged.verdict}: {number(change.value)}{unit} ({number(change.low)} to {number(change.high)})"
    if judged.verdict != "undecided":
        return words
    if judged.enough and judged.enough <= LOOKS[-1]:
        return f"{words}; {judged.enough} blocks would decide"
    return f"{words}; {LOOKS[-1]} blocks, the most that are run, would not decide"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the verdict on the change in one sentence."""
    worse = [each.name for each in outcomes if each.is_regression]
    open_ = [each.name for each in outcomes if any(one.verdict == "undecided" for one in each.judgements)]
    unmeasured = [each.name for each in outcomes if not (each.judgements or each.broken or each.skipped)]
    failing = [each.name for each in outcomes if each.broken]
    may_fail = [each.name for each in outcomes if each.failures.b and each.failures.may_be_more and not each.broken]
    elsewise = [each.name for each in outcomes if each.timed_by]
    regressions = "regression" if len(worse) == 1 else "regressions"
    said = [f"{len(worse)} confirmed {regressions}: {', '.join(worse)}" if worse else "No confirmed regression"]
    if failing:
        said.append(f"B fails more often: {', '.join(failing)}")
    if open_:
        said.append(f"undecided: {', '.join(open_)}")
    if may_fail:
        said.append(f"whether B fails more often is undecided: {', '.join(may_fail)}")
    if unmeasured:
        said.append(f"not measured: {', '.join(unmeasured)}")
    for figure in ("time", "memory"):
        if blind := [each.name for each in outcomes if each.judgements and getattr(each, figure) is None]:
            said.append(f"{figure} not judged, as it could not be read: {', '.join(blind)}")
    for why in sorted({each.skipped for each in outcomes} - {"", LEFT_OUT}):
        names = [each.name for each in outcomes if each.skipped == why]
        said.append(f"skipped ({why}): {', '.join(names)}")
    if left_out := sum(each.skipped == LEFT_OUT for each in outcomes):
        said.append(f"may be affected, but not measured: {left_out} more (--all measures them)")
    if elsewise:
        said.append(f"timed by the whole first epoch because not every trial has a steady time: {', '.join(elsewise)}")
    environments = sorted({each.environments for each in outcomes} - {""})
    said += [f"figures may differ because the sides' environments do ({each})" for each in environments]
    return "; ".join(said) + "."


def markdown(outcomes: Sequence[Outcome], title: str, notes: Sequence[str] = ()) -> str:
    """Return the summary for a pull request: what got worse or better is shown, the rest is folded.

    ``notes`` say what could not be compared, and why.
    """
    told = [each for each in outcomes if _is_news(each)]
    rest = [each for each in outcomes if not (_is_news(each) or each.skipped)]
    parts = [f"## {title}", summary(outcomes), *(f"Note: {in_markdown(each)}." for each in dict.fromkeys(notes))]
    if told:
        parts.append(markdown_table(HEADINGS, lines(told)))
    if rest:
        heading = f"{len(rest)} without a confirmed change"
        parts.append(f"<details><summary>{heading}</summary>\n\n{markdown_table(HEADINGS, lines(rest))}\n\n</details>")
    return "\n\n".join([*parts, METHOD]) + "\n"


METHOD = (
    f"Each trial runs in a process of its own; it starts fresh, or is forked from a server that has done the imports, "
    f"as on the other side. Where steady epochs rank a question of this suite, and both sides can run them in turn, "
    f"those of two trials alternate in the order A B B A, each until its last batch; elsewhere whole trials do. A "
    f"change is confirmed if its whole interval is beyond {TIME_MARGIN - 1:.0%} of time or "
    f"{MEMORY_MARGIN / 2**20:.0f} MiB. There is no difference if an interval of {1 - 2 * ALIKE_LEVEL:.1%}, narrower "
    f"than the one shown, lies within {TIME_ALIKE - 1:.0%}, or {MEMORY_ALIKE / 2**20:.0f} MiB of memory if that is "
    f"more; of a strategy that differs by that much, it is said with a chance of at most {MISSED:.0%}. Failures are "
    f"counted on both sides (Fisher's exact test). If nothing changed, the chance of any false alarm in the whole "
    f"check is at most {FAMILY:.0%}."
)


def _is_news(outcome: Outcome) -> bool:
    verdicts = {each.verdict for each in outcome.judgements}
    return outcome.is_regression or bool(verdicts & {"faster", "leaner"}) or bool(outcome.message)
