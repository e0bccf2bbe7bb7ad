"""The parent's side of a trial: watch its process, hold it to its limits, and report the result."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from loaders import _interrupt
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import assemble, imports, launch, machine, memory, turns
from loaders._trial import group as groups
from loaders._trial.launch import LostServerError, Place, Running, Server
from loaders._trial.memory import Held
from loaders._trial.metrics import Disturbance
from loaders._trial.record import Environment, Imported, Measured, Outcome, Progress, Record, Timed, Trial, shortened
from loaders._trial.steady import REPEATS, is_robbed

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

ELSEWHERE = "ended by the kernel, as memory ran out on the machine or in a group that holds others too"

FULL = "no room is left where trials work (TMPDIR)"

STILL, IDLE = 60.0, 0.5
"""A trial is ended if its processes together use less than half a second of processor time in a minute: a worker that
was forked while another thread held a lock waits for ever, and the deadline must suit slow machines too. A trial with
long steps may take longer (``Trial.still``)."""

STEPS_STILL = 4
"""Steps of a slow consumer in which a trial may use next to no processor time: who is far ahead sleeps through some."""

STOOD_STILL = "stood still"
"""What its message says then: more time would not help."""

SELDOM = 2.0
"""Seconds between two readings of a tree whose memory has been measured."""

TREE_COST = 10
"""Reading a tree's memory takes at most 1/10 of a core: the kernel walks through every page of every process, a few
milliseconds each. While a reading waits for a core, it takes none."""

ATTEMPTS = 6
"""Maximum runs of one trial. Each first imports what the earlier ones were seen to import."""

TRIALS_A_REPEAT = 2
"""A comparison makes one repeat for two trials, and ``REPEATS`` more: where the machine is never quiet, repeating does
not help, and must not take three times as long."""


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


def run_trial(
    trial: Trial,
    corpus: Corpus,
    *,
    run: str = "",
    round: int = 0,  # noqa: A002
    planned: int = 0,
    server: Server | None = None,
    repeats: int = 0,
) -> Record:
    """Run one strategy once and return its record, whatever happens to it.

    It runs in a fork of the server where there is one that takes it, else in a fresh process.

    With ``repeats``, it is run again if it was disturbed: see ``least_disturbed``.

    The process works in its own directory. It is ended, with every process that it started, at the deadline, above the
    memory limit, and when this function is interrupted.

    Raises
    ------
    LostServerError
        If the server had ended before. If it ends in the middle, the trial has failed.
    InputError
        If the disk is full that it works on.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    tried, tries = least_disturbed(lambda: _tried(trial, server), repeats)
    outcome, seen, progress = tried.outcome, tried.seen, tried.progress
    environment = progress.environment if progress else Environment()
    return Record(
        question=trial.question,
        strategy=trial.strategy,
        status=outcome.status,
        message=shortened(outcome.message),
        metrics=assemble.completed(
            outcome, progress, seen.process, seen.tree, kinds_told=memory.tells_kinds(tree=bool(seen.tree))
        ),
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
        process="forked" if server is not None and server.takes(trial) else "fresh",
        limited_by=seen.limited_by,
        tries=tries,
        checked=trial.checked,
        found=outcome.found,
    )


def least_disturbed(run: Callable[[], _Tried], repeats: int) -> tuple[_Tried, int]:
    """Repeat a run that was robbed of processor time, so often at most; return the least disturbed, and their number.

    A run with steady epochs is not repeated, as it repeats these itself (``loaders._trial.steady``, which says why the
    choice is fair). Nor is one that does not end well; if a repeat does not, that is what is returned. If none can be
    run, as the disk is full or the server has ended, what was measured stays.
    """
    tried, tries = run(), 1
    while tries <= repeats and tried.outcome.metrics.steady_time is None and is_robbed(tried.disturbance):
        try:
            again = run()
        except (InputError, LostServerError):
            break
        tries += 1
        if again.taken is None or tried.taken is None or again.taken < tried.taken:
            tried = again
    return tried, tries


def repeats_left(records: Sequence[Record]) -> int:
    """Return how often the next trial of a comparison may be repeated, after these."""
    made = sum(record.tries - 1 for record in records)
    return max(0, min(REPEATS, REPEATS + len(records) // TRIALS_A_REPEAT - made))


@dataclass
class _Tried:
    """How one run ended; ``modules`` were imported while it was measured, which makes its figures void."""

    outcome: Outcome
    seen: _Seen
    progress: Progress | None = None
    modules: list[str] = field(default_factory=list)

    @property
    def disturbance(self) -> Disturbance | None:
        """What else the machine did; ``None`` if it has no figures."""
        return self.outcome.metrics.disturbance

    @property
    def taken(self) -> float | None:
        """The share of processor time that others took; ``None`` if it has no figures."""
        return self.disturbance.taken if self.disturbance else None


def _tried(trial: Trial, server: Server | None) -> _Tried:
    """Run a trial until it imports nothing while it is measured."""
    trial = msgspec.structs.replace(trial, imports=imports.known(trial))
    for _ in range(ATTEMPTS):
        try:
            tried = _attempt(trial, server)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise launch.no_room() from error
        if not tried.modules:
            return tried
        trial = msgspec.structs.replace(trial, imports=imports.remember(trial, tried.modules))
    late = ", ".join(tried.modules)
    tried.outcome = Outcome("failed", f"still imports {late} while it is measured; import it at the top of its file")
    return tried


def _attempt(trial: Trial, server: Server | None) -> _Tried:
    """Run a trial's process once."""
    if trial.skip:
        return _Tried(Outcome("skipped", trial.skip), _Seen())
    seen = _Seen()
    with launch.place(trial.memory_limit, TASKS) as place:
        takes = server is not None and server.takes(trial)
        with launch.forked(trial, place, server) if server and takes else launch.fresh(trial, place) as running:
            try:
                ended = _look_after(running, place, trial, seen)
            except LostServerError:
                ended = Outcome("failed", "the process that it was forked from has ended")
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                ended = Outcome("failed", FULL)
        group = place.group
        seen.limited_by = "cgroup" if group and groups.held(group) else "process tree"
        if group and not ended and groups.out_of_memory(group):
            ended = Outcome(
                "over_budget", f"held more than the {_mib(trial.memory_limit or 0)} allowed; ended by the kernel"
            )
        elif group and not ended and groups.was_killed(group):
            ended = Outcome("failed", ELSEWHERE)
        progress, said = _read(place.report)
        if isinstance(said, Imported):
            return _Tried(Outcome("failed"), seen, progress, said.modules)
        outcome = said or ended or Outcome("failed", _crash(running.code, place))
    if outcome.status == "failed" and launch.is_full():  # what it has written itself is gone by now
        raise launch.no_room()
    return _Tried(outcome, seen, progress)


def round_to_ms(seconds: float) -> float:
    """Round to milliseconds, for figures that are not compared."""
    return float(f"{seconds:.3f}")


def _look_after(running: Running, place: Place, trial: Trial, seen: _Seen) -> Outcome | None:
    """Return why the process must be ended, or ``None`` if it ended by itself.

    Memory is read until the process reports that it has measured it: what follows, epochs for their time only and the
    check, is in no figure of memory. The limit holds until the end.
    """
    deadline = time.monotonic() + trial.deadline
    family: list[psutil.Process] = []
    lost: set[int] = set()
    look_for_children = look_at_tree = 0.0
    moved, used = time.monotonic(), 0.0
    _interrupt.raise_if_any()
    while not running.wait(WATCH_INTERVAL):
        _interrupt.raise_if_any()
        now = time.monotonic()
        said = _lines(place.report)
        if said and not seen.measuring:  # memory for preparing and converting is in no figure
            seen.process, seen.measuring, look_for_children = Held(), True, 0.0
            seen.tree.clear()
        is_hurried, seen.measured = said == 2, said >= 3
        with contextlib.suppress(psutil.Error):
            # Once it has measured memory, reading would disturb its epochs: seldom, and only what may exceed the limit.
            is_time = is_hurried or (now >= look_at_tree and (not seen.measured or _may_exceed(family, trial)))
            # Workers may have come and gone since the last search, and a reading of those before would not count.
            if now >= look_for_children or is_hurried or not family or (is_time and family[1:]):
                family = running.family()
                look_for_children = now + TREE_INTERVAL
                if abs((spent := _processor_time(family)) - used) >= IDLE:
                    moved, used = now, spent
            if is_time and family:
                begun = time.thread_time()
                held, absent = memory.tree_memory(family[0], family[1:])
                if family[1:]:
                    cost = TREE_COST * (time.thread_time() - begun)
                    look_at_tree = now + (max(cost, SELDOM) if seen.measured else cost)
                    before, family = family, running.family()
                    # What a process shares with one that came or went meanwhile would be missing.
                    if family == before and absent == lost and not seen.measured:
                        seen.tree.append((now, held))
                        if said:
                            place.readings.write_bytes(b"." * len(seen.tree))
                    lost = absent
                elif not seen.measured:
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
            if place.printed.stat().st_size > PRINTED:
                os.truncate(place.printed, 0)
        if seen.measured and trial.turns and turns.are_on(Path(trial.turns)):
            moved = now  # it may be waiting while another trial has its turn
        still = max(STILL, trial.still)
        if now > min(deadline, moved + still):
            late = f"not finished after {trial.deadline:g} s" if now > deadline else f"{STOOD_STILL} for {still:g} s"
            gone = sum(not psutil.pid_exists(pid) for pid in seen.workers)
            died = f"; {gone} of its {len(seen.workers)} worker processes had ended before" if gone else ""
            return Outcome("timed_out", f"{late}{died}; ended")
    return None


def _may_exceed(family: Sequence[psutil.Process], trial: Trial) -> bool:
    """Whether the resident sets of a trial's processes, which are cheap to read, add up to more than its limit."""
    if trial.memory_limit is None:
        return False
    total = 0
    for process in family:
        with contextlib.suppress(psutil.Error):  # it has ended
            total += memory.resident(process.pid)
    return total > trial.memory_limit


def _processor_time(family: Sequence[psutil.Process]) -> float:
    """Return the seconds of processor time that processes have used."""
    total = 0.0
    for process in family:
        with contextlib.suppress(psutil.Error):  # it has ended
            total += sum(process.cpu_times()[:4])  # that of its children that have ended is among these
    return total


def _lines(report: Path) -> int:
    """Return the number of lines reported so far: the baseline, that epochs have been timed, that all is measured."""
    try:
        return report.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _read(report: Path) -> tuple[Progress | None, Outcome | Imported | None]:
    """Return what the process reported; an unfinished line is ignored."""
    progress: Progress | None = None
    outcome: Outcome | Imported | None = None
    for line in report.read_bytes().splitlines() if report.exists() else ():
        with contextlib.suppress(msgspec.MsgspecError):
            said = msgspec.json.decode(line, type=Progress | Timed | Measured | Imported | Outcome)
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


def _crash(code: int, place: Place) -> str:
    """Say how a process ended that could not report it itself, and what it leaves behind."""
    name = next((each.name for each in signal.Signals if each == -code), f"signal {-code}")
    how = f"the interpreter was ended by {name}" if code < 0 else f"exit code {code}"
    # A resource tracker, which ends last, warns of what it has removed.
    ours = (line for line in _tail(place.printed).splitlines() if line.strip() and "warnings.warn(" not in line)
    last = [line for line in ours if "resource_tracker" not in line][-3:]
    return "; ".join([how, *last, *[FULL] * launch.is_full()])


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
