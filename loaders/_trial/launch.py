"""How a trial's process comes to be, and how it is ended; in between ``watch`` looks after it.

A way to launch takes a trial and its ``Place`` and yields a ``Running``. There is one, ``fresh``: a new interpreter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from loaders._durable import remove_abandoned
from loaders._errors import InputError
from loaders._trial import group as groups
from loaders._trial import keeper, machine
from loaders._trial.record import Trial

SCRATCH = "loaders-trial-"

GRACE = 20.0
"""Seconds allowed for the kernel and the keeper to end a trial's processes, which takes milliseconds."""


@dataclass(frozen=True)
class Place:
    """Where a trial works, and the files through which it is heard.

    Attributes
    ----------
    directory
        Its own directory.
    group
        Its control group, where one is available.
    """

    directory: Path
    group: Path | None

    @property
    def report(self) -> Path:
        """What the trial reports, as JSON lines: ``Progress``, ``Measured``, then ``Outcome`` or ``Imported``."""
        return self.directory / "report.jsonl"

    @property
    def printed(self) -> Path:
        """What its processes print."""
        return self.directory / "stderr"


@contextlib.contextmanager
def place(memory_limit: int | None, tasks: int) -> Iterator[Place]:
    """Make a place for one trial, whose processes may hold these bytes and be these tasks together.

    Files that cannot be removed afterwards are left to the system.

    Raises
    ------
    InputError
        If no directory can be made.
    """
    try:
        remove_abandoned(Path(tempfile.gettempdir()), SCRATCH)
        directory = tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(
            f"cannot make a directory for the trial: {error.strerror or error}; "
            f"free space there, or name another directory in TMPDIR"
        ) from error
    with directory as path, groups.created(memory_limit, tasks) as group:
        yield Place(Path(path), group)


class Running:
    """A trial's process, and those that it starts."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def code(self) -> int:
        """The exit code of the process once it has ended, negative for a signal."""
        return self._process.returncode

    def wait(self, seconds: float) -> bool:
        """Wait for the process to end, at most so long; return whether it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def family(self) -> list[psutil.Process]:
        """Return the process, then all that it started; empty until the keeper has started it.

        Raises
        ------
        psutil.Error
            If it has ended.
        """
        root = psutil.Process(self._process.pid)
        below = root.children(recursive=True)
        return sorted(below, key=psutil.Process.create_time) if sys.platform == "linux" else [root, *below]

    def end(self) -> None:
        """End the process and everything that it started, and wait until all are gone."""
        process = self._process
        if sys.platform == "linux":
            process.terminate()  # the keeper does the rest
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
                return
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # children whose parent has ended are still in the group
        process.kill()
        process.wait()


@contextlib.contextmanager
def fresh(trial: Trial, place: Place) -> Iterator[Running]:
    """Run a trial in a new interpreter; nothing of it is left running afterwards."""
    with place.printed.open("ab") as printed:
        process = subprocess.Popen(
            [sys.executable, keeper.__file__, str(os.getpid()), str(place.report), str(place.group or "")],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            cwd=place.directory,
            env=_variables(trial, place),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends the tree
        )
    running = Running(process)
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker: a pipe was asked for
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(msgspec.json.encode(trial))
        yield running
    finally:
        running.end()


def _variables(trial: Trial, place: Place) -> dict[str, str]:
    """Return the environment variables of a trial's process."""
    root = str(Path(__file__).parents[2])  # it works in its own directory, so the package must be found from here
    return {
        **os.environ,
        **machine.PINNED,
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **trial.variables,
        "TMPDIR": str(place.directory),  # TensorFlow's autograph leaves files there when the process is ended
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }
