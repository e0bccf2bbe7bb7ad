"""The trial log: one JSON line for each finished trial, appended and synced the moment it exists."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from loaders._errors import InputError
from loaders._trial.record import SCHEMA, Record

NAME = "trials.jsonl"


def results_root() -> Path:
    """Return the directory of results: ``LOADERS_RESULTS``, asv's project, this checkout, else ``./results``."""
    if given := os.environ.get("LOADERS_RESULTS"):
        return Path(given)
    if project := os.environ.get("ASV_CONF_DIR"):
        return Path(project, "results")
    checkout = Path(__file__).parents[2]
    return (checkout if (checkout / "asv.conf.json").exists() else Path.cwd()) / "results"


def log_path(machine: str) -> Path:
    """Return a machine's trial log."""
    return results_root() / machine / NAME


@contextmanager
def exclusive(machine: str) -> Iterator[None]:
    """Hold a machine's results for one comparison; whatever ends the process gives them back.

    Raises
    ------
    InputError
        While another comparison holds them: two at once would spoil each other's figures.
    """
    path = log_path(machine).with_name(".running")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"another comparison is under way in {path.parent}; two at once would spoil each other's figures: "
            f"wait for it, or end it"
        ) from None
    except OSError as error:
        raise InputError(f"cannot write into {path.parent}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def append(path: Path, record: Record) -> None:
    """Append one record; a line that an earlier writer could not finish is closed first.

    Raises
    ------
    InputError
        Where the file cannot be written; everything that it held stays as it was.
    """
    line = msgspec.json.encode(record) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            end = os.lseek(handle, 0, os.SEEK_END)
            if end:
                os.lseek(handle, end - 1, os.SEEK_SET)
                if os.read(handle, 1) != b"\n":
                    line = b"\n" + line
            while line:  # one call, unless the system takes a part only
                line = line[os.write(handle, line) :]
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(
            f"cannot append to {path}: {error.strerror or error}; "
            f"free space there, or name another directory in LOADERS_RESULTS; earlier trials are kept"
        ) from error


def read(path: Path, say: Callable[[str], None] = lambda _: None) -> list[Record]:
    """Return the records of a log in order; lines that cannot be read are left out, and ``say`` is told."""
    if not path.exists():
        return []
    records, unreadable, older = [], [], 0
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=Record)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            unreadable.append(number)
            continue
        if record.schema == SCHEMA:
            records.append(record)
        else:
            older += 1
    if unreadable:
        say(f"{path}: left out {_lines(unreadable)}, which cannot be read (cut off while writing?)")
    if older:
        say(f"{path}: left out {older} records of another schema")
    return records


def read_all(root: Path, say: Callable[[str], None] = lambda _: None) -> list[Record]:
    """Return the records of every machine below ``root``."""
    return [record for path in sorted(root.glob(f"*/{NAME}")) for record in read(path, say)]


def _lines(numbers: Iterable[int]) -> str:
    shown = list(numbers)
    return f"{'line' if len(shown) == 1 else 'lines'} {', '.join(map(str, shown[:5]))}{', …' if len(shown) > 5 else ''}"
