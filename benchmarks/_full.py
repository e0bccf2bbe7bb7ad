"""``make full``: the full suite under asv, one question after another, as asv saves when it ends.

What asv would go on without, and hide why nothing is measured, is made sure of first. Interrupted, the same command
goes on: neither what asv has saved nor what its trials have measured is measured again. asv takes ``benchmarks`` from
here and ``loaders`` from a commit. The first question begins with the default cases of all but what is ``apart``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks import _base
from loaders._errors import InputError
from loaders._trial import log, machine

CODE = ("loaders", "pyproject.toml")
"""What asv takes from a commit."""

ASV = [sys.executable, "-m", "asv"]

FAILED = 2
"""What asv ends with if a benchmark failed, or if there was nothing to run it with."""

GRACE = 60.0
"""Seconds in which asv has ended with what it ran, if it has been interrupted as well."""

TERMINATED = 128 + signal.SIGTERM


def main() -> int:
    """Run every question's benchmarks, and return the exit code.

    A benchmark that failed is run again by the same command, as a full disk may be the reason; the others go on. What
    failed in a comparison stays so for its commit: strategies that failed are on the page, and no error of asv's. Any
    other error of asv's ends the suite.

    Raises
    ------
    InputError
        If what would be measured is not committed or not this project's own, another command measures, or the machine's
        name belongs to another processor.
    """
    name = _ready()
    if name not in machine.registered():
        subprocess.run([*ASV, "machine", "--machine", name, "--yes"], cwd=_base.ROOT, check=True)
    commit = _git("log", "-1", "--first-parent", "--format=%H", "--", *CODE)
    print(f"measuring {commit} as {name}", flush=True)  # noqa: T201 - a command's own output
    variables = {**os.environ, "LOADERS_FULL": "1", "LOADERS_SIZE": "full", "LOADERS_MACHINE": name}
    variables["LOADERS_LIST"] = str(_written())
    failed = []
    for question in sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")):
        options = ["--machine", name, "--skip-existing-successful", "--show-stderr", "--bench", rf"^{question}\."]
        code = _run(["run", *options, f"{commit}^!"], variables)
        if code == FAILED:
            failed.append(question)
        elif code:
            return code
    if failed:
        said = "the same command runs these again, but for trials of this commit that have failed in a comparison"
        print(f"asv reports failures in {' '.join(failed)}; {said}", file=sys.stderr)  # noqa: T201
    return FAILED if failed else 0


def _ready() -> str:
    """Make sure that a full run can measure, and return the machine's name."""
    if changed := _git("status", "--porcelain", "--", "benchmarks", *CODE):
        raise InputError(f"commit it first, as asv measures what is committed: {' '.join(changed.split()[1::2])}")
    if own := [each for each in ("LOADERS_DATA", "LOADERS_WITH") if os.environ.get(each)]:
        raise InputError(f"unset {' and '.join(own)}: asv's history does not say what its figures were measured on")
    name = machine.machine_name()
    with log.exclusive(name):
        log.refuse_other_processor(log.log_path(name), machine.processor())
    return name


def _written() -> Path:
    """Write the registry of the working tree into a file, for ``LOADERS_LIST``, and return its path."""
    os.environ.pop("LOADERS_LIST", None)
    written = _base.ROOT / ".asv" / "list.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(_base.listed()), "utf-8")
    return written


def _git(*arguments: str) -> str:
    printed = machine.git(_base.ROOT, *arguments)
    if printed is None:
        raise InputError(f"git {arguments[0]} fails in {_base.ROOT}: asv measures a commit of a checkout")
    return printed.decode().strip()


def _run(arguments: list[str], variables: dict[str, str]) -> int:
    """Run asv and return its exit code; it is always waited for, as it ends its own processes when interrupted."""
    process = subprocess.Popen([*ASV, *arguments], cwd=_base.ROOT, env=variables)
    try:
        return process.wait()
    except KeyboardInterrupt:  # which the terminal has sent to asv as well
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            raise
        _interrupt(process)  # it came from elsewhere, and asv knows nothing of it
        raise
    except SystemExit:
        _interrupt(process)
        raise


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Let asv end, and wait until it has."""
    if sys.platform != "win32":  # where nothing but a console can
        process.send_signal(signal.SIGINT)
    process.wait()


def _obey_signals() -> None:
    """Let SIGTERM and SIGINT end the suite, and asv with it.

    What a shell without job control begins in the background ignores SIGINT, and so would asv.
    """
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _terminate(signal_number: int, frame: object) -> None:  # noqa: ARG001
    sys.exit(TERMINATED)


if __name__ == "__main__":
    _obey_signals()
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
