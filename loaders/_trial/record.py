"""The values that travel from a trial to the page: seconds, bytes and counts, always in the same units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from loaders._trial.memory import Held
from loaders._trial.metrics import Metrics
from loaders._units import Count, Name, Quantity, Seconds, Share, Size

Status = Literal["ok", "failed", "over_budget", "timed_out", "wrong_output", "skipped"]

SCHEMA = 2
"""Raised by hand when the meaning of a record changes. Older records stay readable, but they come from an older
instrument: they form separate sets, and no answer is based on them."""

MOST_NAMES = msgspec.Meta(max_length=100)
"""Limit on the number of packages, or of a case's axes."""

SAID = 2000
"""Maximum length of a message in characters; an exception may contain a whole array."""


def shortened(message: str) -> str:
    """Return a message, its middle cut out if it is too long, and characters that UTF-8 cannot encode escaped."""
    message = message.encode(errors="backslashreplace").decode()
    return message if len(message) <= SAID else f"{message[: SAID // 2]} […] {message[-SAID // 2 :]}"


class Trial(msgspec.Struct, frozen=True):
    """What to run: one strategy, on one corpus, once.

    ``corpus`` is the directory of the corpus; ``epochs`` is how often it is read; ``outside`` are ``--with`` files;
    ``imports`` are modules that earlier runs were seen to import while they were measured; ``ahead`` are those, each
    with the attributes used of it, that the other strategies of its group import: it imports them as well, as a server
    does for forks, because what a process has imported decides how its memory allocator behaves afterwards;
    ``memory_limit`` is in bytes for the whole process tree, ``deadline`` in seconds. For ``still`` seconds, or a minute
    if that is more, it may use next to no processor time, as one does that waits for a long step. ``variables`` are set
    before the process starts; if ``skip`` gives a reason, it is not started. Without ``slow`` there is no slow
    consumer; without ``checked`` only the number of samples is checked of what the strategy delivers; without
    ``pinned`` the numbers of threads are left as they are. ``turns`` is the directory in which it asks for its steady
    epochs, one by one, if another trial runs its own in between (``loaders._trial.turns``).
    """

    question: str
    strategy: str
    case: dict[str, str]
    corpus: str
    seed: int
    epochs: int = 1
    outside: list[str] = []
    variables: dict[str, str] = {}
    imports: list[str] = []
    ahead: dict[str, set[str]] = {}
    skip: str = ""
    memory_limit: int | None = None
    deadline: float = 600.0
    still: float = 0.0
    slow: bool = True
    checked: bool = True
    pinned: bool = True
    turns: str = ""


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What every figure must be quoted with.

    ``packages`` maps names to versions; ``variables`` holds the environment variables that change how memory
    is managed or TensorFlow behaves; ``threads`` holds the pinned thread counts; ``memory_method`` says how peaks
    were read; ``page_cache`` is the share of the strategy's input files that was in the page cache when the
    measurement began. The host name is not recorded.

    Values that the system does not tell are absent. ``load`` is that of the minute before; ``governor`` is the policy
    for the processors' frequency; ``frequency`` and ``frequency_limit`` are the current and highest ones of the first
    processor, in Hz; ``huge_pages`` says when huge pages are used (``always``, ``madvise``, ``never``); ``swap`` is the
    swap in use, in bytes; ``virtual`` says whether this is a virtual machine; ``onednn`` says whether TensorFlow uses
    oneDNN (``on``, ``off``), and with it a pool of its own for larger tensors, where it has been imported.
    """

    machine: Name = ""
    cpu: Name = ""
    cores: Count = 0
    memory: Size = 0
    system: Name = ""
    kernel: Name = ""
    allocator: Name = ""
    python: Name = ""
    packages: Annotated[dict[Name, Name], MOST_NAMES] = {}
    variables: dict[str, str] = {}
    threads: dict[str, int] = {}
    load: Quantity | None = None
    memory_method: Name = ""
    page_cache: Share | None = None
    commit: Name = ""
    governor: Name = ""
    frequency: Count | None = None
    frequency_limit: Count | None = None
    huge_pages: Name = ""
    swap: Size | None = None
    virtual: bool | None = None
    onednn: Name = ""


class Record(msgspec.Struct, frozen=True):
    """One finished trial and its result.

    ``run`` names the comparison that it belongs to, ``round`` the round in it, and ``planned`` the number of trials per
    round; ``data`` identifies the bytes read, by origin and digest; ``message`` says in words what went wrong;
    ``process`` says whether it ran in a new interpreter or in a fork of a server that had done the imports;
    ``limited_by`` says what enforced its limits: the kernel's ``cgroup``, else the watched ``process tree``;
    ``tries`` says how many runs it took: one robbed of processor time is repeated, and the least disturbed is recorded;
    ``checked`` says whether what it delivered was checked, or only its number of samples; ``found`` is what its
    question's audit says of that, if it has one.
    """

    question: Name
    strategy: Name
    status: Status
    message: str
    metrics: Metrics
    environment: Environment
    case: Annotated[dict[Name, Name], MOST_NAMES]
    size: Name
    data: Name
    seed: int
    started: Name
    seconds: Seconds
    epochs: Annotated[int, msgspec.Meta(ge=1, le=10**9)] = 1
    run: Name = ""
    round: Count = 0
    planned: Count = 0
    limited_by: Name = ""
    process: Literal["fresh", "forked"] = "fresh"
    tries: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    checked: bool = True
    found: dict[str, Any] = {}
    schema: int = SCHEMA

    @property
    def went_wrong(self) -> bool:
        """Whether it failed in any way; what was skipped did not run."""
        return self.status not in ("ok", "skipped")

    @property
    def pairing(self) -> int:
        """The number by which to pair trials of several cases: the round, below zero for forked trials.

        So none pairs with a trial that started otherwise: within a case all of a round start alike, but the same round
        of another case may not.
        """
        return self.round if self.process == "fresh" else ~self.round


def surroundings(records: Iterable[Record]) -> Environment:
    """Return what trials of one machine and one software ran on, as the one tells it that knows most.

    A trial that ended early could not describe its environment, and some strategies set variables of their own.
    """
    return max(
        (each.environment for each in records),
        key=lambda each: (len(each.packages), -len(each.variables), bool(each.onednn)),
    )


class Timed(msgspec.Struct, frozen=True, tag=True):
    """The process has run the epochs that are timed; until ``Measured`` it runs others, to have its workers read."""


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The trial's process has finished measuring memory; what it holds from now on is in no figure."""


class Imported(msgspec.Struct, frozen=True, tag=True):
    """The process imported modules while it was measured: its figures are void, and the next run imports them first."""

    modules: list[str]


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """The final report of the trial's process.

    ``began`` and ``ended`` say when the epochs for a fast consumer did so, in seconds of the clock that stamps batches;
    ``had_workers`` says whether the strategy started processes; ``found`` is that of the record.
    """

    status: Status
    message: str = ""
    metrics: Metrics = Metrics()
    began: float = 0.0
    ended: float = 0.0
    had_workers: bool = False
    found: dict[str, Any] = {}


class Converted(msgspec.Struct, frozen=True, tag=True):
    """The report of a conversion's own process; see ``Metrics`` for the units."""

    time: float
    memory: int


class Progress(msgspec.Struct, frozen=True, tag=True):
    """The interim report of the trial's process: the baseline, before anything is measured.

    ``baseline`` is resident memory; ``baseline_tree`` is the same with shared pages divided, the measure for a tree.
    """

    baseline: Held
    baseline_tree: Held
    environment: Environment
