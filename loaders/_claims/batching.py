"""Claims about ``batching``: loading in batches."""

from __future__ import annotations

from loaders._claims._declare import Found, claim, unasked
from loaders._claims._evidence import (
    Figures,
    NotMeasuredError,
    Part,
    Shown,
    above,
    below,
    both_of,
    gain,
    known,
    less_than,
    light,
    opposite_of,
    part_of,
    ratio_of,
)
from loaders._claims._figures import NOTICEABLE, PICTURE_BYTES, at_readers_amount, ratio
from loaders._law import Law
from loaders._trial.timing import SLOWER
from loaders._words import amount, duration, estimated, multiple, small_amount

SLIGHT = 0.1
"""Share of what more data take that a loader with a bound may add, or of an epoch that closing it may take."""

SIXTEEN_GB = 16e9
"""The memory of the machine that a write-up's author had."""


@claim("D1", "Loading everything exhausts memory: 10 000 pictures do not fit 16 GB.")
def everything_exhausts_memory(figures: Figures) -> Found:
    """By its law, memory grows with the data; in part where 10 000 float32 pictures would fit after all."""
    found, said = [], []
    for name in ("load_all", "load_all_from_tensor_slices"):
        law = figures.law("batching", name)
        exhausts, also = at_readers_amount(law, SIXTEEN_GB)
        found += [_follows(figures, name, law), exhausts] if law.kind == "linear" else [_follows(figures, name, law)]
        said.append(f"{name} is {law.kind}: {also}")
    return found, "; ".join(said)


@claim("D2", "Keeping only the paths makes memory independent of the data's size.")
def paths_are_independent_of_the_data(figures: Figures) -> Found:
    """Its law is not linear; four times the data need less than 1.1 times the memory."""
    parts, said = [], []
    for name in ("path_generator", "path_generator_from_generator"):
        law = figures.law("batching", name)
        follows = _follows(figures, name, law)
        parts.append(opposite_of(follows))
        slope = f"{estimated(law.per_sample, small_amount)} a picture, " if law.per_sample else ""
        grown = figures.growth_with("batching", name, "needs", "data", "x4", "x16")
        said.append(
            f"{name}: {slope}{law.kind} ({law.why}); four times the data, {multiple(ratio_of(grown))} the memory"
        )
    return parts, "; ".join(said)


@claim("D3", "A queue's capacity bounds its memory.")
def a_queue_is_bounded(figures: Figures) -> Found:
    """With a slow consumer, four times the data, beyond the capacity, add no more memory than what was left of the
    capacity, and a tenth of what the data beyond it take.
    """
    return _bounded(figures, "tf1_queue")


@claim("D4", "max_queue_size bounds a generator's memory.")
def keras_is_bounded_by_its_queue(figures: Figures) -> Found:
    """With a slow consumer, four times the data, beyond the capacity, add no more memory than what was left of the
    capacity (the queue, a batch for each worker and two in hand), and a tenth of what the data beyond it take.
    """
    return _bounded(figures, "keras_pydataset_2_short_queue")


@claim("D5", "An epoch of tf.data ends with its last batch.")
def an_epoch_ends_with_its_last_batch(figures: Figures) -> Found:
    """Dropping the iterator takes less than a tenth of the time until then, by the interval, of both pipelines; does
    not hold if it takes more of either, corrected for there being two.

    No write-up says so; every epoch's time that is taken at its last batch supposes it.
    """
    parts, said = [], []
    for question, name in (("batching", "tfdata_paths_2"), ("caching", "no_cache")):
        row = figures.row(question, name)
        closing, time = known(row["closing"]), known(row["time"])
        parts.append(part_of(less_than(closing, SLIGHT * (time.value - closing.value)), below()))
        said.append(f"{name} takes {estimated(closing, duration)} of {estimated(time, duration)} to drop its iterator")
    untuned = figures.aside("batching", "tfdata_paths_2_untuned")
    if untuned and untuned["closing"]:
        said.append(f"without autotuning {estimated(untuned['closing'], duration)}")
    return [both_of(*parts)], "; ".join(said)


@claim("D6", "Dataset.from_generator slows down a generator that makes arrays of more than 128 KiB.")
def from_generator_slows_its_process(figures: Figures) -> Found:
    """Time ratio of the same loader with malloc's threshold set back, in steps of 20 ms, interval below 1; not if any
    gain is smaller than 1.1.

    No write-up says so; TensorFlow sets the threshold against a leak (tensorflow/tensorflow#65675).
    """
    name = "pool_from_generator"
    part, said = ratio(figures, "training", f"{name}_mmap_threshold", name, "times", gain(NOTICEABLE))
    return [part], said


def _follows(figures: Figures, name: str, law: Law) -> Part:
    """Test whether a loader of ``batching`` needs more memory for more data: by the law's slope, where it has one."""
    if law.kind == "unknown":
        return Part(Shown())
    if law.kind == "linear":
        return part_of(less_than(law.per_sample, 0), above())
    return part_of(figures.growth_with("batching", name, "needs", "data", "x4", "x16"), above(NOTICEABLE))


PROCESSES = 2
"""Worker processes of ``torch_dataloader_2``."""

OWN_SETTING = "their setting: random crops of ImageNet, more cores; here: whole photographs, reduced"


@claim("E1", "turboloader is twice as fast as tf.data.")
def turboloader_is_twice_as_fast_as_tfdata(figures: Figures) -> Found:
    """Time ratio, interval above 2, against tf.data with TensorFlow's own decoder."""
    return _times_as_fast(figures, "turboloader", "tfdata_paths_autotune", 2)


@claim("E2", "turboloader is 2.7 times as fast as torch's DataLoader.")
def turboloader_is_faster_than_torch(figures: Figures) -> Found:
    """Time ratio, interval above 2.7, against two worker processes that decode with OpenCV, on two cores."""
    _as_many_threads_as_processes(figures)
    return _times_as_fast(figures, "turboloader", "torch_dataloader_2", 2.7)


@claim("E3", "SPDL is 74 % faster than torch's DataLoader.")
def spdl_is_faster_than_torch(figures: Figures) -> Found:
    """Time ratio, interval above 1.74, with the same decoder and as many threads as worker processes: on two cores."""
    _as_many_threads_as_processes(figures)
    return _times_as_fast(figures, "spdl_threads", "torch_dataloader_2", 1.74)


@claim("E4", "SPDL needs 38 % less processor time than torch's DataLoader.")
def spdl_needs_less_processor_time(figures: Figures) -> Found:
    """Ratio of processor times, 90 % interval below 0.62, with the same decoder and as many threads as worker
    processes, on two cores; in part where it is below 1.
    """
    _as_many_threads_as_processes(figures)
    part, said = ratio(figures, "batching", "spdl_threads", "torch_dataloader_2", "cpus", light(0.62, 1))
    return [part], f"processor time: {said}; {OWN_SETTING}"


@claim("E5", "grain's worker processes are faster than its threads where Python transforms images.")
def grains_processes_are_faster(figures: Figures) -> Found:
    """Time ratio of two worker processes to grain's threads, interval below 1; not if it is above 1/1.1.

    In epochs of a few hundred images, each of which starts the processes anew, and with OpenCV and NumPy, which release
    Python's lock.
    """
    part, said = ratio(figures, "batching", "grain_processes", "grain_threads", "times", gain(NOTICEABLE))
    count = figures.row("batching", "grain_processes").delivered
    return [part], f"{said}; in epochs of {count} images that OpenCV decodes, each of which starts the processes"


unasked("E6", "batching", "turboloader is 12 % faster than DALI.", "DALI comes with CUDA only")
unasked(
    "E7",
    "batching",
    "litdata reads 1.85 times as fast as WebDataset.",
    "it is said of object storage, and these files are local",
)


def _as_many_threads_as_processes(figures: Figures) -> None:
    """Refuse to judge where an engine has more threads, one per core, than the other has worker processes."""
    cores = figures.comparison("batching").environment.cores
    if cores != PROCESSES:
        raise NotMeasuredError(f"{PROCESSES} worker processes are held against a thread for each of {cores} cores")


def _times_as_fast(figures: Figures, engine: str, other: str, bound: float) -> Found:
    """Test whether an engine is so many times as fast as another strategy, as its makers say."""
    part, said = ratio(figures, "batching", other, engine, "times", above(bound))
    return [part], f"{said}; {OWN_SETTING}"


def _bounded(figures: Figures, name: str) -> Found:
    """Test whether a loader's buffers stop growing at their capacity, with a consumer slow enough to fill them.

    Between two amounts of data memory may grow by what is left of the capacity at the smaller one, and by ``SLIGHT`` of
    what the data beyond it would take. Nothing is concluded where one without a bound would grow by no more. A share of
    the memory needed would be less than one batch for a lean loader, and whether one more batch is in flight when
    memory is read is chance.
    """
    few, many = (figures.row("batching", name, data=data) for data in ("x4", "x16"))
    capacity = few.capacity
    if few["peak_slow"] is None or many["peak_slow"] is None or few["needed"] is None or not few.delivered:
        raise NotMeasuredError(f"{name} was not run with a slow consumer")
    if not many.delivered or many.delivered <= capacity:
        raise NotMeasuredError(f"{name} may hold {capacity} pictures, and the most data is {many.delivered or 0}")
    more, room = many.delivered - few.delivered, max(0, capacity - few.delivered)
    most = (room + SLIGHT * (more - room)) * PICTURE_BYTES
    if most >= more * PICTURE_BYTES * (1 - 1 / SLOWER):
        raise NotMeasuredError(f"{name} may hold {capacity} pictures, more than wait for the consumer without a bound")
    grown = figures.increase(many, few, "needs")
    said = (
        f"with a slow consumer {estimated(few['needed'], amount)} for {few.delivered} pictures and "
        f"{estimated(many['needed'], amount)} for {many.delivered}: {estimated(grown, amount)} more, where "
        f"a capacity of {capacity} allows {amount(most)} of the {amount(more * PICTURE_BYTES)} that {more} more take"
    )
    return [part_of(less_than(grown, most), below())], said
