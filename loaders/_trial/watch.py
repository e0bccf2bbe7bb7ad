"""The parent's side of a trial: start a fresh process, watch it, end it in time, and report the result."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from loaders._corpus import Corpus
from loaders._durable import remove_abandoned
from loaders._errors import InputError
from loaders._trial import group as groups
from loaders._trial import imports, keeper, machine, memory
from loaders._trial.growth import growth
from loaders._trial.memory import Held
from loaders._trial.record import (
    Environment,
    Imported,
    Measured,
    MemoryTrace,
    Metrics,
    Outcome,
    Progress,
    Record,
    Trial,
    shortened,
)

SCRATCH = "loaders-trial-"

WATCH_INTERVAL = 0.02
"""Seconds between two readings of a trial's memory. One reading of one process takes about 20 microseconds."""

TREE_INTERVAL = 0.25
"""Seconds between two searches for new child processes. One search takes a few milliseconds."""

PROCESSES = 1000
"""A trial with more processes is ended: a loader needs one or two workers per core."""

TASKS = 32 * PROCESSES
"""Limit on the tasks in a control group: threads count there too, and TensorFlow starts several per core."""

PRINTED = 2**24
"""Limit in bytes on a trial's printed output; beyond it the output is discarded, so that it cannot fill the disk."""

ROOM = 2**16
"""Free bytes needed on the disk that a trial works on; with less, its report may not have fitted."""

GRACE = 20.0
"""Seconds allowed for the kernel and the keeper to end a trial's processes, which takes milliseconds."""


TREE_COST = 10
"""Reading a tree's memory takes at most 1/10 of the time since the last reading: the kernel walks through every page of
every process, a few milliseconds each, on a core that the strategy could use."""

ATTEMPTS = 6
"""Maximum runs of one trial. Each first imports what the earlier ones were seen to import."""


@dataclass
class _Seen:
    """What the parent saw of the process tree, in bytes, and what enforced its limits.

    ``process`` is the highest of each kind while there was one process; ``tree`` is what several held together, and
    when, by the clock that stamps trials.
    """

    process: Held = field(default_factory=Held)
    tree: list[tuple[float, Held]] = field(default_factory=list)
    measuring: bool = False
    workers: set[int] = field(default_factory=set)
    measured: bool = False
    limited_by: str = ""


def run_trial(trial: Trial, corpus: Corpus, *, run: str = "", round: int = 0, planned: int = 0) -> Record:  # noqa: A002
    """Run one strategy once in a fresh process and return its record, whatever happens to it.

    The process works in its own directory. It is ended, with every process that it started, at the deadline, above the
    memory limit, and when this function is interrupted.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    trial = msgspec.structs.replace(trial, imports=imports.known(trial))
    for _ in range(ATTEMPTS):
        tried = _attempt(trial)
        if tried.modules:
            trial = msgspec.structs.replace(trial, imports=imports.remember(trial, tried.modules))
        else:
            break
    else:
        late = ", ".join(tried.modules)
        tried.outcome = Outcome(
            "failed", f"still imports {late} while it is measured; import it at the top of its file"
        )
    outcome, seen, progress = tried.outcome, tried.seen, tried.progress
    metrics = _completed(outcome, seen, progress)
    environment = progress.environment if progress else Environment()
    return Record(
        question=trial.question,
        strategy=trial.strategy,
        status=outcome.status,
        message=shortened(outcome.message),
        metrics=metrics,
        environment=msgspec.structs.replace(environment, machine=machine.machine_name(), commit=machine.commit()),
        case=trial.case,
        size=corpus.manifest.size,
        data=f"{corpus.manifest.origin}, {len(corpus.manifest.images)} images, {corpus.manifest.key}",
        seed=trial.seed,
        epochs=trial.epochs,
        started=started.isoformat(timespec="seconds"),
        seconds=round_to_ms(time.monotonic() - clock),
        run=run,
        round=round,
        planned=planned,
        limited_by=seen.limited_by,
    )


@dataclass
class _Tried:
    """How one run ended; ``modules`` were imported while it was measured, which makes its figures void."""

    outcome: Outcome
    seen: _Seen
    progress: Progress | None = None
    modules: list[str] = field(default_factory=list)


def _attempt(trial: Trial) -> _Tried:
    """Run a trial's process once."""
    if trial.skip:
        return _Tried(Outcome("skipped", trial.skip), _Seen())
    with _scratch() as scratch:
        report, errors = scratch / "report.jsonl", scratch / "stderr"
        with groups.created(trial.memory_limit, TASKS) as group:
            ended, seen, code = _watch(trial, scratch, report, errors, group)
        progress, said = _read(report)
        if isinstance(said, Imported):
            return _Tried(Outcome("failed"), seen, progress, said.modules)
        full = shutil.disk_usage(scratch.parent).free < ROOM
        outcome = said or ended or Outcome("failed", _crash(code, _tail(errors)) + "; no room is left in TMPDIR" * full)
    return _Tried(outcome, seen, progress)


def _completed(outcome: Outcome, seen: _Seen, progress: Progress | None) -> Metrics:
    """Return the process's metrics, completed by what only the parent could see: the tree, and how it was ended."""
    metrics = outcome.metrics
    if progress is None:
        return metrics
    own = seen.process - progress.baseline
    tree = [(at, held - progress.baseline_tree) for at, held in seen.tree]
    if outcome.status in ("over_budget", "timed_out"):
        highest = max([own.total, *(held.total for _, held in tree)])
        metrics = msgspec.structs.replace(metrics, peak_memory=max(0, highest))
    elif outcome.status == "ok" and metrics.peak_memory is not None:
        kinds = Held(metrics.anonymous_memory or 0, metrics.file_memory or 0, metrics.shared_memory or 0).most(own)
        for _, held in tree:
            kinds = kinds.most(held)
        metrics = msgspec.structs.replace(
            metrics,
            needed_memory=max([metrics.needed_memory or 0, own.kept, *(held.kept for _, held in tree)]),
            anonymous_memory=kinds.anonymous,
            file_memory=kinds.file,
            shared_memory=kinds.shared,
        )
    if tree:
        metrics = msgspec.structs.replace(metrics, peak_memory_tree=max(0, *(held.total for _, held in tree)))
    if metrics.memory_trace and metrics.batches:
        trace = _of_tree(metrics.memory_trace, tree, outcome) if tree else metrics.memory_trace
        judged = growth(trace, steps_per_epoch=metrics.batches, memory=progress.environment.memory)
        metrics = msgspec.structs.replace(metrics, memory_trace=trace, memory_growth=judged)
    return metrics


def _of_tree(trace: MemoryTrace, tree: Sequence[tuple[float, Held]], outcome: Outcome) -> MemoryTrace:
    """Return a tree's memory over the steps: memory held by workers does not show in the process that reads from them.

    Both clocks are the system's monotonic one, on Linux (https://docs.python.org/3/library/time.html).
    """
    import numpy as np

    within = [(at, held) for at, held in tree if outcome.began <= at <= outcome.ended]
    seconds = [at - outcome.began for at, _ in within]
    steps = np.interp(seconds, trace.seconds or [0.0], trace.step or [0])
    return MemoryTrace(
        step=[int(step) for step in steps],
        seconds=[round(each, 6) for each in seconds],
        resident=[held.total for _, held in within],
        in_use=None,
        file=[held.file for _, held in within],
        tree=True,
    )


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a directory for one trial; files that cannot be removed afterwards are left to the system."""
    try:
        remove_abandoned(Path(tempfile.gettempdir()), SCRATCH)
        directory = tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(
            f"cannot make a directory for the trial: {error.strerror or error}; "
            f"free space there, or name another directory in TMPDIR"
        ) from error
    with directory as path:
        yield Path(path)


def round_to_ms(seconds: float) -> float:
    """Round to milliseconds, for figures that are not compared."""
    return float(f"{seconds:.3f}")


def _watch(
    trial: Trial, scratch: Path, report: Path, errors: Path, group: Path | None
) -> tuple[Outcome | None, _Seen, int]:
    """Start the process and watch it until it has ended."""
    seen = _Seen()
    variables = {**os.environ, **machine.PINNED, "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "2", **trial.variables}
    # The trial works in its own directory, so the package must be found from there.
    root = str(Path(__file__).parents[2])
    variables["TMPDIR"] = str(scratch)  # TensorFlow's autograph leaves files there when the process is ended
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with errors.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, keeper.__file__, str(os.getpid()), str(report), str(group or "")],
            stdin=subprocess.PIPE,
            stdout=stderr,
            stderr=stderr,
            cwd=scratch,
            env=variables,
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends the tree
        )
    ended: Outcome | None = None
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker: a pipe was asked for
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(msgspec.json.encode(trial))
        ended = _look_after(process, trial, seen, report, errors)
    finally:
        _end_tree(process)
    seen.limited_by = "cgroup" if group and groups.held(group) else "process tree"
    if group and not ended and groups.out_of_memory(group):
        ended = Outcome(
            "over_budget", f"held more than the {_mib(trial.memory_limit or 0)} allowed; ended by the kernel"
        )
    return ended, seen, process.returncode


def _look_after(
    process: subprocess.Popen[bytes], trial: Trial, seen: _Seen, report: Path, errors: Path
) -> Outcome | None:
    """Return how the process had to be ended, or ``None`` if it ended by itself.

    Memory is watched until the process reports that it has measured; the check afterwards holds the suite's own data.
    """
    deadline = time.monotonic() + trial.deadline
    family: list[psutil.Process] = []
    look_for_children = look_at_tree = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(WATCH_INTERVAL)
            return None
        now = time.monotonic()
        said = _lines(report)
        if said and not seen.measuring:  # memory for preparing and converting is in no figure
            seen.process, seen.measuring, look_for_children = Held(), True, 0.0
            seen.tree.clear()
        seen.measured = said >= 2
        with contextlib.suppress(psutil.Error):
            if now >= look_for_children or not family:
                family = _family(process)
                look_for_children = now + TREE_INTERVAL
            if now >= look_at_tree and family and not seen.measured:
                held = memory.tree_memory(family[0], family[1:])
                if family[1:]:
                    look_at_tree = now + TREE_COST * (time.monotonic() - now)
                    seen.tree.append((now, held))
                else:
                    seen.process = seen.process.most(held)
                # Memory that the system can reclaim does not count against the limit.
                if trial.memory_limit is not None and held.kept > trial.memory_limit:
                    return Outcome(
                        "over_budget",
                        f"held {_mib(held.kept)} with its process tree, {_mib(trial.memory_limit)} allowed; ended",
                    )
            if len(family) > PROCESSES:
                return Outcome("over_budget", f"started {len(family)} processes, {PROCESSES} allowed; ended")
        if seen.measuring:
            seen.workers |= {child.pid for child in family[1:]}
        with contextlib.suppress(OSError):  # a strategy may have removed it
            if errors.stat().st_size > PRINTED:
                os.truncate(errors, 0)
        if now > deadline:
            gone = sum(not psutil.pid_exists(pid) for pid in seen.workers)
            died = f"; {gone} of its {len(seen.workers)} worker processes had ended before" if gone else ""
            return Outcome("timed_out", f"not finished after {trial.deadline:g} s{died}; ended")


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the trial's process, then all that it started; empty until the keeper has started it."""
    root = psutil.Process(process.pid)
    below = root.children(recursive=True)
    return sorted(below, key=psutil.Process.create_time) if sys.platform == "linux" else [root, *below]


def _lines(report: Path) -> int:
    """Return the number of lines reported so far: first the baseline, then that the process has measured."""
    try:
        return report.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything that it started, and wait until all are gone."""
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


def _read(report: Path) -> tuple[Progress | None, Outcome | Imported | None]:
    """Return what the process reported; an unfinished line is ignored."""
    progress: Progress | None = None
    outcome: Outcome | Imported | None = None
    for line in report.read_bytes().splitlines() if report.exists() else ():
        with contextlib.suppress(msgspec.MsgspecError):
            said = msgspec.json.decode(line, type=Progress | Measured | Imported | Outcome)
            if isinstance(said, Progress):
                progress = said
            elif isinstance(said, Outcome | Imported):
                outcome = said
    return progress, outcome


def _tail(file: Path, count: int = 8192) -> str:
    """Return the last bytes of the process's output, which may be any amount; empty if it removed the file."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - count))
        return stream.read().decode(errors="replace")


def _crash(code: int, stderr: str) -> str:
    """Say how a process ended that could not report it itself."""
    name = next((each.name for each in signal.Signals if each == -code), f"signal {-code}")
    how = f"the interpreter was ended by {name}" if code < 0 else f"exit code {code}"
    last = [line for line in stderr.splitlines() if line.strip()][-3:]
    return "; ".join([how, *last])


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
