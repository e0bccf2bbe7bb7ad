"""A conversion in its own process: how long it takes and how much memory it needs.

``apart`` runs it in a fork of the trial's process, which has imported what its strategies need and run nothing. Where
there is no fork, or an import has started threads, it starts ``python -m loaders._trial.convert`` in the trial's
directory, with the trial on standard input. Its last line on standard output is a ``Converted``; with exit code 1 it
says what went wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

import msgspec

from loaders import _registry
from loaders._trial import failure, imports, memory, pages, timing
from loaders._trial.drain import drain
from loaders._trial.prepare import ConversionError, corpus_of, import_ahead, job_of, read_baseline, warm_instruments
from loaders._trial.record import Converted, Imported, Trial


def convert(trial: Trial) -> Converted:
    """Run the conversion once, measured like a strategy."""
    _registry.load_files(trial.outside)
    question = _registry.find_question(trial.question)
    function = _registry.find_variant(trial.question, trial.strategy).convert
    assert function is not None  # noqa: S101 - for the type checker: the caller has asked
    import_ahead(function, trial.imports)
    malloc, peak = warm_instruments()
    job = job_of(trial, question, corpus_of(trial))
    job.directory.mkdir()
    above = read_baseline(malloc, peak)
    imported = frozenset(sys.modules)
    above.reset_peak()
    timelines, _ = drain(lambda: function(job) or ())
    highest = above.peak()
    imports.refuse(imported)
    return Converted(timing.epoch_time(timelines[0]), max(0, highest))


def apart(trial: Trial) -> Converted:
    """Run the strategy's conversion in its own process, so that it does not affect the memory of this one.

    Raises
    ------
    ConversionError, ImportedError
        If the conversion failed, or imported modules while it was measured.
    """
    can_fork = pages.AVAILABLE and pages.threads() == 1
    said, code = _forked(trial) if can_fork else _started(trial)
    if code:
        raise ConversionError(said.decode(errors="replace").strip() or f"the conversion ended with exit code {code}")
    found = msgspec.json.decode(said.splitlines()[-1], type=Converted | Imported)
    if isinstance(found, Imported):
        raise imports.ImportedError(found.modules)
    return found


def _forked(trial: Trial) -> tuple[bytes, int]:
    there = pages.present()
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        os.dup2(theirs, 1)
        memory.populate(there)
        report(trial)
    os.close(theirs)
    with open(ours, "rb") as pipe:  # noqa: PTH123 - a descriptor
        said = pipe.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _started(trial: Trial) -> tuple[bytes, int]:
    command = [sys.executable, "-m", "loaders._trial.convert"]
    done = subprocess.run(command, input=msgspec.json.encode(trial), stdout=subprocess.PIPE, check=False)
    return done.stdout, done.returncode


def report(trial: Trial) -> NoReturn:
    """Run the conversion, write what it took to standard output, and exit."""
    try:
        said = msgspec.json.encode(convert(trial)).decode()
    except imports.ImportedError as error:
        said = msgspec.json.encode(Imported(error.modules)).decode()
    except BaseException as error:  # noqa: BLE001 - the strategy's failure is the result
        said = f"the conversion failed: {failure.in_words(error)}"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    os._exit(said[0] != "{")


if __name__ == "__main__":
    report(msgspec.json.decode(sys.stdin.buffer.read(), type=Trial))
