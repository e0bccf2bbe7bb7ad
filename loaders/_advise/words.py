"""A decision in words: what to use and why, and a verdict on every strategy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from loaders import _words
from loaders._advise.choose import CHOICE, WORTH, Candidate, Decision, Kind, Reckoned, Settings, reckon, why_unknown
from loaders._judge import TIME_MARGIN, Judged
from loaders._law import Kind as LawKind
from loaders._law import Law
from loaders._stats import Estimate, estimate


class Advised(msgspec.Struct, frozen=True):
    """One strategy's verdict, with the figures behind it.

    Attributes
    ----------
    memory
        In bytes: what it needs at the reader's samples; ``None`` if that is unknown.
    law
        How its memory depends on the amount of data.
    wait
        In seconds: how long a step waits for its batch, on average over all epochs, the start and a conversion
        included; without a step, how long a batch takes.
    total
        In seconds: all epochs, training steps included.
    ratio
        ``total`` over that of the fastest strategy that may be taken.
    needs
        The packages that must be installed first, if any.
    """

    name: str
    kind: Kind
    verdict: str
    memory: Estimate | None = None
    law: LawKind | None = None
    wait: Estimate | None = None
    total: Estimate | None = None
    ratio: Estimate | None = None
    needs: str = ""


class Source(msgspec.Struct, frozen=True):
    """Where an answer's figures come from: one run of one question, of one state of the code, on one processor.

    ``peaks`` says how peaks of memory were read; ``given`` holds the environment variables that were set for all;
    ``batch`` is the number of samples in a batch. ``rounds`` is the number that the strategies that were measured most
    often were measured in, ``fewest`` that of the others.
    """

    machine: str
    own: bool
    cpu: str
    cores: int
    commit: str
    rounds: int
    started: str
    size: str
    data: str
    amounts: list[int]
    measured: int
    strategies: int
    peaks: str = ""
    given: str = ""
    batch: int = 32
    fewest: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What to take, or why nothing can be named, with a verdict on every strategy, best first.

    ``beyond`` says what more machines would do, where one cannot feed the step; else it is empty.
    """

    recommended: str | None
    because: str
    bottleneck: bool | None
    decided: bool
    question: str
    case: dict[str, str]
    settings: Settings
    source: Source | None = msgspec.field(name="from")
    strategies: list[Advised] = []
    beyond: str = ""


def answer(
    question: str,
    case: dict[str, str],
    candidates: Sequence[Candidate],
    settings: Settings,
    source: Source | None,
    measure: str,
    left: str = "",
    laws: Mapping[str, Law] | None = None,
) -> Answer:
    """Return the decision on the candidates in words.

    ``measure`` is the command that measures them, empty if none measures more; ``left`` says which of them a
    recommendation was chosen from, if not from all; ``laws`` are those of memory, if more is known of them than was
    measured.
    """
    reckoned = reckon(candidates, settings, laws)
    decision = reckoned.decide(settings.memory)
    rank = {name: index for index, name in enumerate(CHOICE)}
    found = [_advised(each, decision, reckoned, settings) for each in candidates]
    found.sort(
        key=lambda each: (
            rank.get(each.kind, len(CHOICE)),
            each.total.value if each.total and each.kind in CHOICE else 0.0,
            each.kind,
            each.name,
        )
    )
    said = (
        _why(decision, reckoned, settings, source, left)
        if decision.recommended
        else _why_not(decision, reckoned, settings, source, measure)
    )
    return Answer(
        decision.recommended,
        " ".join(said),
        decision.bottleneck,
        decision.decided,
        question,
        case,
        settings,
        source,
        found,
    )


def _advised(one: Candidate, decision: Decision, reckoned: Reckoned, settings: Settings) -> Advised:
    kind = decision.kinds[one.name]
    memory, law = reckoned.memory.get(one.name), reckoned.laws.get(one.name)
    is_timed = kind != "time unknown"
    totals, waits = (each.get(one.name) if is_timed else None for each in (reckoned.totals, reckoned.waits))
    judged = None
    if kind in CHOICE and decision.fastest:
        judged = reckoned.fits.compare(one.name, decision.fastest, margin=TIME_MARGIN)
    return Advised(
        one.name,
        kind,
        _verdict(one, kind, decision, judged, memory, why_unknown(one, reckoned.laws), settings),
        memory,
        law.kind if law else None,
        _waited(waits) if waits else None,
        estimate(list(totals.values()), "ratio") if totals else None,
        judged.ratio if judged else None,
        one.needs,
    )


def _verdict(
    one: Candidate,
    kind: Kind,
    decision: Decision,
    judged: Judged | None,
    memory: Estimate | None,
    why: str,
    settings: Settings,
) -> str:
    high = memory.high if memory and memory.high is not None else 0.0
    ratio = "" if judged is None or one.name == decision.fastest else _ratio(judged, may_lead=kind == "undecided")
    match kind:
        case "recommended":
            return f"recommended{'' if decision.decided else ', undecided'}{f': {ratio}' if ratio else ''}"
        case "as good":
            return f"as good: {ratio or 'the fastest that fits; another is simpler, or surer to keep up'}"
        case "slower" | "undecided":
            return ratio or "undecided"
        case "not worth installing":
            return f"not worth installing {one.needs}: not shown to be {WORTH:g} times as fast as what needs no more"
        case "does not fit":
            return f"does not fit: needs up to {_words.enough(high)} for {settings.samples} samples"
        case "memory unknown":
            return f"memory unknown for {settings.samples} samples: {why}"
        case "time unknown":
            return (
                f"time unknown: its files were read from memory, which held those of {one.held:.0f} samples and no more"
            )
        case "historic":
            return "historic: kept because existing code uses it"
        case "ceiling":
            return "ceiling: shows what the machine can do; not a loader to choose"
        case "other output":
            return f"other output: {one.tier}"
        case "failed":
            return one.problem if one.problem.startswith("failed") else f"failed: {one.problem}"
        case "not measured":
            return one.problem or "not measured"


def _ratio(judged: Judged, *, may_lead: bool) -> str:
    """Put a total's ratio to that of the fastest into words; what may be the fastest is not said to be slower."""
    ratio = judged.ratio
    if ratio.low is None or ratio.high is None:
        return f"undecided ({_words.factor(ratio.value)}, single sample)"
    low, high = (_words.factor(each).removesuffix("×") for each in (ratio.low, ratio.high))
    if judged.verdict == "more" and not may_lead:
        small = ", by less than 10 %" if judged.small else ""
        return f"{_words.factor(ratio.value)} slower ({low} to {high}){small}"
    if judged.verdict == "no difference":
        return f"no difference ({low} to {high})"
    rounds = f": {judged.rounds} rounds would decide" if judged.rounds else ""
    return f"undecided ({low} to {high}){rounds}"


def _why(decision: Decision, reckoned: Reckoned, settings: Settings, source: Source | None, left: str) -> Iterator[str]:
    """Yield the sentences of a recommendation, first whether loading is the bottleneck."""
    winner = decision.recommended or ""
    wait = _words.estimated(_waited(reckoned.waits[winner]), _words.duration)
    step = _words.duration(settings.step)
    if not settings.step:
        yield f"Without a training step, all time is loading: a batch of {settings.batch} takes {wait}."
    elif decision.bottleneck is False:
        yield (
            f"Loading is not the bottleneck: with {winner}, a step of {step} waits {wait}, less than 10 % of it, if "
            "the step leaves the processor to the loader."
        )
    elif decision.bottleneck:
        yield f"Loading is the bottleneck: even with {winner}, a step of {step} waits {wait}."
    else:
        yield (
            f"Whether loading is the bottleneck is undecided: with {winner}, a step of {step} waits {wait}; more than "
            f"10 % of it would be one."
        )
    allowed = [name for name, kind in decision.kinds.items() if kind in CHOICE]
    dear = [name for name, kind in decision.kinds.items() if kind == "not worth installing"]
    besides = f", besides {len(dear)} not worth installing" if dear else ""
    close = sum(kind in ("recommended", "as good") for kind in decision.kinds.values())
    if len(allowed) == 1:
        yield f"{winner} is the only strategy{left} that is certain to fit{besides}."
    elif close > 1:
        these = "those that keep up with training" if decision.bottleneck is False else "these"
        yield (
            f"Of the {len(allowed)} strategies{left} that are certain to fit{besides}, {close} are at most 10 % slower "
            f"than the fastest. {winner} is the simplest of {these}."
        )
    else:
        leads = "is the fastest" if decision.decided else "has the shortest time"
        yield f"{winner} {leads} of the {len(allowed)} strategies{left} that are certain to fit{besides}."
    if not decision.decided:
        yield f"Undecided: {_listed(decision.rivals)} may be faster; more rounds would decide."
    memory, law = reckoned.memory[winner], reckoned.laws[winner]
    if memory and memory.high is not None:
        kind = f" ({law.kind})" if law.kind != "unknown" else ""
        how = f", by {sets}" if source and (sets := _words.sampled(source.peaks)) else ""
        yield f"It needs at most {_words.enough(memory.high)} for {settings.samples} samples{kind}{how}."
    chosen = next(each for each in reckoned.candidates if each.name == winner)
    if chosen.settings:
        yield f"Its process needs {chosen.settings} in its environment."
    if chosen.needs:
        yield f"It needs an installation: pip install {chosen.needs}."
    yield from _lacking(decision, reckoned, source)
    if unknown := [name for name, kind in decision.kinds.items() if kind == "memory unknown"]:
        yield f"Left out, as what memory they need is unknown: {_listed(unknown)}."
    if dear:
        yield f"Left out, as they fit but are not worth installing: {_listed(dear)}."
    yield from _too_large(decision, settings)


def _lacking(decision: Decision, reckoned: Reckoned, source: Source | None) -> Iterator[str]:
    # What was measured by a version that had its code, or in some of its trials, is counted as measured.
    lacking = [
        name for name, kind in decision.kinds.items() if kind == "not measured" and not reckoned.totals.get(name)
    ]
    if lacking and source:
        yield (
            f"This covers {source.measured} of {source.strategies} strategies; what could be used and is not measured "
            f"there: {_listed(lacking)}."
        )


def _too_large(decision: Decision, settings: Settings) -> Iterator[str]:
    if large := [name for name, kind in decision.kinds.items() if kind == "time unknown"]:
        yield (
            f"Left out, as their files were timed in memory, which does not hold those of {settings.samples} samples: "
            f"{_listed(large)}."
        )


def _why_not(
    decision: Decision, reckoned: Reckoned, settings: Settings, source: Source | None, measure: str
) -> Iterator[str]:
    """Yield the sentences if nothing is recommended: the least memory that would do, and what to measure."""
    kinds = decision.kinds
    further = f"To measure it: {measure}"
    if not measure and source and source.amounts:
        further = f"The amounts that are measured by default end at {max(source.amounts)} samples."
    bounds = {
        name: bound.high
        for name, bound in reckoned.memory.items()
        if kinds[name] == "does not fit" and bound and bound.high is not None
    }
    unknown = [name for name, kind in kinds.items() if kind == "memory unknown"]
    yield from _too_large(decision, settings)
    other = "other " if "time unknown" in kinds.values() else ""
    if bounds:
        least = min(bounds, key=lambda name: (bounds[name], name))
        yield (
            f"No {other}strategy is certain to fit into {_words.amount(settings.memory)} with {settings.samples} "
            f"samples. {least} would fit into {_words.enough(bounds[least])}."
        )
        if unknown:
            why = _first_reason(unknown, reckoned)
            yield f"The memory of {_listed(unknown)} is unknown{f' ({why})' if why else ''}. {further}"
    elif unknown:
        why = _first_reason(unknown, reckoned)
        said = f" ({why})" if why else ""
        yield (
            f"How much memory {settings.samples} samples need is unknown for every {other}eligible strategy: "
            f"{_listed(unknown)}{said}."
        )
        yield further
    elif "time unknown" not in kinds.values():
        failed = [name for name, kind in kinds.items() if kind == "failed"]
        without = f" without a failure: {_listed(failed)} went wrong" if failed else ""
        yield f"No eligible strategy has been measured{without}.{f' To measure them: {measure}' if measure else ''}"


def _first_reason(unknown: Sequence[str], reckoned: Reckoned) -> str:
    """Return the first known reason why their memory is unknown."""
    found = (each for name in unknown for each in reckoned.candidates if each.name == name and each.amounts)
    return next((f"{each.name}: {why_unknown(each, reckoned.laws)}" for each in found), "")


def _waited(waits: Mapping[int, float]) -> Estimate:
    """Return the mean wait of a step, with an interval that does not go below zero."""
    found = estimate(list(waits.values()), "linear")
    return found if found.low is None else msgspec.structs.replace(found, low=max(0.0, found.low))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
