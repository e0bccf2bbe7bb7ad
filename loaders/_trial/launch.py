"""How a trial's process comes to be, and how it is ended; in between ``watch`` looks after it.

A way to launch takes a trial and its ``Place`` and yields a ``Running``. There are two: ``fresh``, a new interpreter,
and ``forked``, a fork of a ``Server`` that has done the imports.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil

from loaders._durable import owned, remove_abandoned
from loaders._errors import InputError
from loaders._trial import group as groups
from loaders._trial import keeper, machine, pagecache, workers
from loaders._trial.record import Trial

SCRATCH = "loaders-trial-"

ROOT = Path(__file__).parents[2]
"""Where this package is found: a trial works in its own directory."""

ROOM = 2**16
"""Free bytes needed on the disk that a trial works on; with less, its report may not have fitted."""

IMPORTING = 600.0
"""Seconds allowed for a server's imports: as many as for a trial, which would import the same."""

GRACE = 20.0
"""Seconds allowed for the kernel and the keeper to end a trial's processes, which takes milliseconds."""


class LostServerError(Exception):
    """A server has ended, and what it was asked for with it."""


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
        """What the trial reports, as JSON lines: ``Progress``, ``Timed``, ``Measured``; ``Outcome`` or ``Imported``."""
        return self.directory / "report.jsonl"

    @property
    def readings(self) -> Path:
        """What it is told in turn: a byte for each reading of the memory of its process tree."""
        return workers.told(self.report)

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
        If no directory can be made, or the disk is full.
    """
    try:
        if is_full():
            raise no_room()
        where = scratch()
        remove_abandoned(Path(where), SCRATCH)
        directory = tempfile.TemporaryDirectory(prefix=owned(SCRATCH), dir=where, ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(
            f"cannot make a directory for the trial: {error.strerror or error}; "
            f"free space there, or name another directory in TMPDIR"
        ) from error
    with directory as path, groups.created(memory_limit, tasks) as group:
        yield Place(Path(path), group)


def scratch() -> str:
    """Return the directory that trials work in: the system's for temporary files, or that which keeps them on disk.

    Some systems keep ``/tmp`` in memory. What a strategy writes there is memory that nobody can reclaim, mapped or not,
    and reading it says nothing of a disk. Whoever names a directory, as in ``TMPDIR``, has it.
    """
    usual = tempfile.gettempdir()
    return usual if any(os.environ.get(each) for each in ("TMPDIR", "TEMP", "TMP")) else _on_disk(usual)


@functools.cache
def _on_disk(usual: str) -> str:
    """Return this directory, or one on disk if it lies in memory; found out once, so that a run keeps to one."""
    if not pagecache.is_in_memory(usual) or pagecache.is_in_memory(ON_DISK) or not os.access(ON_DISK, os.W_OK):
        return usual
    return ON_DISK if shutil.disk_usage(ON_DISK).free >= ENOUGH else usual


ENOUGH = 2**30
"""Bytes of room without which a directory on disk is not preferred."""

ON_DISK = "/var/tmp"  # noqa: S108 - a directory of its own is made there
"""Where systems with ``/tmp`` in memory keep larger temporary files (Filesystem Hierarchy Standard, 5.15)."""


def is_full() -> bool:
    """Whether the disk that trials work on is full."""
    usage = shutil.disk_usage(scratch())
    return usage.total > 0 and usage.free < ROOM  # one without a limit, such as ramfs, has no size


def no_room() -> InputError:
    """Return what says so: whatever fails there says nothing of a strategy."""
    return InputError(
        f"no room is left in {scratch()}, where trials work: free space there, or name another directory "
        f"in TMPDIR; finished trials are kept"
    )


class Running(Protocol):
    """A trial's process, and those that it starts."""

    @property
    def code(self) -> int:
        """The exit code of the process once it has ended, negative for a signal."""

    def wait(self, seconds: float) -> bool:
        """Wait for the process to end, at most so long; return whether it has.

        Raises
        ------
        LostServerError
            If its server has ended, which ends it too.
        """

    def family(self) -> list[psutil.Process]:
        """Return the process, then all that it started; empty until the keeper has started it.

        Raises
        ------
        psutil.Error
            If it has ended.
        """

    def end(self) -> None:
        """End the process and everything that it started, and wait until all are gone."""


class Fresh:
    """A trial in a new interpreter."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def code(self) -> int:
        """See ``Running``."""
        return self._process.returncode

    def wait(self, seconds: float) -> bool:
        """See ``Running``."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def family(self) -> list[psutil.Process]:
        """See ``Running``."""
        if sys.platform == "linux":
            return _kept(self._process.pid)
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def end(self) -> None:
        """See ``Running``."""
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


def _kept(root: int) -> list[psutil.Process]:
    """Return the processes below a keeper, the trial first.

    By the kernel's lists of children: a listing of all processes, four times a second, took 4 % of a core that the
    trial could use.
    """
    found = []
    for pid in keeper.below(root):
        with contextlib.suppress(psutil.Error):  # it has ended
            found.append(psutil.Process(pid))
    return sorted(found, key=psutil.Process.create_time)


class Forked:
    """A trial that a server has forked, by the process id of its keeper."""

    def __init__(self, server: Server, keeper: int) -> None:
        self._server, self._keeper = server, keeper
        self._code: int | None = None

    @property
    def code(self) -> int:
        """See ``Running``."""
        assert self._code is not None  # noqa: S101 - it has ended
        return self._code

    def wait(self, seconds: float) -> bool:
        """See ``Running``."""
        if self._code is None and (said := self._server.answer(seconds)):
            self._code = said["code"]
        return self._code is not None

    def family(self) -> list[psutil.Process]:
        """See ``Running``."""
        return _kept(self._keeper)

    def end(self) -> None:
        """See ``Running``."""
        if self._code is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._keeper, signal.SIGTERM)  # the keeper does the rest
        with contextlib.suppress(LostServerError):
            if self.wait(GRACE):
                return
        self._code = -signal.SIGKILL
        self._server.end()  # the keeper ends when its server does
        with contextlib.suppress(psutil.Error):
            psutil.Process(self._keeper).wait(GRACE)


class Server:
    """A process that imports modules, and then forks trials: see ``loaders._trial.server``."""

    def __init__(self, modules: Mapping[str, Iterable[str]]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "loaders._trial.server", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=_variables({}),
            start_new_session=True,
        )
        self._said = b""
        self._tell({name: sorted(used) for name, used in modules.items()})

    @functools.cached_property
    def reason(self) -> str:
        """Why it cannot serve; empty if it can. It is known once all is imported."""
        try:
            said = self.answer(IMPORTING)
        except LostServerError:
            return "it ended while it imported"
        if said is None:
            self.end()
            return f"it has not imported all after {IMPORTING:g} s"
        return str(said["reason"])

    @property
    def is_lost(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    def takes(self, trial: Trial) -> bool:
        """Whether a trial may run in a fork: not if it sets variables, which libraries read when they are loaded."""
        return not self.reason and not trial.variables

    def ask(self, line: object) -> dict[str, Any]:
        """Send a line and return the answer.

        Raises
        ------
        LostServerError
            If the server has ended.
        """
        _ = self.reason  # that is the first answer
        if self.is_lost:
            raise LostServerError
        self._tell(line)
        return self.answer(None) or {}

    def _tell(self, line: object) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: a pipe was asked for
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")
            self._process.stdin.flush()

    def answer(self, seconds: float | None) -> dict[str, Any] | None:
        """Return the next answer; ``None`` if there is none within so long.

        Raises
        ------
        LostServerError
            If the server has ended.
        """
        assert self._process.stdout is not None  # noqa: S101 - as above
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._said:
            if not select.select([pipe], [], [], seconds)[0]:
                return None
            more = os.read(pipe, 2**16)
            if not more:
                self._process.wait()  # so that it is lost for whoever asks next
                raise LostServerError
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return dict(msgspec.json.decode(line))

    def end(self) -> None:
        """End the server, and with it what it has forked."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def interpreter() -> tuple[str, dict[str, str]]:
    """Return the interpreter of a fresh trial, and the variables that it needs.

    In a virtual environment on Windows, ``python.exe`` starts another one and waits for it: every trial would seem to
    have a worker. That other one finds the environment by a variable, as CPython's ``popen_spawn_win32`` has it.
    """
    base = getattr(sys, "_base_executable", sys.executable)
    if sys.platform != "win32" or base == sys.executable:
        return sys.executable, {}
    return base, {"__PYVENV_LAUNCHER__": sys.executable}


@contextlib.contextmanager
def fresh(trial: Trial, place: Place) -> Iterator[Running]:
    """Run a trial in a new interpreter; nothing of it is left running afterwards."""
    python, needed = interpreter()
    with place.printed.open("ab") as printed:
        process = subprocess.Popen(
            [python, keeper.__file__, str(os.getpid()), str(place.report), str(place.group or "")],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            cwd=place.directory,
            env={**_variables(trial.variables, pinned=trial.pinned), **needed, "TMPDIR": str(place.directory)},
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends the tree
        )
    running = Fresh(process)
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker: a pipe was asked for
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(msgspec.json.encode(trial))
        yield running
    finally:
        running.end()


@contextlib.contextmanager
def forked(trial: Trial, place: Place, server: Server) -> Iterator[Running]:
    """Run a trial in a fork of a server; nothing of it is left running afterwards.

    Raises
    ------
    LostServerError
        If the server has ended.
    """
    given = place.directory / "trial.json"
    given.write_bytes(msgspec.json.encode(trial))
    said = server.ask(
        {
            "trial": str(given),
            "directory": str(place.directory),
            "report": str(place.report),
            "printed": str(place.printed),
            "group": str(place.group or ""),
        }
    )
    running = Forked(server, said["pid"])
    try:
        yield running
    finally:
        running.end()


def _variables(own: Mapping[str, str], *, pinned: bool = True) -> dict[str, str]:
    """Return the environment variables of a trial's process; its own directory is in ``TMPDIR`` besides.

    TensorFlow's autograph leaves files there when the process is ended.
    """
    return {
        **os.environ,
        **(machine.PINNED if pinned else {}),
        "PYTHONHASHSEED": "0",
        **machine.QUIET,
        **own,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
