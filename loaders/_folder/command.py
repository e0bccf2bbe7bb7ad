"""``python -m loaders advise FOLDER``, from beginning to end."""

from __future__ import annotations

import keyword
import math
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loaders import _durable
from loaders._errors import InputError
from loaders._folder import advice, race, words, written
from loaders._folder.advice import Advice
from loaders._folder.look import look
from loaders._folder.race import Race, Wanted
from loaders._trial import Record, log, machine

AGAIN = 0.2
"""The share of the time that is kept for measuring the answer again."""


TAKEN = {*sys.stdlib_module_names, "cv2", "keras", "loaders", "numpy", "tensorflow"}
"""Names by which a loader, or what it imports, would find another module, or be found instead of it."""


class Asked(msgspec.Struct, frozen=True):
    """What is done besides: where the loader and a report are written, and for how long is measured, in seconds."""

    wanted: Wanted
    out: Path
    seconds: float
    command: str
    report: Path | None = None
    force: bool = False


def refuse(asked: Asked) -> None:
    """Refuse what would be lost, or cannot be written, before anything is measured.

    Raises
    ------
    InputError
        If there is such a file already, or none can be made there, or its loader could not be imported.
    """
    name = asked.out.stem
    if asked.out.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"--out {asked.out}: nothing could import that; name a file such as my_loader.py")
    if name in TAKEN:
        raise InputError(f"--out {asked.out}: {name} is what others import by that name; name it my_loader.py or so")
    images = Path(asked.wanted.folder).resolve()
    if log.results_root().resolve().is_relative_to(images):
        raise InputError(
            f"trials are kept in {log.results_root()}, in the folder of the images, into which nothing is written; "
            f"name another directory in LOADERS_RESULTS, or run this elsewhere"
        )
    if asked.out.exists() and not asked.force:
        raise InputError(f"{asked.out} is there already; name another file with --out, or write over it with --force")
    for path in filter(None, (asked.out, asked.report)):
        folder = path.absolute().parent
        if folder.resolve().is_relative_to(images):
            raise InputError(f"{path} lies in the folder of the images, into which nothing is written; name another")
        try:
            beside = folder / f".{path.name}.{os.getpid()}"
            beside.touch()
            beside.unlink()
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def run(
    asked: Asked,
    told: Callable[[Record], None],
    begin: Callable[[str], None],
    say: Callable[[str], None],
) -> Advice:
    """Look at the folder, measure, answer, and write the loader if there is one to recommend.

    Ctrl-C ends the measuring, not the answering: the best answer so far is given.
    """
    started = time.monotonic()
    wanted = asked.wanted
    refuse(asked)
    begin("looking at the folder")
    seen, files = look(Path(wanted.folder), wanted.height, wanted.width)
    for line in words.seen(seen):
        say(line)
    with log.exclusive(machine.machine_name()):  # from before the sample is drawn: another may be at the same folder
        try:
            found = race.prepare(wanted, files, seen.rate, seen.heaviest, len(seen.broken))
        except OSError as error:
            raise InputError(
                f"cannot keep trials in {log.results_root()}: {error.strerror or error}; name another directory in "
                f"LOADERS_RESULTS"
            ) from error
        for record in found.records:
            told(record)
        ended = _raced(found, asked.seconds * (1 - AGAIN) - (time.monotonic() - started), told, begin)
        if not found.records:
            raise InputError(
                f"{asked.seconds / 60:g} minutes are too short for these images, about {seen.rate:.3g} of which are "
                f"decoded a second: give it --minutes {math.ceil(found.needed / 60) + 1}, or smaller batches"
            )
        given = advice.advice(seen, found, ended, asked.command)
        name = given.answer.recommended
        if name is None:
            return given
        if ended != "interrupted":
            begin("measuring the answer again")
            given = _again(given, name, found, asked.seconds - (time.monotonic() - started), told)
    if given.again and given.again.problem:
        return given
    given = msgspec.structs.replace(given, module=asked.out.stem)
    _hand_out(asked, given, name)
    return given


def _raced(found: Race, seconds: float, told: Callable[[Record], None], begin: Callable[[str], None]) -> str:
    try:
        found.run(seconds, told, begin)
    except KeyboardInterrupt:
        if not found.records:
            raise
        return "interrupted"
    rounds = len({each.round for each in found.records})
    return "answered" if found.is_over(rounds) else "time"


def _again(given: Advice, name: str, found: Race, seconds: float, told: Callable[[Record], None]) -> Advice:
    try:
        record = found.again(name, seconds, told)
    except KeyboardInterrupt:
        return given
    except (OSError, InputError) as error:  # of a full disk: the answer is known, and this was only to confirm it
        return msgspec.structs.replace(given, not_again=str(error))
    return msgspec.structs.replace(given, again=advice.again(found, given.answer, record))


def _hand_out(asked: Asked, given: Advice, name: str) -> None:
    """Write the loader."""
    heading = words.heading(given, f"{datetime.now(UTC):%Y-%m-%d}")
    try:
        _durable.write(asked.out, written.stand_alone(name, heading, race.settings_of(asked.wanted)))
    except OSError as error:
        raise InputError(f"cannot write {asked.out}: {error.strerror or error}; all trials are kept") from error
