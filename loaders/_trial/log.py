"""The trial log: one JSON line for each finished trial, appended and synced as soon as it exists."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import FileLock, Timeout

from loaders import _durable, _registry
from loaders._errors import InputError, printable
from loaders._trial.record import SCHEMA, Record

T = TypeVar("T")

NAME = "trials.jsonl"

PUBLISHED = "reference-zen5"
"""Of the project's machines the one whose versions count, and which answers a question that others have measured as
much of (``loaders._advise.coverage``). A machine name belongs to one processor."""

LAST_YEAR = 2100
"""A trial that claims to have started later had a wrong clock, and would stay the newest for ever."""

MOST_WORDS = 200
"""Maximum length in characters of the reason why a line cannot be read."""

RESERVE, RESERVED = ".reserve", 2**20
"""Name and size in bytes of a file beside the log. It is deleted when the disk is full, so that the trial under way can
still be kept."""


def results_root() -> Path:
    """Return the results directory: from ``LOADERS_RESULTS``, asv's project, this checkout, else ``./results``."""
    if given := os.environ.get("LOADERS_RESULTS"):
        return Path(given)
    if project := os.environ.get("ASV_CONF_DIR"):
        return Path(project, "results")
    checkout = Path(__file__).parents[2]
    return (checkout if (checkout / "asv.conf.json").exists() else Path.cwd()) / "results"


def log_path(machine: str) -> Path:
    """Return the path of a machine's trial log."""
    return results_root() / machine / NAME


@contextmanager
def exclusive(machine: str) -> Iterator[None]:
    """Lock a machine's results for one comparison; the lock is released however the process ends.

    Raises
    ------
    InputError
        If another comparison holds the lock: two at once would spoil each other's figures.
    """
    path = log_path(machine).with_name(".running")
    lock, reserve = FileLock(path), path.with_name(RESERVE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"another comparison is under way in {path.parent}; two at once would spoil each other's figures: "
            f"wait for it, or end it"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot write into {path.parent}: {error.strerror or error}; name another directory in LOADERS_RESULTS"
        ) from error
    try:
        try:
            reserve.write_bytes(bytes(RESERVED))
        except OSError as error:
            raise InputError(_full(path, error, "nothing was run")) from error
        yield
    finally:
        reserve.unlink(missing_ok=True)
        lock.release()


def refuse_other_processor(path: Path, processor: str) -> None:
    """Raise if a log holds trials of another processor: a machine's name belongs to one processor.

    Raises
    ------
    InputError
        The message names both processors and the remedy.
    """
    others = {each.environment.cpu for each in read(path)} - {processor, ""}
    if others:
        raise InputError(
            f"{path.parent.name} is the name of a machine with another processor ({sorted(others)[0]}, this is "
            f"{processor}), and figures of two are never joined: name this one, LOADERS_MACHINE=NAME"
        )


def append(path: Path, *records: msgspec.Struct) -> None:
    """Append records, all or none; a line that an earlier writer left unfinished is ended first.

    Raises
    ------
    InputError
        If the file cannot be written; its content stays as it was. If the disk is full and there is a reserve, the
        reserve is deleted to keep these records; no further one can be kept.
    """
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in records)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, lines)
    except OSError as error:
        kept = "earlier trials are kept"
        with contextlib.suppress(OSError):
            _reserve(path).unlink()
            _append(path, lines)
            kept = "this trial and the earlier ones are kept"
        raise InputError(_full(path, error, kept)) from error


def _reserve(path: Path) -> Path:
    """Return the reserve of a log's machine; that of a folder lies in ``folders/KEY`` below it."""
    return next((each / RESERVE for each in path.parents[:3] if (each / RESERVE).exists()), path.with_name(RESERVE))


def _full(path: Path, error: OSError, kept: str) -> str:
    return (
        f"cannot append to {path}: {error.strerror or error}; "
        f"free space there, or name another directory in LOADERS_RESULTS; {kept}"
    )


def _append(path: Path, lines: bytes) -> None:
    """Append lines and sync them to disk, or leave the file as it was."""
    is_new = not path.exists()
    as_it_is = getattr(os, "O_BINARY", 0)  # Windows would write other line ends, and more bytes than it is given
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | as_it_is, 0o644)
    try:
        end = os.lseek(handle, 0, os.SEEK_END)
        if end:
            os.lseek(handle, end - 1, os.SEEK_SET)
            if os.read(handle, 1) != b"\n":
                lines = b"\n" + lines
        written = 0
        try:
            while written < len(lines):  # one call, unless the system writes only a part
                written += os.write(handle, lines[written:])
            os.fsync(handle)
        except OSError:
            if written and os.fstat(handle).st_size == end + written:  # else another process appended
                os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)
    if is_new:
        _durable.sync(path.parent)


def read(path: Path, say: Callable[[str], None] = lambda _: None) -> list[Record]:
    """Return the records of a log in order; unusable lines are left out, and ``say`` is told in one line for each kind.

    Records of an older schema are included, and ``say`` is told how many: see ``Record.schema``.

    Anybody may have written the lines. Left out are lines that are cut off, that are not a record, that hold an
    impossible figure (see ``loaders._units``), or that repeat a trial of a round.
    """
    name, records = printable(str(path)), lines(path, _decoded, say)
    if older := sum(record.schema != SCHEMA for record in records):
        say(
            f"{name}: {older} of its {len(records)} records are of an older instrument: they are shown apart, and "
            f"nothing is concluded from them; `python -m loaders compare` measures them anew"
        )
    return _once(records, lambda count: say(f"{name}: left out {count} records of trials that it holds already"))


def lines(path: Path, decode: Callable[[bytes], T], say: Callable[[str], None] = lambda _: None) -> list[T]:
    """Return the lines of a log, decoded; those that cannot be are left out, and ``say`` is told so once.

    A log that is not there has no lines.
    """
    name = printable(str(path))
    try:
        given = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        say(f"{name}: left out: {error.strerror or error}")
        return []
    found: list[T] = []
    unreadable: list[int] = []
    why = ""
    for number, line in enumerate(given, 1):
        if not line.strip():
            continue
        try:
            found.append(decode(line))
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors, as is invalid UTF-8
            unreadable.append(number)
            why = why or printable(str(error))[:MOST_WORDS]
    if unreadable:
        say(f"{name}: left out {_lines(unreadable)}, which cannot be read (cut off while writing?): {why}")
    return found


def _decoded(line: bytes) -> Record:
    record = msgspec.json.decode(line, type=Record)
    started = datetime.fromisoformat(record.started)
    if started.tzinfo is None or started.year >= LAST_YEAR:
        raise ValueError(f"`started` is no time with a time zone before {LAST_YEAR}")
    return in_todays_case(record)


def in_todays_case(record: Record) -> Record:
    """Return a record of before its question had an axis with that axis.

    An axis begins with what was measured without it: its value in the default case, or what its strategy is restricted
    to.
    """
    asked = _registry.questions().get(record.question)
    if not asked or not set() < record.case.keys() < asked.axes.keys():
        return record
    known = _registry.variants(record.question).get(record.strategy)
    only = {axis: values[0] for axis, values in known.only.items()} if known else {}
    return msgspec.structs.replace(record, case={**asked.default_case, **only, **record.case})


def read_all(root: Path, say: Callable[[str], None] = lambda _: None) -> list[Record]:
    """Return the records of every machine below ``root``; see ``read``."""
    records = [record for path in sorted(root.glob(f"*/{NAME}")) for record in read(path, say)]
    where = printable(str(root))
    return _once(records, lambda count: say(f"{where}: left out {count} records that stand in several logs"))


def _once(records: Iterable[Record], say: Callable[[int], None]) -> list[Record]:
    """Return the records without repeats of a trial of a round: each repeat would count as one more sample."""
    kept, seen, repeated = [], set(), 0
    for record in records:
        where = (record.environment.machine, record.run, record.question, record.strategy)
        trial = (*where, record.round, record.process)
        key = (*trial, *sorted(record.case.items()))
        if record.run and key in seen:
            repeated += 1
        else:
            kept.append(record)
        seen.add(key)
    if repeated:
        say(repeated)
    return kept


def _lines(numbers: Iterable[int]) -> str:
    shown = list(numbers)
    return f"{'line' if len(shown) == 1 else 'lines'} {', '.join(map(str, shown[:5]))}{', …' if len(shown) > 5 else ''}"
