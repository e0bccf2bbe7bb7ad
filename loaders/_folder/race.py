"""Which trials of a folder's loaders are run, and until when: interleaved rounds, from which the slow ones drop out."""

from __future__ import annotations

import hashlib
import math
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from loaders import _durable, _words
from loaders._advise import candidates
from loaders._advise.choose import KEEPS_UP, Candidate, Reckoned, Settings, laws_of, reckon
from loaders._corpus import NO_CORPUS
from loaders._folder import look, question, written
from loaders._folder.written.files import File
from loaders._law import Beyond, Law, resolution
from loaders._stats import quantile
from loaders._trial import Record, Trial, log, machine, run_trial
from loaders._trial.forks import Forks
from loaders._trial.watch import STEPS_STILL

MODULES: dict[str, Sequence[str]] = {
    "cv2": (),
    "keras": (),
    "keras.src.trainers.data_adapters.py_dataset_adapter": (),
    "numpy": (),
    "tensorflow": (),
}
"""What the loaders import."""

BEYOND = 1.5
"""A loader that takes so many times as long as the best drops out after a round."""

WHOLE = 10
"""A folder with fewer batches is measured whole."""

EPOCH = 0.6
"""Seconds that an epoch of the largest amount should take where all cores decode, or training waits for nothing."""

FEWEST, MOST = 8, 64
"""Batches in the largest amount, at least and at most."""

LEAST_ROUNDS, MOST_ROUNDS = 3, 12
"""Rounds before an answer may end the race, and rounds that end it."""

WITHIN = timedelta(hours=24)
"""Older trials are not continued."""

START = 8.0
"""Seconds that a fresh process needs to begin, with TensorFlow's import."""

DEADLINE, LATE = 300.0, 8
"""Seconds that a trial may take at least, and how many times as long as it would if all cores decoded: a loader may do
so on one of them."""

READ = 4.0
"""How often a trial reads its images, roughly: the first epoch, a steady one or two, one for a slow consumer."""

CHECKED = 4.5
"""A trial that is checked takes so many times as long as one that is not: each image is read four times more."""

ROUNDS_OF_A_LAW = 2
"""Rounds without which nothing is said of the memory that more images need."""

GIVE_UP_AFTER = 2
"""A loader that has failed so often is not run again."""


MAY_GO_WELL = ("failed", "over_budget", "timed_out")
"""What another time may go well; output that was wrong is not."""


class Wanted(msgspec.Struct, frozen=True):
    """What a person has: a folder, bytes of memory, seconds of a training step (0: none), and the form of a batch."""

    folder: str
    memory: int
    step: float
    batch: int
    height: int
    width: int
    epochs: int

    def settings(self, images: int) -> Settings:
        """Return what a loader is chosen for."""
        return Settings(self.memory, self.step, self.batch, images, self.epochs)


@dataclass
class Race:
    """The trials of one folder, on disk as soon as they exist.

    Attributes
    ----------
    images
        How many there are that can be read.
    sample
        The images that are measured with, and those that are held out.
    amounts
        The numbers of images, the smallest first; the last is the whole sample.
    rate
        About how many images a second all cores decode.
    listed
        The bytes that an image takes in a list of them, and in an epoch's order.
    heavier
        The bytes by which the largest images of the folder exceed those of the sample while they are decoded: one image
        after another, the largest first, for each core.
    free
        The bytes of room on the disk.
    ram
        The bytes of the machine's memory: files larger than that are not read from there.
    records
        What has been run, those of an interrupted race included.
    """

    wanted: Wanted
    images: int
    sample: list[File]
    held_out: list[File]
    amounts: list[int]
    directory: Path
    rate: float
    listed: float = 0.0
    heavier: Sequence[int] = ()
    free: float = math.inf
    ram: float = math.inf
    records: list[Record] = field(default_factory=list)

    def candidates(self) -> list[Candidate]:
        """Return every loader, with what has been measured of it, and the bare decoder."""
        return [self._candidate(name) for name in [question.DECODING, *written.names()]]

    def _candidate(self, name: str) -> Candidate:
        own = [each for each in self.records if each.strategy == name]
        problem = self._no_room(name) or candidates.problem(own)
        if name == question.DECODING:
            return Candidate(name, ceiling=True, amounts=candidates.amounts(own), problem=problem)
        return Candidate(
            name,
            converts=written.converts(name),
            lines=written.lines(name),
            batch=self.wanted.batch,
            amounts=candidates.amounts(own),
            problem=problem,
            grows=candidates.grows(own),
        )

    def _no_room(self, name: str) -> str:
        """Say why a loader's file of all images has no room on the disk or in memory; empty if it has, or has none."""
        size = self.writes(name)
        if size > self.free:
            return (
                f"not measured: it would write {_words.amount(size)} to a disk with room for {_words.amount(self.free)}"
            )
        if size > self.ram:  # that of the sample is read from memory, and says nothing of how fast a disk is
            return f"not measured: it would read {_words.amount(size)} from disk, more than fits into memory"
        return ""

    def writes(self, name: str) -> int:
        """Return the bytes that a loader writes to disk with all images."""
        return self.pixels * self.images if name != question.DECODING and written.converts(name) else 0

    def once(self, name: str) -> int:
        """Return the bytes that a loader needs for images larger than those of the sample, on as many threads."""
        one = name != question.DECODING and written.is_on_one_thread(name)
        return sum(self.heavier[:1] if one else self.heavier)

    def reckoned(self) -> Reckoned:
        """Return what follows from the trials for all images."""
        among = self.candidates()
        laws = {
            name: msgspec.structs.replace(self._with_list(self._law(name, found)), once=self.once(name))
            for name, found in laws_of(among).items()
        }
        return reckon(among, self.wanted.settings(self.images), laws)

    def _law(self, name: str, found: Law) -> Law:
        """Return a loader's law of memory; what few rounds leave open follows from its code, unless they contradict it.

        A loader keeps the pixels of all images, or none but those of some batches. What it keeps of a small image is
        lost in the resolution of a few hundred, and no level: with a million, it is all of the memory.
        """
        if name == question.DECODING or not found.points:  # or its memory grows from step to step
            return found
        amounts = self.amounts[-2:]  # fewer images than that may not fill what holds batches
        before, largest = (self._needed(name, each) for each in (amounts[0], amounts[-1]))
        each = self.pixels if written.keeps_all(name) else 0
        known = found.beyond
        may_rise = known is not None and (known.slope < each or (found.kind == "level" and known.bend > 0))
        is_open = found.kind == "unknown" or may_rise
        if not is_open or len(largest) < ROUNDS_OF_A_LAW or not before:
            return found
        mean, spread = statistics.fmean(largest), statistics.stdev(largest)
        grown = mean - statistics.fmean(before) - each * (amounts[-1] - amounts[0])
        if grown > resolution(mean) + 2 * spread:
            return found
        beyond = Beyond(
            value=mean,
            slope=each,
            variances=(spread**2 / len(largest), 0.0, 0.0),
            noise=spread,
            quantile=quantile(len(largest)),
            bend=0.0,
            factor=2.0,
            end=None,
        )
        why = "by its code, it keeps the pixels of all images" if each else "by its code, it keeps some batches"
        return msgspec.structs.replace(found, kind="linear" if each else "level", why=why, beyond=beyond)

    def _with_list(self, law: Law) -> Law:
        """Count in the list of all images, which every loader holds, and no trial with some of them shows."""
        listed = self.listed * self.images
        if law.kind != "level" or listed <= resolution(law.points[-1][1].value):
            return msgspec.structs.replace(law, besides=self.listed)
        return msgspec.structs.replace(law, kind="linear", why="it lists all images", besides=self.listed)

    @property
    def pixels(self) -> int:
        """The bytes of an image's pixels."""
        return 3 * self.wanted.height * self.wanted.width

    def _needed(self, name: str, amount: int) -> list[int]:
        """Return the memory that a loader needed in each trial with so many images."""
        return [each.metrics.needed_memory for each in self._of(name, amount) if each.metrics.needed_memory]

    def running(self) -> list[str]:
        """Return the loaders that are still in the race."""
        out = self.dropped()
        able = self._able()
        return [name for name in able if name not in out and self._failures(name) < GIVE_UP_AFTER]

    def _able(self) -> list[str]:
        """Return the loaders that there is room for on the disk and in memory."""
        return [name for name in written.names() if not self._no_room(name)]

    def dropped(self) -> dict[str, str]:
        """Return the loaders that have dropped out, and why.

        They are much slower than one that surely fits into memory, or not needed: where the simplest that surely fits
        keeps up with training twice over, only it and the fastest go on.
        """
        found = self.reckoned()
        means = {
            name: statistics.fmean(totals.values())
            for name, totals in found.totals.items()
            if totals and name != question.DECODING
        }
        fitting = [
            each
            for each in self.candidates()
            if each.name in means and not each.problem and self._fits(found, each.name)
        ]
        if not fitting:
            return {}
        best = min(fitting, key=lambda each: means[each.name]).name
        out = {
            name: f"dropped out: {_words.factor(mean / means[best])} as slow as the best so far"
            for name, mean in means.items()
            if mean > BEYOND * means[best]
        }
        idle = [each for each in fitting if waits_of(found, each.name) < KEEPS_UP / 2]
        if idle and len(means) == len(self._able()):
            simplest = min(idle, key=lambda each: each.effort).name
            why = f"not needed: {simplest} keeps up with training, and is simpler"
            out |= {name: why for name in means if name not in (*out, simplest, best)}
        return out

    def _fits(self, found: Reckoned, name: str) -> bool:
        """Whether a loader surely fits: by its law, or even if it kept the pixels of every further image."""
        bound = found.memory.get(name)
        if bound and bound.high is not None:
            return bound.high <= self.wanted.memory
        known = [(amount, needed) for amount in self.amounts if (needed := self._needed(name, amount))]
        if not known:
            return False
        amount, needed = known[-1]
        more = self.pixels * (self.images - amount) + self.once(name)
        return max(needed) + more <= self.wanted.memory

    def _failures(self, name: str) -> int:
        return sum(each.status != "ok" for each in self.records if each.strategy == name)

    def _of(self, name: str, amount: int) -> list[Record]:
        return [each for each in self.records if each.strategy == name and each.case["images"] == str(amount)]

    def is_over(self, index: int) -> bool:
        """Whether more rounds would change nothing: there is an answer with no rival left."""
        if index < LEAST_ROUNDS:
            return False
        decision = self.reckoned().decide(self.wanted.memory)
        return index >= MOST_ROUNDS or (decision.recommended is not None and decision.decided)

    def run(self, seconds: float, told: Callable[[Record], None], begin: Callable[[str], None]) -> None:
        """Run rounds until there is an answer, or the time is over."""
        end = time.monotonic() + seconds
        with Forks({(): MODULES}) as forks:
            for index in range(MOST_ROUNDS):
                if self.is_over(index):
                    return
                served = False
                for name, amount in self._round(index):
                    if self._is_done(index, name, amount):
                        continue
                    if end - time.monotonic() <= self._typical(name, amount):
                        return
                    if not served and not forks.reason:
                        forks.begin()
                        served = True
                    begin(f"{name}, {amount} images")
                    self._keep(self._trial(forks, name, amount, index), told)

    def _round(self, index: int) -> Iterator[tuple[str, int]]:
        """Yield what a round runs: amount by amount, in a new order.

        The first round begins with the smallest amount, after which the slow ones drop out.
        """
        order = random.Random(index)  # noqa: S311
        amounts = list(self.amounts)
        if index:
            order.shuffle(amounts)
        for amount in amounts:
            names = self.running()
            if amount == self.amounts[-1]:
                names.append(question.DECODING)
            order.shuffle(names)
            yield from ((name, amount) for name in names)

    def _is_done(self, index: int, name: str, amount: int) -> bool:
        failed = self._failures(name) >= GIVE_UP_AFTER
        return failed or any(each.round == index for each in self._of(name, amount))

    def _trial(self, forks: Forks, name: str, amount: int, index: int) -> Record:
        # Where one amount is all there is, not before the slow ones have dropped out: a check reads four times more.
        unproven = not any(each.checked and each.status == "ok" for each in self._of(name, amount))
        checked = unproven and amount == self.amounts[0] and (index > 0 or len(self.amounts) > 1)
        asked = self.trial(name, amount, self.directory / SAMPLE, index, checked=checked)
        return (
            forks.run(asked, NO_CORPUS, round=index) if not forks.reason else run_trial(asked, NO_CORPUS, round=index)
        )

    def trial(self, name: str, amount: int, images: Path, index: int, *, checked: bool) -> Trial:
        """Return a trial of a loader with so many of the images that a file lists."""
        call = question.Call(str(self.directory.absolute()), str(images.absolute()), self.wanted.step)
        return Trial(
            question=question.NAME,
            strategy=name,
            case=question.case_of(call, amount),
            corpus="",
            seed=index + 1,
            epochs=2,
            outside=[question.FILE],
            memory_limit=machine.default_memory_limit(),
            deadline=max(DEADLINE, LATE * (CHECKED if checked else 1.0) * self._reading(amount)),
            still=STEPS_STILL * self.wanted.step,
            checked=checked,
        )

    def _keep(self, record: Record, told: Callable[[Record], None]) -> None:
        log.append(self.directory / log.NAME, record)
        self.records.append(record)
        told(record)

    def _reading(self, amount: int) -> float:
        """Return the seconds in which all cores decode so many images as often as a trial reads them."""
        return READ * amount / self.rate

    def _typical(self, name: str, amount: int) -> float:
        """Return the seconds that a trial probably takes."""
        own = [each.seconds for each in self._of(name, amount)]
        others = [each.seconds for each in self.records if each.case["images"] == str(amount)]
        return statistics.median(own or others or [self._reading(amount)])

    @property
    def needed(self) -> float:
        """The seconds that an answer takes, roughly: every loader once, and the good ones some times more."""
        return 2 * len(written.names()) * self._reading(self.amounts[-1])

    def again(self, name: str, seconds: float, told: Callable[[Record], None]) -> Record | None:
        """Run a loader on the images that were held out, checked; on all of them if none were.

        Returns ``None`` if that would take longer than these seconds.
        """
        before = self._of(name, self.amounts[-1])
        if not before:
            return None
        files = self.held_out or self.sample
        each = statistics.median(record.seconds for record in before) / self.amounts[-1]
        count = min(len(files), int((seconds - START) / (CHECKED * each)))
        if count < min(len(files), self.wanted.batch):
            return None
        path = self.directory / HELD_OUT
        _durable.write(path, msgspec.json.encode(files[:count]).decode())
        record = run_trial(self.trial(name, count, path, 0, checked=True), NO_CORPUS)
        told(record)
        return record


def waits_of(found: Reckoned, name: str) -> float:
    """Return the share of a step that it waits for a loader; infinite without a step."""
    share = found.shares.get(name)
    return share.value if share else math.inf


SEVERAL = 10_000
"""Images whose share of the list is looked at."""

BLOCK, POINTER, ORDERS = 16, 8, 16
"""In bytes: what is allocated at least, a place in a list, and one in the orders of this epoch and of the next."""

SAMPLE, PARTS, HELD_OUT = "sample.json", "amounts.json", "held-out.json"


def prepare(wanted: Wanted, files: list[File], rate: float, heaviest: Sequence[int] = (), broken: int = 0) -> Race:
    """Draw the sample, write the loaders, and read what an interrupted race has left.

    The same folder with the same images is continued, for whatever memory and number of epochs. What failed is tried
    again: memory, room on the disk or time may have been wanting then. ``heaviest`` are the
    bytes of its largest images, and ``broken`` is the number of those that cannot be read (``Look``): another look
    finds more of them, or fewer, as it decodes for a few seconds.
    """
    every = len(files) + broken
    texts = {
        name: written.stand_alone(name, f"{name}, as it was measured.", settings_of(wanted)) for name in written.names()
    }
    key = hashlib.sha256(
        msgspec.json.encode([wanted.folder, wanted.batch, wanted.height, wanted.width, wanted.step, every, texts])
    ).hexdigest()[:12]
    directory = log.results_root() / machine.machine_name() / "folders" / key
    shuffled = random.Random(key).sample(files, len(files))  # noqa: S311
    amounts = amounts_of(len(files), wanted.batch, rate, wanted.step)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        _durable.write(directory / f"{name}.py", text)
    before = log.read(directory / log.NAME) if (directory / log.NAME).exists() else []
    if not before or not (directory / PARTS).exists() or not _goes_on(before, directory, shuffled):
        (directory / log.NAME).unlink(missing_ok=True)
        before = []
        sample = shuffled[: amounts[-1]]
        _durable.write(directory / SAMPLE, msgspec.json.encode(sample).decode())
        _durable.write(directory / PARTS, msgspec.json.encode(amounts).decode())
    else:
        sample = msgspec.json.decode((directory / SAMPLE).read_bytes(), type=list[File])
        amounts = msgspec.json.decode((directory / PARTS).read_bytes(), type=list[int])
    drawn = set(sample)
    read = look.heaviest([path for path, _ in sample])
    return Race(
        wanted,
        len(files),
        sample,
        [each for each in shuffled if each not in drawn] if len(amounts) > 1 else [],
        amounts,
        directory,
        rate,
        listed=listed(files[:SEVERAL]),
        heavier=[max(0, all_ - own) for all_, own in zip(heaviest, read, strict=False)],
        free=shutil.disk_usage(Path.cwd()).free,
        ram=machine.memory(),
        records=[each for each in before if each.status not in MAY_GO_WELL],
    )


def listed(files: Sequence[File]) -> float:
    """Return the bytes that an image takes in a list of these, in blocks of 16 as they are allocated, and in an order.

    With a million files, CPython 3.11 took 154 bytes each where their paths have 28 characters.
    """
    taken = sum(-(-sys.getsizeof(part) // BLOCK) * BLOCK for each in files for part in (each, each[0]))
    return taken / len(files) + POINTER + ORDERS


def settings_of(wanted: Wanted) -> dict[str, int]:
    """Return the constants of a written loader."""
    return {"BATCH": wanted.batch, "HEIGHT": wanted.height, "WIDTH": wanted.width}


def _goes_on(before: Sequence[Record], directory: Path, files: Sequence[File]) -> bool:
    """Whether earlier trials may be joined: recent, of these images as they are, by this processor and software."""
    sample = msgspec.json.decode((directory / SAMPLE).read_bytes(), type=list[File])
    begun, installed, labels = datetime.fromisoformat(before[0].started), machine.packages(), dict(files)
    return (
        datetime.now(UTC) - begun < WITHIN
        and all(labels.get(path, label) == label for path, label in sample)
        and {each.environment.cpu for each in before} <= {machine.processor(), ""}
        and {each.environment.commit for each in before} == {machine.commit()}
        and all(each.environment.packages in ({}, installed) for each in before)
        and not _have_changed((path for path, _ in sample), since=begun.timestamp())
    )


def _have_changed(paths: Iterable[str], since: float) -> bool:
    """Whether any of these files was written, or put there, after that second, or is gone."""
    try:
        found = [Path(each).stat() for each in paths]
        return any(max(each.st_mtime, each.st_ctime) >= since + 1 for each in found)  # a copy may keep its old time
    except OSError:
        return True


def amounts_of(images: int, batch: int, rate: float, step: float) -> list[int]:
    """Return three numbers of images, each twice the one before; only one for a folder of few batches.

    The smallest fills what holds batches, so that memory follows its law from there on. The largest is
    read in about ``EPOCH`` seconds, and leaves images to hold out where there are enough.
    """
    batches = images // batch
    if batches < WHOLE:
        return [images]
    most = min(max(FEWEST, int(EPOCH / max(batch / rate, step))), MOST, batches - batches // HELD)
    return [most // 4 * batch, most // 2 * batch, most * batch]


HELD = 5
"""At least this share of the batches is held out: a few images would be one short batch, which takes other times."""
