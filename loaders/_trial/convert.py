"""A conversion in its own process: how long it takes and how much memory it needs.

Started by ``child`` as ``python -m loaders._trial.convert`` in the trial's directory, with the trial on standard input.
Its last line on standard output is a ``Converted``; with exit code 1 it says what went wrong.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import msgspec

from loaders import _registry
from loaders._corpus import load_corpus
from loaders._trial import memory, timing
from loaders._trial.child import ImportedError, import_ahead, in_words, job_of, refuse_imports, warm_up
from loaders._trial.drain import drain
from loaders._trial.record import Converted, Imported, Trial


def convert(trial: Trial) -> Converted:
    """Run the conversion once, measured like a strategy."""
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    function = _registry.find_variant(trial.question, trial.strategy).convert
    assert function is not None  # noqa: S101 - for the type checker: the caller has asked
    corpus = load_corpus(Path(trial.corpus))
    import_ahead(function, trial.imports)
    malloc, peak = memory.Malloc(), memory.peak_instrument()
    warm_up(malloc, peak)
    job = job_of(trial, question, corpus)
    job.directory.mkdir()
    memory.map_code()
    gc.collect()
    malloc.trim()
    baseline, imported = memory.resident(), frozenset(sys.modules)
    peak.reset()
    timelines, _ = drain(lambda: function(job) or ())
    above = peak.read() - baseline
    refuse_imports(imported)
    return Converted(timing.epoch_time(timelines[0]), max(0, above))


def main() -> None:
    """Run the conversion of the trial on standard input."""
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    try:
        said = msgspec.json.encode(convert(trial)).decode()
    except ImportedError as error:
        said = msgspec.json.encode(Imported(error.modules)).decode()
    except Exception as error:  # noqa: BLE001 - the strategy's failure is the result
        said = f"the conversion failed: {in_words(error)}"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    os._exit(said[0] != "{")


if __name__ == "__main__":
    main()
