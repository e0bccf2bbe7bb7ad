"""What one trial measures: the fields of ``Metrics``, each of which declares its figure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from loaders._contract import Delivery, OddFiles, OrderQuality
from loaders._figures import figure, meaning
from loaders._trial.growth import Growth
from loaders._units import Bytes, Count, Level, Quantity, Seconds, Share, Size, Word

MOST_POINTS = msgspec.Meta(max_length=10_000)
"""Limit on the points of a trace or a walk; the suite writes 400 and 1000."""

MOST_ROLES = msgspec.Meta(max_length=10)
"""Limit on what the processes of one trial do."""


class BatchTime(msgspec.Struct, frozen=True):
    """Latency of each ``next()``, in seconds."""

    p50: Seconds
    p95: Seconds
    p99: Seconds
    max: Seconds


class MemoryTrace(msgspec.Struct, frozen=True):
    """Memory above the baseline over the batches: parallel lists.

    ``resident`` is the memory of the process or, with ``tree``, of its process tree (PSS). ``file`` is the part of
    it that the system can reclaim because a file holds it too.
    ``in_use`` is what malloc has handed out, ``held`` is memory that was freed but kept by malloc (``None`` where the
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
    """Other activity on the machine during a trial.

    The shares of processor time are those of the steady epochs, on which rankings rest, or of the only epoch. If that
    is less than 0.2 s of processor time, which the system tells in steps of 10 ms, and in older records, they cover all
    of the time from the start of the process until it had measured. ``swapped`` and ``throttled`` always do.

    Attributes
    ----------
    others
        Share of the machine's processor time (0 to 1) used by neither the trial's processes nor the watching one.
    stolen
        Share that the hypervisor gave to other guests; ``None`` where the system does not tell.
    swapped
        Bytes that the machine wrote to swap and read from it; ``None`` where the system does not tell.
    throttled
        How often the processors were throttled because of heat; ``None`` where the system does not tell.
    over
        Seconds of processor time, of all processors together, that the shares are of; older records have none.
    """

    others: Share
    stolen: Share | None = None
    swapped: Size | None = None
    throttled: Count | None = None
    over: Seconds | None = None

    @property
    def taken(self) -> float:
        """The share of processor time that went to other processes and other guests."""
        return self.others + (self.stolen or 0.0)


class Metrics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that one trial measures; a metric that does not apply is absent.

    Each field declares its unit, heading, scale and meaning (see ``loaders._figures``). Rows, tables, the
    CSV file, asv's benchmarks and the page follow from that.
    """

    epoch_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "From just before the strategy is built to the last batch of the first epoch, and the mean of what it "
            "takes to drop an iterator. So a strategy that does its work when it is called is charged like one that "
            "does it when it is iterated.",
            name="epoch",
            scale="ratio",
            tracked=True,
        ),
    ] = None
    steady_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "A steady epoch: the median of the epochs after the first, over the same object (built anew if it is a "
            "one-way iterator), and the mean of what it takes to drop their iterators. Short epochs are repeated, for "
            "this figure only, until they are three and take half a second, are 20 or take two seconds; where others "
            "used more than 6 % of the processor time, as many are run again, and the least disturbed count. Absent "
            "where an epoch has fewer than three batches.",
            name="steady",
            scale="ratio",
            tracked=True,
        ),
    ] = None
    steady_epochs: Annotated[
        Count | None,
        figure("epochs", "Number of epochs that ``steady_time`` is the median of; older records have none."),
    ] = None
    closing_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "Of a steady epoch, to drop its iterator, which ends threads that have read ahead; older records have none "
            "and leave it out. Absent where several passes are made with one iterator.",
            name="closing",
            heading="of it closing",
            shown="page",
        ),
    ] = None
    start_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "By how much ``first_batch_time`` exceeds a steady batch: tracing, threads, filling buffers. Absent where "
            "``steady_time`` is.",
            name="start",
            heading="start",
            tracked=True,
            fresh_only=True,
        ),
    ] = None
    wait_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "How long a slow consumer, which takes ``slow_step`` seconds for each batch, waits on average for a batch "
            "after the first: about zero if the strategy works ahead.",
            name="wait",
        ),
    ] = None
    slow_step: Annotated[Seconds | None, figure("s", "How long the slow consumer takes for each batch.")] = None
    slow_first: Annotated[Seconds | None, figure("s", "How long it waits for its first batch.")] = None
    step_wait: Annotated[
        Seconds | None,
        figure(
            "s",
            "How long a training step waits for its batch: the median of all steady epochs, without the first batch of "
            "each.",
            name="step_wait",
            heading="a step waits",
        ),
    ] = None
    step_wait_99: Annotated[
        Seconds | None,
        figure(
            "s",
            "The same: one step in a hundred waits longer. A trial of two steady epochs of twenty batches has but 38.",
            name="step_wait_99",
            heading="1 % wait longer than",
        ),
    ] = None
    first_batch_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "From the call that builds the strategy to the first batch in hand.",
            name="first_batch",
            scale="ratio",
            tracked=True,
            fresh_only=True,
        ),
    ] = None
    sample_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "A sample after the first batch; over the whole epoch if there is only one batch.",
            scale="ratio",
            tracked=True,
        ),
    ] = None
    throughput: Annotated[
        Quantity | None,
        figure(
            "samples/s",
            "Of a steady epoch; 1 / ``sample_time`` where there is none.",
            name="throughput",
            scale="ratio",
        ),
    ] = None
    batch_time: Annotated[BatchTime | None, meaning("Latency of the batches after the first.")] = None
    slow_batch_time: Annotated[
        BatchTime | None, meaning("The same for the slow consumer: how long it waits for a batch.")
    ] = None
    cpu_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "Processor time of an epoch, user and system, of the process and of all that it started.",
            name="cpu",
            heading="processor time",
            scale="ratio",
            shown="page",
            tracked=True,
        ),
    ] = None
    peak_memory: Annotated[
        Size | None,
        figure(
            "bytes",
            "Highest resident set above the baseline, which is read after imports and inputs, and after the code of "
            "all libraries has been mapped.",
            name="peak",
            tracked=True,
        ),
    ] = None
    peak_memory_slow: Annotated[
        Size | None,
        figure(
            "bytes",
            "The same, including the slow consumer's epoch; a slow consumer fills buffers that a fast one never fills.",
            name="peak_slow",
            heading="with a slow consumer",
        ),
    ] = None
    peak_memory_tree: Annotated[
        Size | None,
        figure(
            "bytes",
            "The highest of all epochs for the process tree, shared pages divided (PSS), if there were children. "
            "Short epochs are repeated until it has been read ten times; if fewer than five times, it is unknown.",
            name="peak_tree",
            heading="peak of the process tree",
        ),
    ] = None
    tree_readings: Annotated[
        Count | None,
        figure("readings", "Number of readings that ``peak_memory_tree`` is the highest of; older records have none."),
    ] = None
    needed_memory: Annotated[
        Size | None,
        figure(
            "bytes",
            "Of the highest of these peaks, what the system cannot reclaim: the peak minus the most mapped file "
            "memory, and never less than the highest anonymous and shared memory that was seen, after batches and "
            "every 20 ms. If a strategy maps files, a shorter spike may be missed; otherwise it is the kernel's own "
            "peak.",
            name="needed",
            heading="needed",
            tracked=True,
        ),
    ] = None
    anonymous_memory: Annotated[
        Bytes | None,
        figure(
            "bytes",
            "The highest value above the baseline of memory not backed by a file (``RssAnon``); process tree included.",
            name="anonymous",
        ),
    ] = None
    file_memory: Annotated[
        Bytes | None,
        figure(
            "bytes",
            "The highest value above the baseline of mapped files (``RssFile``); process tree included.",
            name="file",
        ),
    ] = None
    shared_memory: Annotated[
        Bytes | None,
        figure("bytes", "The highest value above the baseline of shared memory (``RssShmem``); process tree included."),
    ] = None
    memory_floor: Annotated[
        Size | None, figure("bytes", "Minimum that the strategy's buffers must hold, if known.")
    ] = None
    retained_memory: Annotated[
        Bytes | None,
        figure(
            "bytes",
            "Still held above the baseline after all epochs (repeated ones included), ``del`` and ``gc.collect()``.",
            name="retained",
            heading="retained",
            tracked=True,
        ),
    ] = None
    convert_time: Annotated[
        Seconds | None,
        figure(
            "s",
            "To write the files that the strategy reads into the page cache, in a separate process.",
            name="convert_time",
            heading="to convert",
            scale="ratio",
        ),
    ] = None
    convert_memory: Annotated[
        Size | None,
        figure(
            "bytes",
            "The highest resident set of that process above its baseline, with library code mapped beforehand.",
            name="convert_memory",
            heading="memory of the conversion",
            shown="page",
        ),
    ] = None
    disk_bytes: Annotated[
        Size | None,
        figure(
            "bytes",
            "Of the files that the strategy reads, or that it writes for a later epoch.",
            name="disk",
            heading="on disk",
        ),
    ] = None
    bodies_in_flight: Annotated[
        Count | None,
        figure(
            "bodies",
            "Peak number of concurrent Python bodies, whatever number was asked for.",
            name="in_flight",
            heading="bodies in flight",
        ),
    ] = None
    waiting: Annotated[
        Count | None,
        figure(
            "elements",
            "Peak number of finished elements that the consumer had not yet taken.",
            name="waiting",
            heading="elements waiting",
        ),
    ] = None
    waiting_bytes: Annotated[Size | None, figure("bytes", "Peak size of such elements.", name="waiting_bytes")] = None
    lost: Annotated[Count | None, figure("samples", "That the strategy left out, if it is allowed to.")] = None
    allocator_held: Annotated[
        Bytes | None,
        figure(
            "bytes",
            "Freed by the program but not returned to the system by malloc, beyond what it held at the baseline.",
            name="held",
            heading="of it held by malloc",
            shown="page",
        ),
    ] = None
    memory_trace: Annotated[MemoryTrace | None, meaning("Memory over the batches.")] = None
    memory_growth: Annotated[Growth | None, meaning("The verdict on the trace.")] = None
    samples: Annotated[Count | None, figure("samples", "Delivered in an epoch.")] = None
    batches: Annotated[Count | None, figure("batches", "Delivered in an epoch.")] = None
    psnr: Annotated[Level | None, figure("dB", "The worst value over all images.")] = None
    max_difference: Annotated[Level | None, figure("grey levels", "The worst value over all images.")] = None
    order_quality: Annotated[OrderQuality | None, meaning("How well mixed the order was.")] = None
    odd_files: Annotated[OddFiles | None, meaning("What it makes of files that are turned or damaged.")] = None
    wire_bytes: Annotated[
        Size | None,
        figure(
            "bytes",
            "Received over the loopback interface for each sample, by whatever runs on this machine.",
            name="wire",
            heading="on the wire, a sample",
        ),
    ] = None
    cpu_by_role: Annotated[
        Annotated[dict[Word, Seconds], MOST_ROLES] | None,
        meaning("Processor time of an epoch: of the process that trains, the dispatcher, and all workers."),
    ] = None
    memory_by_role: Annotated[
        Annotated[dict[Word, Size], MOST_ROLES] | None,
        meaning(
            "Memory after the last epoch: of the process that trains, above its baseline, and all that the dispatcher "
            "and the workers hold."
        ),
    ] = None
    delivery: Annotated[Delivery | None, meaning("How often each sample came, against what is documented.")] = None
    left_behind: Annotated[Size | None, figure("bytes", "Shared memory that stayed after an epoch's end.")] = None
    steps: Annotated[
        Annotated[list[Count], MOST_POINTS] | None,
        meaning("The numbers of some delivered samples, if the question draws the order."),
    ] = None
    walk: Annotated[Annotated[list[Count], MOST_POINTS] | None, meaning("The places on disk of these samples.")] = None
    disturbance: Annotated[Disturbance | None, meaning("What else the machine did during the trial.")] = None

    def __post_init__(self) -> None:
        if self.steps and self.walk and len(self.steps) != len(self.walk):
            raise ValueError("`steps` and `walk` differ in length")
