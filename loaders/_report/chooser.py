"""The chooser's lookup table: the decisions of ``loaders._advise.choose`` for every setting that the page offers.

The rule runs only here. For each combination of settings the page holds the kind of each strategy, as a letter, and
the figures that its own sentences need: memory by number of samples, and seconds by round.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from loaders import _words
from loaders._advise.candidates import Choice
from loaders._advise.choose import (
    Candidate,
    Decision,
    Kind,
    Settings,
    is_steady,
    laws_of,
    memory_of,
    once_of,
    reckon,
    why_unknown,
)

MEMORY = tuple(2**26 * 2**power for power in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10))
STEPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Training step times, in seconds."""
BATCHES = (32, 64, 128, 256)
SAMPLES = (1000, 10_000, 100_000, 1_000_000)
EPOCHS = (1, 20, 100)

VALUES = {"memory": MEMORY, "step": STEPS, "batch": BATCHES, "samples": SAMPLES, "epochs": EPOCHS}

DEFAULT = Settings(memory=2**30, step=0.05, batch=32, samples=10_000, epochs=20)

LETTERS: dict[Kind, str] = {
    "recommended": "r",
    "as good": "g",
    "slower": "s",
    "undecided": "u",
    "not worth installing": "i",
    "does not fit": "m",
    "memory unknown": "k",
    "time unknown": "t",
    "historic": "h",
    "ceiling": "c",
    "other output": "o",
    "failed": "f",
    "not measured": "n",
}


def options() -> dict[str, list[tuple[str, str, bool]]]:
    """Return the options of the page's selects: the index, the words, and whether it is the default."""
    words: dict[str, Callable[[Any], str]] = {
        "memory": lambda size: f"{size >> 20} MiB" if size < 2**30 else f"{size >> 30} GiB",
        "step": lambda step: _words.duration(step) if step else "no training step",
    }
    return {
        name: [
            (str(index), words.get(name, "{:,}".format)(value), value == getattr(DEFAULT, name))
            for index, value in enumerate(values)
        ]
        for name, values in VALUES.items()
    }


def embedded(choice: Choice) -> dict[str, Any]:
    """Return one choice as the page embeds it; ``answers`` runs over step, batch, samples, epochs and memory."""
    return msgspec.json.decode(_embedded(msgspec.json.encode(choice)))


@functools.lru_cache(maxsize=256)
def _embedded(encoded: bytes) -> bytes:
    choice = msgspec.json.decode(encoded, type=Choice)
    among, source = choice.candidates, choice.source
    laws, steady = laws_of(among), is_steady(among)
    measured = [each for each in among if each.amounts]
    once = {samples: {each.name: once_of(each, samples, steady=steady) for each in measured} for samples in SAMPLES}
    table: dict[str, int] = {}
    answers = []
    for step, batch, samples, epochs in itertools.product(STEPS, BATCHES, SAMPLES, EPOCHS):
        reckoned = reckon(among, Settings(0, step, batch, samples, epochs), laws, once[samples])
        for memory in MEMORY:
            answers.append(table.setdefault(_lettered(reckoned.decide(memory), among), len(table)))
    bounds = {
        each.name: [
            [memory_of(each, laws[each.name], Settings(0, batch=batch, samples=samples)) for samples in SAMPLES]
            for batch in BATCHES
        ]
        for each in among
        if each.name in laws
    }
    unknown = [[None] * len(SAMPLES)] * len(BATCHES)
    return msgspec.json.encode(
        {
            "strategies": [
                {
                    "name": each.name,
                    "tier": each.tier,
                    "problem": each.problem,
                    "needs": each.needs,
                    "settings": each.settings,
                    "why": why_unknown(each, laws),
                    "held": each.held,
                    "memory": [
                        [bound and (bound.value, bound.low, bound.high) for bound in of_batch]
                        for of_batch in bounds.get(each.name, unknown)
                    ],
                    **_paces(each, [once[samples].get(each.name, {}) for samples in SAMPLES], steady=steady),
                }
                for each in among
            ],
            "table": list(table),
            "answers": answers,
            "measured": source.measured,
            "machine": source.machine,
            "from": f"{_words.in_rounds(source.fewest, source.rounds)} of {source.machine}, "
            f"{source.cpu}, commit {source.commit or 'unknown'}, with "
            f"{', '.join(map(str, source.amounts))} samples in batches of 32"
            + (f", with {source.given}" if source.given else "")
            + (f", memory by {sampled}" if (sampled := _words.sampled(source.peaks)) else ""),
        }
    )


def _lettered(decision: Decision, among: Sequence[Candidate]) -> str:
    """Return the kinds as letters, upper case for rivals, then ``y``, ``n`` or ``?``: is loading the bottleneck?"""
    letters = [
        LETTERS[decision.kinds[each.name]].upper()
        if each.name in decision.rivals
        else LETTERS[decision.kinds[each.name]]
        for each in among
    ]
    return "".join(letters) + {True: "y", False: "n", None: "?"}[decision.bottleneck]


def _paces(candidate: Candidate, once: Sequence[Mapping[int, float]], *, steady: bool) -> dict[str, list[Any]]:
    """Return seconds by round: for the loader on its own, closing, and the wait of a slow consumer, a sample; and once.

    ``once`` holds what a conversion and the first epoch add, for each number of samples that the page offers.
    """
    if not candidate.amounts:
        return {"load": [], "closed": [], "wait": [], "once": [[] for _ in SAMPLES]}
    amount = candidate.largest
    epochs = amount.steady if steady and amount.steady else amount.first
    closed = {index: amount.closing.get(index, 0.0) / amount.samples for index in epochs}
    load = {index: seconds / amount.samples - closed[index] for index, seconds in epochs.items()}
    slow = {index: each * amount.batches / amount.samples for index, each in amount.wait.items()}
    return {
        "load": list(load.values()),
        "closed": list(closed.values()),
        "wait": [slow.get(index, each) for index, each in load.items()],
        "once": [[float(f"{found[index]:.4g}") for index in load] for found in once],
    }
