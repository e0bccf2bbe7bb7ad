"""The write-ups' claims, each with the rule that decides it from the figures. Verdicts are computed, never typed.

A claim is one entry of ``CLAIMS``. Its rule is a small pure function from the figures of one result set to the claim's
parts, each with the p-values of the ways that it can come out (``loaders._report.evidence``), and the sentence that
carries the figures. The claims of a page are corrected by Holm among themselves; one that does not survive that is
*undecided here*, and so is one whose figures were not measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from loaders import _registry
from loaders._judge import TIME_MARGIN
from loaders._law import Law
from loaders._report.evidence import (
    Figure,
    Figures,
    NotMeasuredError,
    Part,
    Shown,
    Test,
    Verdict,
    above,
    below,
    both,
    exactly,
    gain,
    known,
    less_than,
    light,
    margin_of_two,
    of_trials,
    opposite,
    part_of,
    ratio_of,
    ratio_to,
    settle,
    unchanged,
    within,
)
from loaders._rows import Comparison, Row
from loaders._stats import estimate
from loaders._words import amount, duration, estimated, factor, level, multiple, small_amount

MIB = 2**20
NOTICEABLE = 1.1
"""A factor: 10 % is what a claim of faster, leaner or growing must be good for."""

LIGHT = 1.25
"""Peak over that of the same pipeline without a cache, up to which a cache is light in part."""

PICTURE_BYTES = 224 * 224 * 3 * 4
"""Of a float32 picture in ``caching`` and ``batching``."""

PICTURES = 10_000
"""The amount of data that readers of the write-ups had."""

SIXTEEN_GB = 16e9
"""The memory of the machine that a write-up's author had."""

LEAK = 12 * MIB
"""A call: the least that a write-up saw resize leak."""

MANY_CALLS = 4
"""One-time memory is told from a leak by several calls."""

QUEUED = (10 + 4 + 2) * 32
"""Pictures that Keras may hold with ``max_queue_size=10`` and four workers: the queue, a batch under way with each, two
in hand."""

Found = tuple[list[Part], str]


class Claim(msgspec.Struct, frozen=True):
    """What somebody wrote, and how it is decided here.

    Attributes
    ----------
    rule
        In words, what ``judge`` does.
    """

    id: str
    question: str
    text: str
    rule: str
    judge: Callable[[Figures], Found]


class Ruling(msgspec.Struct, frozen=True):
    """A claim with its verdict; ``measured`` is the figure that decided it, or what is missing."""

    claim: Claim
    verdict: Verdict
    measured: str


def judged(comparisons: Sequence[Comparison]) -> list[Ruling]:
    """Return every claim with its verdict."""
    figures = Figures(comparisons)
    found: list[tuple[Claim, list[Part], str]] = []
    for claim in CLAIMS:
        try:
            found.append((claim, *claim.judge(figures)))
        except NotMeasuredError as missing:
            found.append((claim, [], str(missing)))
    verdicts = iter(settle([parts for _, parts, _ in found if parts]))
    rulings = []
    for claim, parts, said in found:
        verdict, needed = next(verdicts) if parts else ("undecided here", "")
        rulings.append(Ruling(claim, verdict, "; ".join(filter(None, [said, needed]))))
    return rulings


def counted(comparisons: Sequence[Comparison]) -> str:
    """Count the verdicts: ``Of 28 claims 2 do not hold, 5 hold in part, 13 hold, 8 are undecided here``."""
    found = Counter(each.verdict for each in judged(comparisons))
    words: dict[Verdict, tuple[str, str]] = {
        "does not hold": ("does not hold", "do not hold"),
        "holds in part": ("holds in part", "hold in part"),
        "holds": ("holds", "hold"),
        "undecided here": ("is undecided here", "are undecided here"),
    }
    said = [f"{found[verdict]} {words[verdict][found[verdict] != 1]}" for verdict in words if found[verdict]]
    return f"Of {found.total()} claims {', '.join(said)}"


def _ratio(
    figures: Figures, question: str, one: str, other: str, figure: Figure, test: Test, **case: str
) -> tuple[Part, str]:
    """Test the ratio of two strategies' figures, and put it into words."""
    first, second = figures.row(question, one, **case), figures.row(question, other, **case)
    part = part_of(figures.ratio(question, one, other, figure, **case), test)
    said = [
        estimated(row.time, duration) if figure == "times" else estimated(row.peak, amount) for row in (first, second)
    ]
    ratio = multiple(ratio_of(part.difference)) if part.difference else ""
    return part, f"{one} {said[0]}, {other} {said[1]}: {ratio}"


def _leaner(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Part, str]:
    margin = margin_of_two(figures.row(question, one, **case), figures.row(question, other, **case))
    return _ratio(figures, question, one, other, "peaks", gain(margin), **case)


def _faster(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Part, str]:
    return _ratio(figures, question, one, other, "times", gain(TIME_MARGIN), **case)


def _joined(found: Sequence[tuple[Part, str]], *named: str) -> Found:
    names = [f"{each}: " for each in named] or [""] * len(found)
    said = "; ".join(f"{name}{each}" for name, (_, each) in zip(names, found, strict=True))
    return [part for part, _ in found], said


def _a1(figures: Figures) -> Found:
    parts, said = _joined(
        [
            _ratio(figures, "python_map", "py_function_8", "py_function_1", "peaks", above(NOTICEABLE), work=work)
            for work in ("array", "scalar")
        ],
        "array",
        "scalar",
    )
    flight = figures.row("python_map", "py_function_8", work="array").in_flight
    return parts, said + (f"; bodies in flight at 8: {flight.value:.3g}" if flight else "")


def _a2(figures: Figures) -> Found:
    return _joined(
        [
            _leaner(figures, "python_map", f"{name}_nondeterministic", name, work="array")
            for name in ("py_function_4", "py_function_8")
        ]
    )


def _a3(figures: Figures) -> Found:
    return _joined(
        [
            _leaner(figures, "python_map", "py_function_4", "py_function_8", work="array"),
            _leaner(figures, "python_map", "py_function_4_prefetch_2", "py_function_4", work="array"),
        ],
        "four workers",
        "a modest prefetch",
    )


def _a4(figures: Figures) -> Found:
    two, auto = "py_function_4_prefetch_2", "py_function_4_prefetch_autotune"
    return _joined([_leaner(figures, "python_map", two, auto, work="array")])


def _a5(figures: Figures) -> Found:
    return _joined(
        [
            _faster(figures, "python_map", "native_4", "py_function_4", work="decode"),
            _faster(figures, "batching", "tfdata_paths_autotune", "tfdata_numpy_function"),
        ],
        "one map",
        "a whole loader",
    )


def _a6(figures: Figures) -> Found:
    row = figures.row("python_map", "py_function_8", work="array")
    if not row.waiting or not row.waiting_bytes or not row.trace or not row.trace.in_use:
        raise NotMeasuredError("what waits was not measured")
    booked = max(row.trace.in_use)
    said = f"{row.waiting.value:.3g} elements wait at the most, {amount(row.waiting_bytes.value)}"
    part = part_of(less_than(row.waiting, 1), above())
    if row.waiting.value < 1 or booked <= row.waiting_bytes.value / 2:
        return [part], said
    tensors = Part(Shown(fails=part.shown.fails, partly=part.shown.holds))
    return [tensors], f"{said}; they pile up, as tensors: malloc has {amount(booked)} of them in use"


def _a7(figures: Figures) -> Found:
    cached, plain = figures.row("caching", "cache_after_decode"), figures.row("caching", "no_cache")
    memory = figures.comparison("caching").environment.memory
    rounds = sorted(cached.peaks.keys() & plain.peaks.keys())
    if not rounds or not cached.delivered or not memory:
        raise NotMeasuredError("no figure")
    more_by = estimate([cached.peaks[each] - plain.peaks[each] for each in rounds], "linear")
    data = cached.delivered * PICTURE_BYTES
    keeps = part_of(less_than(more_by, 0.8 * data), above())
    said = f"{estimated(more_by, amount)} more than no_cache, for {amount(data)} of decoded pictures"
    exhausts, also = _at_readers_amount(figures.law("caching", "cache_after_decode"), memory)
    return [keeps, exhausts], f"{said}; {also}, of {_gigabytes(memory)} here"


def _at_readers_amount(law: Law, memory: float) -> tuple[Part, str]:
    """Test whether ``PICTURES`` pass an amount of memory, by the law."""
    needed = law.at(PICTURES)
    if needed is None:
        return Part(Shown()), f"with {PICTURES:,} pictures unknown ({law.why})"
    each = f"{estimated(law.per_sample, small_amount)} a picture, " if law.per_sample else ""
    said = f"{each}so {estimated(needed, _gigabytes)} with {PICTURES:,}"
    return part_of(less_than(needed, memory), above()), said


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB"


def _a8(figures: Figures) -> Found:
    plain = figures.row("caching", "no_cache")
    found = []
    for name in ("cache_paths", "cache_encoded"):
        margin = margin_of_two(figures.row("caching", name), plain)
        found.append(_ratio(figures, "caching", name, "no_cache", "peaks", light(margin, max(LIGHT, margin))))
    return _joined(found)


def _b1(figures: Figures) -> Found:
    parts, said = [], []
    epochs = max(1, figures.comparison("resize").epochs)
    for scale in ("0.5", "2.0", "3.5"):
        row = figures.row("resize", "skimage_resize_ubyte", scale=scale)
        calls = (row.delivered or 0) * epochs
        if row.retained is None or calls < MANY_CALLS:
            raise NotMeasuredError(f"no figure after {MANY_CALLS} calls or more")
        output = float(scale) ** 2 * 640 * 480 * 3
        first = row.trace.resident[0] if row.trace and row.trace.step[:1] == [1] else None
        if first is None:
            raise NotMeasuredError("memory after the first call was not read")
        once = part_of(less_than(row.retained, output + LEAK * calls), above())
        parts += [exactly(first - output >= LEAK), once]
        said.append(f"{scale}: {amount(first)} after one call, {estimated(row.retained, amount)} after {calls}")
    temporary = estimated(figures.row("resize", "skimage_resize_ubyte", scale="3.5").peak, amount)
    return parts, f"held, one output included: {', '.join(said)}; what it needs meanwhile ({temporary}) is given back"


def _b2(figures: Figures) -> Found:
    ten = above(10)
    return _joined(
        [
            _ratio(figures, "resize", "skimage_rescale_ubyte", "opencv_linear", "times", ten),
            _ratio(figures, "resize", "skimage_antialiased_float", "opencv_antialiased_float", "times", ten),
        ],
        "as typed",
        "with the same output",
    )


def _b3(figures: Figures) -> Found:
    return _joined(
        [
            _leaner(figures, "resize", "skimage_resize_astype", "skimage_resize_ubyte", scale=scale)
            for scale in ("0.5", "3.5")
        ],
        "0.5",
        "3.5",
    )


def _b4(figures: Figures) -> Found:
    tensor = figures.row("record_format", "serialize_tensor")
    size = known(tensor.disk).value
    parts, said = [], []
    for quality, name in ((92, "encoded_bytes"), (75, "encoded_quality_75"), (50, "encoded_quality_50")):
        encoded = known(figures.row("record_format", name).disk).value
        if encoded <= 0:
            raise NotMeasuredError("no figure")
        parts.append(exactly(size > 10 * encoded))
        said.append(f"{factor(size / encoded)} quality {quality} ({amount(encoded)})")
    if tensor.delivered:
        said.append(
            f"over 10 times what takes less than {small_amount(size / 10 / tensor.delivered)} a picture as JPEG"
        )
    return parts, f"{amount(size)} is {', '.join(said)}"


def _b5(figures: Figures) -> Found:
    return _joined(
        [
            _ratio(
                figures,
                "record_format",
                "serialize_tensor",
                "encoded_bytes",
                "times",
                opposite(gain(TIME_MARGIN)),
                page_cache=state,
            )
            for state in ("warm", "cold")
        ],
        "warm",
        "cold",
    )


def _b6(figures: Figures) -> Found:
    return _joined(
        [
            _ratio(
                figures,
                "record_format",
                "encoded_bytes",
                "separate_files",
                "times",
                below(1 / NOTICEABLE),
                page_cache=state,
            )
            for state in ("warm", "cold")
        ],
        "warm",
        "cold",
    )


def _leaks(row: Row) -> Shown:
    """Return how surely memory in use grows, or does not: for that it needs a bound."""
    growing = of_trials(row.growth, row.samples, ["growing, in use"])
    if growing.holds < 1:
        return growing
    rests = of_trials(row.growth, row.samples, ["flat", "plateau"])
    held = of_trials(row.growth, row.samples, ["flat", "plateau", "growing, held by the allocator"])
    return Shown(fails=held.holds if row.in_use_bound is not None else rests.holds)


def _grows(row: Row) -> str:
    bound = "" if row.in_use_bound is None else f", in use at most {amount(row.in_use_bound)} more per 1000 steps"
    return f"{row.strategy} {level(row.growth, row.level, row.level_held)}{bound}"


def _b7(figures: Figures) -> Found:
    rows = [figures.row("read_order", name, record="tensor") for name in ("interleave", "parallel_reads")]
    said = "; ".join(f"{_grows(row)}, peak {multiple(row.over_floor)} its floor" for row in rows)
    one, other = (_leaks(row) for row in rows)
    return [Part(both(one, Shown(other.fails, other.holds)))], said


def _b8(figures: Figures) -> Found:
    pairs = [
        ("mixed_interleave_no_prefetch", "mixed_interleave"),
        ("mixed_interleave_map_apart", "mixed_interleave"),
        ("mixed_parallel_reads_no_prefetch", "mixed_parallel_reads"),
        ("mixed_parallel_reads_map_apart", "mixed_parallel_reads"),
        ("interleave", "mixed_interleave"),
        ("parallel_reads", "mixed_parallel_reads"),
    ]
    parts, said = [], []
    for one, other in pairs:
        rows = [figures.row("read_order", name, record="tensor") for name in (one, other)]
        difference = figures.ratio("read_order", one, other, "peaks", record="tensor")
        parts.append(part_of(difference, unchanged(margin_of_two(*rows))))
        said.append(f"{one} / {other}: {multiple(ratio_of(difference))}")
    return parts, f"peak memory: {'; '.join(said)}"


def _b9(figures: Figures) -> Found:
    row = figures.row("read_order", "range_indexed", record="tensor")
    return [Part(of_trials(row.growth, row.samples, ["flat"], ["plateau"]))], _grows(row)


def _b10(figures: Figures) -> Found:
    names = ("range_indexed", "sequential", "parallel_reads", "interleave")
    rows = [figures.row("read_order", name, record="int64") for name in names]
    leaks = [_leaks(row) for row in rows]
    never = both(*(Shown(each.fails, each.holds) for each in leaks))
    return [Part(never)], "; ".join(_grows(row) for row in rows)


def _b11(figures: Figures) -> Found:
    tails = {}
    for name in ("parallel_reads", "interleave"):
        order = figures.row("read_order", name, record="int64").order
        if order is None or order.tail_monotony is None:
            raise NotMeasuredError(f"the order of {name} was not measured")
        tails[name] = order.tail_monotony
    said = ", ".join(f"{name}: {tail:.0%}" for name, tail in tails.items())
    parts = [exactly(tails["parallel_reads"] > 0.9), exactly(tails["interleave"] < 0.1)]
    return parts, f"of the last tenth of the records, the share read on in order: {said}"


def _c1(figures: Figures) -> Found:
    return _joined([_ratio(figures, "selection", "list_to_list", "numpy_to_list", "peaks", below(0.2))])


def _c2(figures: Figures) -> Found:
    return _joined([_ratio(figures, "selection", "numpy_to_numpy", "list_to_list", "peaks", below(0.5))])


def _c3(figures: Figures) -> Found:
    row = figures.row("selection", "numpy_to_list")
    expected = sum((500 - drawn) * 32 * 32 * 3 * 8 for drawn in range(100))
    said = f"{estimated(row.peak, amount)}; a hundred arrays kept whole are {amount(expected)}"
    return [part_of(ratio_to(row.peak, expected), within(0.8, 1.2))], said


def _c4(figures: Figures) -> Found:
    return _joined(
        [
            _ratio(figures, "selection", cure, "numpy_to_list", "peaks", below(0.2))
            for cure in ("mixed_tolist", "mixed_copy")
        ]
    )


def _c5(figures: Figures) -> Found:
    return _joined([_ratio(figures, "selection", "list_to_list", "list_skipping", "peaks", below(NOTICEABLE))])


def _d1(figures: Figures) -> Found:
    found, said = [], []
    for name in ("load_all", "load_all_from_tensor_slices"):
        law = figures.law("batching", name)
        exhausts, also = _at_readers_amount(law, SIXTEEN_GB)
        found += [_follows(figures, name, law), exhausts] if law.kind == "linear" else [_follows(figures, name, law)]
        said.append(f"{name} is {law.kind}: {also}")
    return found, "; ".join(said)


def _follows(figures: Figures, name: str, law: Law) -> Part:
    """Test whether a loader of ``batching`` needs more memory for more data: by the law's slope, where it has one."""
    if law.kind == "unknown":
        return Part(Shown())
    if law.kind == "linear":
        return part_of(less_than(law.per_sample, 0), above())
    return part_of(figures.growth_with("batching", name, "needs", "data", "x4", "x16"), above(NOTICEABLE))


def _d2(figures: Figures) -> Found:
    parts, said = [], []
    for name in ("path_generator", "path_generator_from_generator"):
        law = figures.law("batching", name)
        follows = _follows(figures, name, law)
        parts.append(_opposite(follows))
        slope = f"{estimated(law.per_sample, small_amount)} a picture, " if law.per_sample else ""
        grown = figures.growth_with("batching", name, "needs", "data", "x4", "x16")
        said.append(
            f"{name}: {slope}{law.kind} ({law.why}); four times the data, {multiple(ratio_of(grown))} the memory"
        )
    return parts, "; ".join(said)


def _opposite(part: Part) -> Part:
    shown = Shown(part.shown.fails, part.shown.holds, part.shown.partly)
    return Part(shown, part.difference, opposite(part.test) if part.test else None)


def _bounded(figures: Figures, name: str, capacity: int) -> Found:
    """Test whether a loader's buffers stop growing at their capacity, with a consumer slow enough to fill them.

    Between two amounts of data memory may grow by what is left of the capacity at the smaller one; and by a tenth.
    """
    few, many = (figures.row("batching", name, data=data) for data in ("x4", "x16"))
    if few.peak_slow is None or many.peak_slow is None or few.needed is None or not few.delivered:
        raise NotMeasuredError(f"{name} was not run with a slow consumer")
    if not many.delivered or many.delivered <= capacity:
        raise NotMeasuredError(f"{name} may hold {capacity} pictures, and the most data is {many.delivered or 0}")
    room = max(0, capacity - few.delivered) * PICTURE_BYTES
    most = NOTICEABLE + room / max(MIB, few.needed.value)
    grown = figures.growth_with("batching", name, "needs", "data", "x4", "x16")
    said = (
        f"with a slow consumer {estimated(few.needed, amount)} for {few.delivered} pictures and "
        f"{estimated(many.needed, amount)} for {many.delivered}: {multiple(ratio_of(grown))}; "
        f"its {capacity} pictures allow {factor(most)}"
    )
    return [part_of(grown, below(most))], said


def _d3(figures: Figures) -> Found:
    return _bounded(figures, "tf1_queue", _registry.find_variant("batching", "tf1_queue").capacity)


def _d4(figures: Figures) -> Found:
    declared = _registry.find_variant("batching", "keras_pydataset_4").capacity
    return _bounded(figures, "keras_pydataset_4", declared or QUEUED)


CLAIMS = [
    Claim(
        "A1",
        "python_map",
        "Memory grows with num_parallel_calls when the consumer is slow.",
        "peak at 8 calls over peak at 1, interval above 1.1, for arrays and for scalars",
        _a1,
    ),
    Claim(
        "A2",
        "python_map",
        "deterministic=False relieves memory.",
        "peak without over peak with order, interval below 1, at 4 and at 8 calls",
        _a2,
    ),
    Claim(
        "A3",
        "python_map",
        "Four workers and a modest prefetch tame it.",
        "peak of 4 calls over that of 8, and peak of 4 with prefetch 2 over that of 4 without, intervals below 1",
        _a3,
    ),
    Claim(
        "A4",
        "python_map",
        "A prefetch of 2 or 3 beats AUTOTUNE on memory.",
        "peak with prefetch 2 over that with AUTOTUNE, interval below 1",
        _a4,
    ),
    Claim(
        "A5",
        "python_map",
        "Native operations beat py_function.",
        "time of native over py_function at 4 calls, and of a native loader over that by numpy_function, intervals "
        "below 1; in part where it is less than 10 % faster",
        _a5,
    ),
    Claim(
        "A6",
        "python_map",
        "Outputs pile up as Python objects.",
        "elements wait; in part where malloc's books show that they are tensors",
        _a6,
    ),
    Claim(
        "A7",
        "caching",
        "A cache after the heavy step can exhaust memory.",
        "by its interval it needs 80 % of the decoded data's bytes more than no cache, and by its law more than this "
        "machine's memory for 10 000 pictures; in part where these would fit",
        _a7,
    ),
    Claim(
        "A8",
        "caching",
        "A cache before the heavy step is light.",
        "peak with cached paths, and with cached files, over that without cache: within 5 % or 1 MiB; in part up to "
        "1.25",
        _a8,
    ),
    Claim(
        "B1",
        "resize",
        "skimage's resize leaks 12 to 56 MiB a call.",
        "12 MiB or more a call are held beyond its output, after one call and after all",
        _b1,
    ),
    Claim(
        "B2",
        "resize",
        "OpenCV is over ten times as fast as skimage's rescale.",
        "time ratio, interval above 10, as typed and with the same output",
        _b2,
    ),
    Claim(
        "B3",
        "resize",
        "preserve_range().astype is leaner than img_as_ubyte.",
        "ratio of peaks, interval below 1, at 0.5 and 3.5",
        _b3,
    ),
    Claim(
        "B4",
        "record_format",
        "serialize_tensor files are over 10 times as large.",
        "ratio of the bytes on disk above 10, at JPEG qualities 92, 75 and 50",
        _b4,
    ),
    Claim(
        "B5",
        "record_format",
        "Reading serialize_tensor is no faster than decoding JPEG.",
        "the time ratio's interval lies above 1/1.1, warm and cold; in part where it is faster by less",
        _b5,
    ),
    Claim(
        "B6",
        "record_format",
        "TFRecord trains noticeably faster than separate files.",
        "time ratio, interval below 1/1.1, warm and cold",
        _b6,
    ),
    Claim(
        "B7",
        "read_order",
        "Interleave leaks; parallel reads do not.",
        "growth of memory in use for interleave, and a bound on it for parallel reads, with 0.5 MB records",
        _b7,
    ),
    Claim(
        "B8",
        "read_order",
        "Removing prefetch, sharing the map function or reading one source changes nothing.",
        "every ratio of peaks has a 90 % interval within 5 % or 1 MiB",
        _b8,
    ),
    Claim(
        "B9",
        "read_order",
        "Range indexing stays flat.",
        "the verdict on its memory is flat; in part where it is a plateau",
        _b9,
    ),
    Claim(
        "B10",
        "read_order",
        "Tiny records never leak.",
        "a bound on the growth of memory in use with one integer a record, for every order",
        _b10,
    ),
    Claim(
        "B11",
        "read_order",
        "Parallel reads end with the last file alone; interleave mixes to the end.",
        "over 90 % of the last tenth in order for the one, below 10 % for the other",
        _b11,
    ),
    Claim(
        "C1",
        "selection",
        "Lists work at a normal level of memory.",
        "a fifth of the mixed form's peak at the most",
        _c1,
    ),
    Claim("C2", "selection", "All NumPy halves it.", "half of the lists' peak at the most", _c2),
    Claim(
        "C3",
        "selection",
        "The mixed form keeps every old array alive: about 1100 MiB.",
        "within 20 % of the bytes of a hundred arrays",
        _c3,
    ),
    Claim("C4", "selection", "Either cure removes it.", "a fifth of the mixed form's peak at the most", _c4),
    Claim(
        "C5",
        "selection",
        "del on a list moves references only and copies no data.",
        "peak with del over that of the same without it, interval below 1.1",
        _c5,
    ),
    Claim(
        "D1",
        "batching",
        "Loading everything exhausts memory: 10 000 pictures do not fit 16 GB.",
        "by its law it grows with the data; in part where 10 000 float32 pictures would fit after all",
        _d1,
    ),
    Claim(
        "D2",
        "batching",
        "Keeping only the paths makes memory independent of the data's size.",
        "its law is no line; four times the data need less than 1.1 times the memory",
        _d2,
    ),
    Claim(
        "D3",
        "batching",
        "A queue's capacity bounds its memory.",
        "with a slow consumer, four times the data, both beyond the capacity, need less than 1.1 times the memory",
        _d3,
    ),
    Claim(
        "D4",
        "batching",
        "max_queue_size bounds a generator's memory.",
        "with a slow consumer, four times the data, more than the capacity, need no more on top than the queue, the "
        "workers and two batches may hold",
        _d4,
    ),
]
