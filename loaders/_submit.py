"""What is handed in of somebody's own results: an allow-list of what a record holds, and nothing of their files.

A line is handed in as it would be made from itself, so whoever checks one makes it again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from loaders import _registry
from loaders._errors import InputError
from loaders._trial import Record, log, machine
from loaders._trial.record import SCHEMA, Environment

BUNDLED = "photographs of scikit-image, "
"""What the data of every record must begin with: a folder of one's own is nobody else's business."""

SIZES = ("small", "full", "large")

NAMED = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""A name that is a folder on every system."""

NUMBER = re.compile(r"[0-9]{1,12}|true|false", re.IGNORECASE)
VARIABLES = {
    **dict.fromkeys(
        (
            *("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS"),
            *("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"),
            *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OPENCV_FOR_THREADS_NUM"),
        ),
        NUMBER,
    ),
    "LD_PRELOAD": re.compile(r"lib(jemalloc|tcmalloc[a-z_]*)\.so(\.[0-9]+)*"),
    "PYTHONMALLOC": re.compile(r"(pymalloc|malloc|mimalloc)(_debug)?"),
    "GLIBC_TUNABLES": re.compile(r"glibc\.malloc\.[a-z_]+=[0-9]+(:glibc\.malloc\.[a-z_]+=[0-9]+)*"),
}
"""Variables that are handed in, and what their values may be: a directory's name is nobody's business."""

ALLOCATORS = ("LD_PRELOAD", "PYTHONMALLOC", "GLIBC_TUNABLES")
"""A trial in which one of these is something else is not handed in: its memory would be read as another allocator's."""

RESERVED = re.compile(r"reference.*|github.*|local|con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""Names of the project's own machines, everybody's unless they choose one, and what is no folder under Windows."""

CPU = re.compile(r"[A-Za-z0-9 .,:;=+()@/_-]{0,90}")
PLAIN = re.compile(r"[A-Za-z0-9 .,:;=+()@_-]{0,60}")
"""Values that say what a machine is; a path, an address or markup has other characters."""

RAISED = re.compile(r"(?:[A-Za-z_]+\.)*([A-Z][A-Za-z]{1,40}(?:Error|Exception|Exit|Interrupt))\b")
"""The exception that a message of a failed trial begins with."""

MOST_BYTES = 48 * 2**20
"""Largest file that is handed in: twice the published one."""


def submission(records: Sequence[Record], name: str) -> list[Record]:
    """Return what is handed in under a name: today's records of built-in strategies on the bundled photographs.

    Of several processors, data sets or versions, the newest's. What ended before it could describe where it ran is of
    the processor that its run is of.

    Raises
    ------
    InputError
        If the name is no name, or no record can be handed in.
    """
    if not NAMED.fullmatch(name) or RESERVED.fullmatch(name):
        raise InputError(
            f"{name!r} is no name for results: lower-case letters, digits and hyphens, 40 at most, and none that the "
            "project or Windows has reserved"
        )
    able = [reduced(record, name) for record in records if is_handed_in(record)]
    newest = max(filter(_described, able), key=lambda each: each.started, default=None)
    of_runs = {_run(each): _origin(each) for each in able if _described(each)}
    origins = (_origin(each) if _described(each) else of_runs.get(_run(each)) for each in able)
    found = [each for each, origin in zip(able, origins, strict=True) if newest and origin == _origin(newest)]
    if not found:
        raise InputError(
            "nothing to hand in: there are no trials of today's instrument, of built-in strategies on the bundled "
            "photographs; run `make bench` first"
        )
    return found


def _described(record: Record) -> bool:
    """Whether a trial got so far as to describe where it ran."""
    return bool(record.environment.cpu)


def _run(record: Record) -> tuple[str, ...]:
    return (record.run, record.question, record.size, record.data)


def _origin(record: Record) -> tuple[str, ...]:
    """Return what all records of a name share: one machine, its data and its versions."""
    environment = record.environment
    return (environment.cpu, record.data, environment.python, environment.packages.get("tensorflow", ""))


def is_handed_in(record: Record) -> bool:
    """Whether a record is of today's instrument, the bundled photographs, and a strategy that everybody has."""
    questions, variables = _registry.questions(), record.environment.variables
    return (
        record.schema == SCHEMA
        and record.data.startswith(BUNDLED)
        and record.size in SIZES
        and record.question in questions
        and record.strategy in _registry.variants(record.question)
        and record.case in questions[record.question].cases
        and (record.status != "ok" or _described(record))
        and all(VARIABLES[each].fullmatch(variables[each]) for each in ALLOCATORS if each in variables)
    )


def reduced(record: Record, name: str) -> Record:
    """Return a record with what may be handed in; whoever made it is a name."""
    metrics = record.metrics
    if metrics.memory_growth is not None:
        metrics = msgspec.structs.replace(
            metrics, memory_growth=msgspec.structs.replace(metrics.memory_growth, message="")
        )
    return msgspec.structs.replace(
        record,
        message=category(record),
        metrics=metrics,
        environment=_environment(record.environment, name),
        data=_plain(record.data),
        started=record.started if re.fullmatch(r"[0-9T:+-]{19,25}", record.started) else "",
        run=_plain(record.run),
        limited_by=_plain(record.limited_by),
        found={},
    )


def category(record: Record) -> str:
    """Return the kind of a failure instead of its text, which may name files: the exception, or else nothing."""
    raised = RAISED.match(record.message)
    return raised[1] if raised and record.status != "ok" else ""


def _environment(found: Environment, name: str) -> Environment:
    return Environment(
        machine=name,
        cpu=found.cpu if CPU.fullmatch(found.cpu) else "",
        cores=found.cores,
        memory=found.memory,
        system=_plain(found.system),
        kernel=(re.match(r"[0-9.]{1,20}", found.kernel) or [""])[0],  # the rest may name who built it
        allocator=_plain(found.allocator),
        python=_plain(found.python),
        packages={each: _plain(found.packages[each]) for each in machine.PACKAGES if each in found.packages},
        variables={
            each: value
            for each, value in found.variables.items()
            if each in VARIABLES and VARIABLES[each].fullmatch(value)
        },
        threads={each: count for each, count in found.threads.items() if each in ("BLAS", "OpenCV", "TensorFlow")},
        load=found.load,
        memory_method=_plain(found.memory_method),
        page_cache=found.page_cache,
        commit=found.commit if re.fullmatch(r"[0-9a-f]{0,40}\+?", found.commit) else "",
        governor=_plain(found.governor),
        frequency=found.frequency,
        frequency_limit=found.frequency_limit,
        huge_pages=_plain(found.huge_pages),
        swap=found.swap,
        virtual=found.virtual,
        onednn=_plain(found.onednn),
    )


def _plain(text: str) -> str:
    return text if PLAIN.fullmatch(text) else ""


def encoded(records: Sequence[Record]) -> bytes:
    """Return the file."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def check(folder: Path) -> int:
    """Check what was handed in, as hostile input, and return the number of its records.

    Raises
    ------
    InputError
        If anything in the folder is not as this module writes it.
    """
    path = folder / log.NAME
    others = [each.name for each in folder.iterdir() if each.name != log.NAME] if folder.is_dir() else []
    if others or not path.is_file() or path.is_symlink():
        raise InputError(f"{folder} must hold {log.NAME} and nothing else")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} has {path.stat().st_size >> 20} MiB; {MOST_BYTES >> 20} are allowed")
    count = 0
    for count, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        try:
            record = msgspec.json.decode(line, type=Record)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise InputError(f"{path}, line {count}, is no record of a trial") from None
        if not is_handed_in(log.in_todays_case(record)):
            raise InputError(f"{path}, line {count}, is not of a built-in strategy on the bundled photographs")
        if encoded([reduced(record, folder.name)]) != line:
            raise InputError(f"{path}, line {count}, is not as `python -m loaders submit {folder.name}` writes it")
    records = log.read(path)
    if len(records) != count:
        raise InputError(
            f"{path} has {count} lines, of which {len(records)} count: some are there twice, or of no date"
        )
    if submission(records, folder.name) != records:
        raise InputError(f"{path} holds results of several processors, data sets or versions: a name belongs to one")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    if any(record.started[:10] > tomorrow for record in records):
        raise InputError(f"{path} holds trials of the future")
    return count
