"""A conversion in its own process: how long it takes and how much memory it needs.

Started by ``prepare`` as ``python -m loaders._trial.convert`` in the trial's directory, with the trial on standard
input. Its last line on standard output is a ``Converted``; with exit code 1 it says what went wrong.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from loaders import _registry
from loaders._corpus import load_corpus
from loaders._trial import failure, imports, timing
from loaders._trial.drain import drain
from loaders._trial.prepare import import_ahead, job_of, read_baseline, warm_instruments
from loaders._trial.record import Converted, Imported, Trial


def convert(trial: Trial) -> Converted:
    """Run the conversion once, measured like a strategy."""
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    function = _registry.find_variant(trial.question, trial.strategy).convert
    assert function is not None  # noqa: S101 - for the type checker: the caller has asked
    corpus = load_corpus(Path(trial.corpus))
    import_ahead(function, trial.imports)
    malloc, peak = warm_instruments()
    job = job_of(trial, question, corpus)
    job.directory.mkdir()
    above = read_baseline(malloc, peak)
    imported = frozenset(sys.modules)
    above.reset_peak()
    timelines, _ = drain(lambda: function(job) or ())
    highest = above.peak()
    imports.refuse(imported)
    return Converted(timing.epoch_time(timelines[0]), max(0, highest))


def main() -> None:
    """Run the conversion of the trial on standard input."""
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    try:
        said = msgspec.json.encode(convert(trial)).decode()
    except imports.ImportedError as error:
        said = msgspec.json.encode(Imported(error.modules)).decode()
    except Exception as error:  # noqa: BLE001 - the strategy's failure is the result
        said = f"the conversion failed: {failure.in_words(error)}"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    os._exit(said[0] != "{")


if __name__ == "__main__":
    main()
