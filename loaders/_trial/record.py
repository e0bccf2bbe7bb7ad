"""The values that travel from a trial to the page. Seconds, bytes and counts; units never flip."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from loaders._contract import OrderQuality
from loaders._trial.growth import Growth
from loaders._trial.memory import Held
from loaders._units import Bytes, Count, Level, Name, Quantity, Seconds, Share, Size

Status = Literal["ok", "failed", "over_budget", "timed_out", "wrong_output", "skipped"]

SCHEMA = 2
"""Raised by hand when a record's meaning changes. Older records stay readable: they are an older instrument's, stand in
sets of their own, and no answer rests on them."""

MOST_POINTS = msgspec.Meta(max_length=10_000)
"""Of a trace or a walk; the suite writes 400 and 1000."""

MOST_NAMES = msgspec.Meta(max_length=100)
"""Of packages, or of a case's axes."""

SAID = 2000
"""Characters of a message; an exception may carry a whole array."""


def shortened(message: str) -> str:
    """Return a message without its middle where it is too long, and without what UTF-8 has no bytes for."""
    message = message.encode(errors="backslashreplace").decode()
    return message if len(message) <= SAID else f"{message[: SAID // 2]} […] {message[-SAID // 2 :]}"


class Trial(msgspec.Struct, frozen=True):
    """What to run: one strategy, on one corpus, once.

    ``corpus`` is the directory of the corpus; ``epochs`` is how often it is walked; ``outside`` are ``--with`` files;
    ``imports`` are modules that earlier runs were seen to import while they were measured;
    ``memory_limit`` is in bytes for the whole process tree, ``deadline`` in seconds. ``variables`` are set before the
    process starts; with ``skip``, a reason in words, it is not started.
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
    skip: str = ""
    memory_limit: int | None = None
    deadline: float = 600.0


class BatchTime(msgspec.Struct, frozen=True):
    """Latency of each ``next()``, in seconds."""

    p50: Seconds
    p95: Seconds
    p99: Seconds
    max: Seconds


class MemoryTrace(msgspec.Struct, frozen=True):
    """Memory above the baseline over the batches: parallel lists.

    ``resident`` is that of the process, or with ``tree`` of all its processes together (PSS). ``file`` is the part of
    it that the system can take back because a file holds it too.
    ``in_use`` is what malloc has handed out and ``held`` what it was given back and has kept (``None`` where the
    allocator cannot be asked); the rest of resident memory is Python's own arenas, code and stacks. TensorFlow with
    oneDNN takes larger tensors from a pool, in chunks that are in use as a whole, touched or not.
    """

    step: Annotated[list[Count], MOST_POINTS]
    seconds: list[Seconds]
    resident: list[Bytes]
    in_use: list[Bytes] | None
    held: list[Bytes] | None = None
    file: list[Bytes] | None = None
    tree: bool = False

    def __post_init__(self) -> None:
        lists = (self.step, self.seconds, self.resident, self.in_use, self.held, self.file)
        if len({len(each) for each in lists if each is not None}) > 1:
            raise ValueError("the lists of a memory trace differ in length")


class Disturbance(msgspec.Struct, frozen=True, omit_defaults=True):
    """What else went on while a trial ran, from the start of its process until it had measured.

    Most trials measure for less than the system's 10 ms resolve, so it is asked over the whole of them.

    Attributes
    ----------
    others
        Share of the machine's processor time (0 to 1) that neither the trial's processes nor the watching one used.
    stolen
        Share that the hypervisor gave to other guests; ``None`` where the system does not tell.
    swapped
        Bytes that the machine wrote to swap and read from it; ``None`` where the system does not tell.
    throttled
        How often the processors slowed down for their heat; ``None`` where the system does not tell.
    """

    others: Share
    stolen: Share | None = None
    swapped: Size | None = None
    throttled: Count | None = None


class Metrics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that one trial measures; a metric that does not apply is absent.

    Attributes
    ----------
    epoch_time
        Seconds of the first epoch, from just before the strategy is built, so that one that does its work when it is
        called is charged like one that does it when it is iterated.
    steady_time
        Seconds of an epoch once the strategy runs: the median of the epochs after the first, of the same object (built
        anew where it is one-way). Absent where an epoch has fewer than three batches.
    start_time
        Seconds of ``first_batch_time`` beyond a steady batch: tracing, threads, filling buffers. Absent where
        ``steady_time`` is.
    first_batch_time
        Seconds from the call that builds the strategy to the first batch in hand.
    wait_time
        Seconds that a slow consumer, which takes ``slow_step`` seconds for each batch, waits for a batch in the mean,
        the first left out: about zero where the strategy works ahead.
    slow_step
        Seconds that the slow consumer takes for each batch.
    sample_time
        Seconds a sample after the first batch; the whole epoch's where there is one batch only.
    throughput
        Samples a second: 1 / ``sample_time``.
    batch_time
        Latency of the batches after the first.
    cpu_time
        Seconds of an epoch, user and system, ended children included.
    peak_memory
        Bytes: highest resident set above the baseline, which is read after imports and inputs, and after the code of
        all libraries has been mapped.
    peak_memory_slow
        Bytes: the same with the slow consumer's epoch included; a slow consumer fills buffers that a fast one never
        does.
    peak_memory_tree
        Bytes: the highest of all epochs over the process tree, shared pages divided (PSS), where there were child
        processes.
    needed_memory
        Bytes of the highest of these that the system cannot take back: the peak without the most pages of mapped files,
        and never less than the highest anonymous and shared memory that was seen, after batches and every 20 ms. Where
        a strategy maps files, a shorter spike may go unseen; elsewhere it is the kernel's own peak.
    anonymous_memory, file_memory, shared_memory
        Bytes above the baseline: the highest that was seen of memory that no file holds (``RssAnon``), of mapped files
        (``RssFile``) and of shared memory (``RssShmem``), each at its own time; process tree included.
    memory_floor
        Bytes that the strategy's buffers must hold at least, where they are known.
    retained_memory
        Bytes still held above the baseline after exhaustion, ``del`` and ``gc.collect()``.
    convert_time
        Seconds to write what the strategy reads, into the page cache, in a process of its own.
    convert_memory
        Bytes: the highest resident set of that process above its baseline, the code of libraries mapped before.
    disk_bytes
        Bytes of the files that the strategy reads, or writes for a later epoch.
    bodies_in_flight
        Python bodies that ran at the same time, at the most, whatever number was asked for.
    waiting, waiting_bytes
        Elements that stood finished before the consumer took them, at the most, and their bytes.
    lost
        Samples that the strategy left out, where it may.
    allocator_held
        Bytes freed by the program and not returned by malloc, beyond those at the baseline.
    memory_trace
        Memory over the batches.
    memory_growth
        The verdict over the trace.
    samples, batches
        How many an epoch delivered.
    psnr, max_difference
        Of images, in dB and grey levels: the worst.
    order_quality
        How well mixed the order was.
    steps, walk
        Where the question draws the order: some delivered samples' numbers, and their places on disk.
    disturbance
        What else the machine did meanwhile.
    """

    epoch_time: Seconds | None = None
    steady_time: Seconds | None = None
    start_time: Seconds | None = None
    wait_time: Seconds | None = None
    slow_step: Seconds | None = None
    first_batch_time: Seconds | None = None
    sample_time: Seconds | None = None
    throughput: Quantity | None = None
    batch_time: BatchTime | None = None
    cpu_time: Seconds | None = None
    peak_memory: Size | None = None
    peak_memory_slow: Size | None = None
    peak_memory_tree: Size | None = None
    needed_memory: Size | None = None
    anonymous_memory: Bytes | None = None
    file_memory: Bytes | None = None
    shared_memory: Bytes | None = None
    memory_floor: Size | None = None
    retained_memory: Bytes | None = None
    convert_time: Seconds | None = None
    convert_memory: Size | None = None
    disk_bytes: Size | None = None
    bodies_in_flight: Count | None = None
    waiting: Count | None = None
    waiting_bytes: Size | None = None
    lost: Count | None = None
    allocator_held: Bytes | None = None
    memory_trace: MemoryTrace | None = None
    memory_growth: Growth | None = None
    samples: Count | None = None
    batches: Count | None = None
    psnr: Level | None = None
    max_difference: Level | None = None
    order_quality: OrderQuality | None = None
    steps: Annotated[list[Count], MOST_POINTS] | None = None
    walk: Annotated[list[Count], MOST_POINTS] | None = None
    disturbance: Disturbance | None = None

    def __post_init__(self) -> None:
        if self.steps and self.walk and len(self.steps) != len(self.walk):
            raise ValueError("`steps` and `walk` differ in length")


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a figure must never be quoted without.

    ``packages`` maps names to versions; ``variables`` holds those environment variables that change how memory
    is managed or TensorFlow behaves; ``threads`` the pinned thread counts; ``memory_method`` says how peaks
    were read; ``page_cache`` is the share of the files that the strategy reads that was in the page cache when the
    measurement began. The host's name is not recorded.

    What the system does not tell is absent. ``load`` is that of the minute before; ``governor`` is the policy that the
    processors' frequency follows, ``frequency`` and ``frequency_limit`` in Hz those of the first processor, now and at
    the most; ``huge_pages`` is when memory comes in huge pages (``always``, ``madvise``, ``never``); ``swap`` is what
    is in use of it, in bytes; ``virtual`` says whether this is a virtual machine.
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


class Record(msgspec.Struct, frozen=True):
    """One finished trial, and how it finished.

    ``run`` names the comparison that it belongs to, ``round`` its place in it and ``planned`` the number of trials in a
    round; ``data`` says which bytes it read, by origin and digest; ``message`` says in words what went wrong;
    ``limited_by`` is what held it to its limits: a ``cgroup`` of the kernel's, else the watched ``process tree``.
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
    schema: int = SCHEMA


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The fresh process has measured; what it holds from here on is the check's."""


class Imported(msgspec.Struct, frozen=True, tag=True):
    """The process has imported modules while it was measured: its figures are void, the next imports them first."""

    modules: list[str]


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """What the fresh process reports of itself when it comes to its end.

    ``began`` and ``ended`` are when the epochs for a fast consumer did, in seconds of the clock of batches.
    """

    status: Status
    message: str = ""
    metrics: Metrics = Metrics()
    began: float = 0.0
    ended: float = 0.0


class Converted(msgspec.Struct, frozen=True, tag=True):
    """What a conversion's own process reports; see ``Metrics`` for the units."""

    time: float
    memory: int


class Progress(msgspec.Struct, frozen=True, tag=True):
    """What the fresh process reports on its way: the baseline, before anything is measured.

    ``baseline`` is resident memory, ``baseline_tree`` the same with shared pages divided, which a tree is measured by.
    """

    baseline: Held
    baseline_tree: Held
    environment: Environment
