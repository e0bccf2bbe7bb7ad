"""What was found about a pipeline, in sentences and lines: for the terminal, a pull request and the page. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from loaders._advise.choose import KEEPS_UP
from loaders._probe.delivered import Delivered
from loaders._probe.found import Found
from loaders._probe.gates import Gate
from loaders._probe.pages import NewPages
from loaders._probe.stages import Stages
from loaders._words import (
    ABSENT,
    amount,
    duration,
    estimated,
    growth_in_words,
    in_markdown,
    machine_in_words,
    markdown_table,
    percent,
    rate,
)

CURES = {
    "growing, in use": (
        "Something keeps what each step makes. Look for a list or cache that outlives the step, a closure that holds "
        "batches, or Python objects that a tf.function or py_function captures anew; tracemalloc names the line for "
        "what Python allocates."
    ),
    "growing, held by the allocator": "The program has freed this memory; malloc keeps it.",
    "growing": (
        "Its processes hold more with each step. A worker's copy of a Python list grows as its objects are touched: "
        "keep paths in a NumPy array. For the rest, probe with a single process: then malloc can be asked."
    ),
}
"""By the verdict on memory: what to try."""


def answer(found: Found) -> str:
    """Return the answer in a few sentences, most urgent first."""
    return " ".join(answers(found))


def answers(found: Found) -> list[str]:
    """Return the answer, a sentence for each thing that was asked."""
    return [*_answer(found)]


def _answer(found: Found) -> Iterator[str]:
    if found.failure:
        yield f"It failed: {found.failure.rstrip('.')}."
    if found.grows == "yes" and found.growth:
        yield f"Memory grows{growth_in_words(found.growth).removeprefix('growing')}."
    yield from _bottleneck(found)
    if found.closes_late:
        yield _closing(found)
    if found.gives_back and found.new_pages:
        yield _giving_back(found.new_pages)
    if found.grows == "no" and found.growth:
        yield f"Memory does not grow: {growth_in_words(found.growth)}."
    elif found.grows == "undecided" and found.growth:
        if found.growth.verdict == "undecided":
            why = f"{growth_in_words(found.growth).removeprefix('undecided: ')} (more of them: --epochs)"
        else:
            why = "its trials differ (more of them: --trials)"
        yield f"Whether memory grows is undecided: {why}."
    if found.delivered and not found.failure:
        yield epochs_in_words(found.delivered)


def _bottleneck(found: Found) -> Iterator[str]:
    wait, step = found.figures.get("wait_time"), found.step
    if step is None or wait is None:
        return
    start = ", the start of each epoch included" if found.steps is None else ""
    said = f"a step of {duration(step)} waits {estimated(wait, duration)} for its batch{start}"
    if found.bottleneck == "yes":
        yield f"Loading holds up training: {said}, more than {percent(KEEPS_UP)} of the step."
    elif found.bottleneck == "no":
        yield f"It is not your loader: {said}, less than {percent(KEEPS_UP)} of the step."
    else:
        yield f"Whether loading holds up training is undecided: {said}; more trials would decide."


def _closing(found: Found) -> str:
    """Say what an epoch took after its last batch, and what helps."""
    said = (
        f"An epoch does not end with its last batch: dropping its iterator took up to {duration(found.closing)} "
        f"(the mean of a trial's epochs)."
    )
    if found.stages is None:
        return said
    return (
        f"{said} That is usually a thread of tf.data which tunes, and looks ever more seldom whether it may end: "
        "a single iterator over all epochs (repeat() and steps_per_epoch) meets it once, and with "
        "options.autotune.enabled = False (and numbers in place of AUTOTUNE) there is none."
    )


def _giving_back(found: NewPages) -> str:
    """Say what ``from_generator`` has done to malloc, and what undoes it."""
    return (
        f"malloc gives memory back that the next batch needs: an epoch takes {found.given_back} new pages, on which "
        f"the system spends {duration(found.spent)} of processor time, and {found.kept} with its threshold set back. "
        "from_generator, which Keras uses too, has set it for the whole process, against memory that grows "
        "(tensorflow/tensorflow#65675). To set it back, begin the generator, or __getitem__, with "
        "ctypes.CDLL(None).mallopt(-3, N), where N is the bytes of a batch, at most 32 << 20; then probe again."
    )


def cure(found: Found) -> str:
    """Return what to try if memory grows; empty if it was not shown to."""
    if found.grows != "yes" or found.growth is None:
        return ""
    said = CURES.get(found.growth.verdict, "")
    return f"{said} {measured_cures()}".rstrip() if found.growth.verdict == "growing, held by the allocator" else said


def measured_cures() -> str:
    """Return what brought such memory down in the published results, at what price; ``make readme`` keeps the file."""
    known = json.loads((Path(__file__).parent / "cures.json").read_text("utf-8"))
    return " ".join(
        f"What helped a pipeline of this suite ({name}; {known['machine']}): {'; '.join(said)}."
        for name, said in known["cures"].items()
    )


def epochs_in_words(given: Delivered) -> str:
    """Say what an epoch delivers, and whether the next delivers the same."""
    if given.unread:
        return f"What two epochs deliver could not be compared: {given.unread.rstrip('.')}."
    first, second = given.epochs
    what = f"{first.samples} samples in {first.batches} batches"
    if given.whole:
        what = f"{first.batches} batches, whose samples cannot be told apart"
    said = f"An epoch delivers {what}"
    if given.twice:
        said += f", {given.twice} of them for a second time"
    if not given.only_first and not given.only_second:
        return f"{said}; the next delivers the same, {'in the same order' if given.same_order else 'in another order'}."
    if given.whole:
        return f"{said}; the next delivers other batches, as shuffling makes them."
    if first.samples == second.samples and given.only_first == first.samples:
        return f"{said}; the next delivers as many others (as random changes to the samples do)."
    return (
        f"{said}; the next delivers {second.samples}: {given.only_first} are missing in it, and "
        f"{given.only_second} are new."
    )


def lines(found: Found) -> list[tuple[str, str]]:
    """Return headings and figures."""
    return [*_lines(found)]


def _lines(found: Found) -> Iterator[tuple[str, str]]:
    figures = found.figures

    def known(unit: Callable[[float], str], **headings: str) -> Iterator[tuple[str, str]]:
        return ((heading, estimated(figures[name], unit)) for name, heading in headings.items() if name in figures)

    yield from known(
        duration,
        first_batch_time="first batch",
        start_time="start",
        steady_time="a steady epoch",
        epoch_time="the first epoch",
    )
    is_whole = found.delivered is not None and found.delivered.whole
    yield from known(rate, throughput="batches a second" if is_whole else "samples a second")
    if found.waits and found.step is not None:
        yield (
            f"a step of {duration(found.step)} waits",
            f"{estimated(figures.get('wait_time'), duration)}; later batches of an epoch: median "
            f"{duration(found.waits.p50)}, 99th percentile {duration(found.waits.p99)}",
        )
    if (cores := found.utilisation) is not None:
        yield "cores kept busy", f"{cores:.2f} of {found.environment.cores}"
    whose = " of all processes together" if found.has_workers else ""
    yield from known(
        amount,
        peak_memory=f"peak memory{whose}",
        retained_memory="retained afterwards",
        anonymous_memory="anonymous memory",
        file_memory="memory of mapped files",
        shared_memory="shared memory",
    )
    yield "memory over the steps", growth_in_words(found.growth) if found.growth else ABSENT
    if found.delivered:
        kinds = [*found.delivered.kinds, *([f"{found.delivered.more_kinds} more"] * bool(found.delivered.more_kinds))]
        yield "a batch", "; ".join(kinds) or ABSENT
    if found.stages:
        yield from _stages(found.stages)


def _stages(found: Stages) -> Iterator[tuple[str, str]]:
    slowest = found.slowest
    if slowest:
        threads = f", in {slowest.parallelism} threads" if slowest.parallelism > 1 else ""
        yield (
            "slowest stage, by tf.data's own account",
            f"{slowest.name}: {duration(slowest.seconds)} of processor time for {slowest.elements} elements{threads}",
        )
    if found.added or found.removed:
        added = ", ".join(_times(name, count) for name, count in found.added.items())
        removed = ", ".join(_times(name, count) for name, count in found.removed.items())
        said = [f"runs {added}" if added else "", f"does not run {removed} as written" if removed else ""]
        yield "tf.data rewrote it", ", ".join(filter(None, said))


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} {count} times"


def conditions(found: Found) -> str:
    """Return on what the figures rest."""
    trials = f"{found.trials} {'trial' if found.trials == 1 else 'trials'} of {found.epochs} epochs"
    return f"{trials}, each in a process of its own, above what imports hold. {machine_in_words(found.environment)}"


def gate_lines(judged: Sequence[Gate]) -> list[tuple[str, str, str]]:
    """Return limit, state and reason."""
    return [(each.name, each.state, each.why) for each in judged]


def markdown(found: Found, judged: Sequence[Gate], command: str) -> str:
    """Return a summary for a pull request."""
    parts = [f"## {found.name}", in_markdown(answer(found))]
    if said := cure(found):
        parts.append(in_markdown(said))
    if judged:
        parts.append(markdown_table(("limit", "", "why"), gate_lines(judged)))
    parts.append(markdown_table(("", ""), lines(found)))
    parts += [in_markdown(conditions(found)), f"`{command}`"]
    return "\n\n".join(parts) + "\n"
