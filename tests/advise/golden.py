"""Settings, cases and what is decided: Python and the page are both held against them.

``python -m tests.advise.golden`` writes the file anew, after a change of the rule that is meant.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from loaders._advise import candidates
from loaders._advise.choose import Candidate, Settings, laws_of, reckon
from loaders._report.chooser import BATCHES, EPOCHS, LETTERS, MEMORY, SAMPLES, STEPS, VALUES
from loaders._trial.record import Record
from tests.advise import made

FILE = Path(__file__).with_suffix(".json")

RUNS: dict[str, list[Record]] = {
    "quiet": made.run(rounds=6),
    "noisy": made.run({name: made.noisy(each) for name, each in made.BATCHING.items()}, rounds=3, seed=2),
    "one round": made.run(rounds=1),
    "some failed": made.failed(made.run(rounds=4, seed=3), "tfdata_numpy_function"),
}


class Case(msgspec.Struct):
    """Settings are places among the page's options; kinds are letters, a strategy each, by name."""

    run: str
    settings: dict[str, int]
    recommended: str | None
    bottleneck: bool | None
    rivals: list[str]
    kinds: str


LINES = {name: 10 + 7 * (place * 5 % 11) for place, name in enumerate(made.BATCHING)}
"""Of code: given here, as the registry's change with the code."""


def choice_of(run: str) -> candidates.Choice:
    """What can be chosen from, with nothing that the registry says of the strategies today."""
    records, found = RUNS[run], [Candidate("a_new_one")]
    for name, lines in LINES.items():
        own = [each for each in records if each.strategy == name]
        found.append(
            Candidate(
                name,
                "same purpose" if name.startswith("tfdata_paths") else "identical",
                historic=name == "tf1_queue",
                ceiling=name == "opencv_pool",
                converts=name == "memory_map",
                settings="KERAS_BACKEND=tensorflow" if name == "keras_pydataset_2" else "",
                lines=lines,
                amounts=candidates.amounts(own),
                problem=candidates.problem(own),
                needs="an_engine" if name == "keras_pydataset_1" else "",
                held=50_000 if name == "memory_map" else None,
            )
        )
    return candidates.Choice(
        "batching", {"augment": "off"}, found, candidates.source(records, {"augment": "off"}, found, "box")
    )


def made_anew() -> list[Case]:
    found = []
    known = {run: choice_of(run).candidates for run in RUNS}
    laws = {run: laws_of(among) for run, among in known.items()}
    for number, places in enumerate(
        itertools.product(*(range(len(each)) for each in (MEMORY, STEPS, BATCHES, SAMPLES, EPOCHS)))
    ):
        for place, run in enumerate(RUNS):
            if (number + place * 17) % 41:
                continue
            memory, step, batch, samples, epochs = places
            among = known[run]
            settings = Settings(MEMORY[memory], STEPS[step], BATCHES[batch], SAMPLES[samples], EPOCHS[epochs])
            decision = reckon(among, settings, laws[run]).decide(settings.memory)
            named = dict(zip(VALUES, places, strict=True))
            found.append(
                Case(
                    run,
                    named,
                    decision.recommended,
                    decision.bottleneck,
                    sorted(decision.rivals),
                    "".join(LETTERS[decision.kinds[each.name]] for each in among),
                )
            )
    return found


def read() -> list[Case]:
    return msgspec.json.decode(FILE.read_bytes(), type=list[Case])


if __name__ == "__main__":
    lines = [msgspec.json.encode(each).decode() for each in made_anew()]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
