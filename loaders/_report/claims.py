"""The write-ups' claims, each with the rule that decides it from the figures. Verdicts are computed, never typed.

A claim is one entry of ``CLAIMS``. Its rule is a small pure function from the figures of one result set to a verdict
and the sentence that carries it; a figure that was not measured makes the verdict *undecided here*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from loaders import _registry
from loaders._rows import Comparison, Row, Scaling
from loaders._stats import Estimate, ratio_of
from loaders._words import amount, duration, estimated, factor, level, multiple, small_amount, times

Verdict = Literal["holds", "does not hold", "holds in part", "undecided here"]

MIB = 2**20
NOTICEABLE = 1.1
"""A factor: 10 % is what a claim of faster, leaner or growing must be good for."""

PICTURE_BYTES = 224 * 224 * 3 * 4
"""Of a float32 picture in ``caching`` and ``batching``."""


class NotMeasuredError(Exception):
    """A figure that a rule needs is not there; says which."""


class Figures:
    """The rows of one result set, by name."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self._comparisons = {each.question: each for each in comparisons}

    def row(self, question: str, strategy: str, **case: str) -> Row:
        """Return one row; axes that are not given stand at their default."""
        if question not in self._comparisons:
            raise NotMeasuredError(f"{question} was not run")
        wanted = {**_registry.find_question(question).default_case, **case}
        for row in self._comparisons[question].rows:
            if (row.strategy, row.case) == (strategy, wanted):
                if not row.samples:
                    raise NotMeasuredError(f"{strategy}: {row.status}")
                return row
        raise NotMeasuredError(f"{question} {strategy} was not run{' with' if case else ''} {' '.join(case.values())}")

    def scaling(self, strategy: str) -> Scaling:
        """Return how a strategy of ``batching`` follows the data."""
        if "batching" not in self._comparisons:
            raise NotMeasuredError("batching was not run")
        for each in self._comparisons["batching"].scaling:
            if each.strategy == strategy:
                return each
        raise NotMeasuredError(f"{strategy} was not run with several amounts of data")


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
    judge: Callable[[Figures], tuple[Verdict, str]]


class Judged(msgspec.Struct, frozen=True):
    """A claim with its verdict; ``measured`` is the figure that decided it."""

    claim: Claim
    verdict: Verdict
    measured: str


def judged(comparisons: Sequence[Comparison]) -> list[Judged]:
    """Return every claim with its verdict."""
    figures = Figures(comparisons)
    found = []
    for claim in CLAIMS:
        try:
            verdict, measured = claim.judge(figures)
        except NotMeasuredError as missing:
            verdict, measured = "undecided here", str(missing)
        found.append(Judged(claim, verdict, measured))
    return found


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


def over(one: Estimate | None, other: Estimate | None) -> Estimate:
    """Return the ratio of two estimates; see ``loaders._stats.ratio_of``."""
    ratio = ratio_of(one, other)
    if ratio is None:
        raise NotMeasuredError("no figure")
    return ratio


def less(ratio: Estimate, than: float = 1.0, *, margin: float = 1 / NOTICEABLE) -> Verdict:
    """Decide whether a ratio lies below a bound: holds when all of its interval does.

    It does not hold when the interval lies above the bound less a margin: then whatever is gained is not worth it. A
    difference that the instruments cannot tell from none is no gain.
    """
    if ratio.low is None or ratio.high is None:
        return "undecided here"
    if ratio.high < than and (ratio.resolved or than > 1):
        return "holds"
    return "does not hold" if ratio.low >= than * margin else "undecided here"


def more(ratio: Estimate, than: float = 1.0) -> Verdict:
    """Decide whether a ratio lies above a bound: it does not hold when all of its interval lies at or below."""
    if ratio.low is None or ratio.high is None:
        return "undecided here"
    if ratio.low > than and ratio.resolved:
        return "holds"
    return "does not hold" if ratio.high <= than else "undecided here"


def all_of(*verdicts: Verdict) -> Verdict:
    """Join the verdicts on a claim's parts."""
    if "undecided here" in verdicts:
        return "undecided here"
    if set(verdicts) == {"holds"}:
        return "holds"
    return "does not hold" if "holds" not in verdicts else "holds in part"


def _peaks(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Estimate, str]:
    """Return the ratio of two peaks, and both in words."""
    first, second = figures.row(question, one, **case), figures.row(question, other, **case)
    ratio = _paired(first.peak_ratio, second.peak_ratio, first, second) or over(first.peak, second.peak)
    said = f"{one} {estimated(first.peak, amount)}, {other} {estimated(second.peak, amount)}: {multiple(ratio)}"
    return ratio, said


def _times(figures: Figures, question: str, one: str, other: str, **case: str) -> tuple[Estimate, str]:
    """Return the ratio of two times, and both in words."""
    first, second = figures.row(question, one, **case), figures.row(question, other, **case)
    ratio = _paired(first.ratio, second.ratio, first, second) or over(first.time, second.time)
    said = f"{one} {estimated(first.time, duration)}, {other} {estimated(second.time, duration)}: {times(ratio)}"
    return ratio, said


def _paired(one: Estimate | None, other: Estimate | None, first: Row, second: Row) -> Estimate | None:
    """Return the ratio that is paired by round, where one of the two is the baseline."""
    if second.is_baseline:
        return one
    if not first.is_baseline or other is None or other.low is None or other.high is None:
        return None
    return Estimate(1 / other.value, 1 / other.high, 1 / other.low, other.count, other.resolved)


def _a1(figures: Figures) -> tuple[Verdict, str]:
    array, said = _peaks(figures, "python_map", "py_function_8", "py_function_1", work="array")
    scalar, also = _peaks(figures, "python_map", "py_function_8", "py_function_1", work="scalar")
    flight = figures.row("python_map", "py_function_8", work="array").in_flight
    ran = f"; bodies in flight at 8: {flight.value:.3g}" if flight else ""
    return all_of(more(array, NOTICEABLE), more(scalar, NOTICEABLE)), f"array: {said}; scalar: {also}{ran}"


def _a2(figures: Figures) -> tuple[Verdict, str]:
    four, said = _peaks(figures, "python_map", "py_function_4_nondeterministic", "py_function_4", work="array")
    eight, also = _peaks(figures, "python_map", "py_function_8_nondeterministic", "py_function_8", work="array")
    return all_of(less(four), less(eight)), f"{said}; {also}"


def _a3(figures: Figures) -> tuple[Verdict, str]:
    ratio, said = _peaks(figures, "python_map", "py_function_4_prefetch_2", "py_function_8", work="array")
    return less(ratio), said


def _a4(figures: Figures) -> tuple[Verdict, str]:
    two, auto = "py_function_4_prefetch_2", "py_function_4_prefetch_autotune"
    ratio, said = _peaks(figures, "python_map", two, auto, work="array")
    return less(ratio), said


def _a5(figures: Figures) -> tuple[Verdict, str]:
    ratio, said = _times(figures, "python_map", "native_4", "py_function_4", work="decode")
    return less(ratio), said


def _a6(figures: Figures) -> tuple[Verdict, str]:
    row = figures.row("python_map", "py_function_8", work="array")
    if not row.waiting or not row.waiting_bytes or not row.trace or not row.trace.in_use:
        raise NotMeasuredError("what waits was not measured")
    booked = max(row.trace.in_use)
    said = f"{row.waiting.value:.3g} elements wait at the most, {amount(row.waiting_bytes.value)}"
    if row.waiting.value < 1:
        return "does not hold", said
    if booked > row.waiting_bytes.value / 2:
        return "holds in part", f"{said}; they pile up, as tensors: malloc has {amount(booked)} of them in use"
    return "holds", said


def _a7(figures: Figures) -> tuple[Verdict, str]:
    cached, plain = figures.row("caching", "cache_after_decode"), figures.row("caching", "no_cache")
    if not cached.peak or not plain.peak or not cached.delivered:
        raise NotMeasuredError("no figure")
    more_by, data = cached.peak.value - plain.peak.value, cached.delivered * PICTURE_BYTES
    said = f"{amount(more_by)} more than no_cache, for {amount(data)} of decoded pictures"
    return ("holds" if more_by > 0.8 * data else "does not hold"), said


def _a8(figures: Figures) -> tuple[Verdict, str]:
    paths, said = _peaks(figures, "caching", "cache_paths", "no_cache")
    encoded = figures.row("caching", "cache_encoded")
    verdict = less(paths, 1.25, margin=1.0)
    return verdict, f"{said}; cache_encoded {estimated(encoded.peak, amount)}"


def _b1(figures: Figures) -> tuple[Verdict, str]:
    rows = [figures.row("resize", "skimage_resize_ubyte", scale=scale) for scale in ("0.5", "2.0", "3.5")]
    outputs = [factor_ * factor_ * 640 * 480 * 3 for factor_ in (0.5, 2.0, 3.5)]
    beyond = [
        (row.retained.low or row.retained.value) - size
        for row, size in zip(rows, outputs, strict=True)
        if row.retained is not None
    ]
    said = ", ".join(f"{row.case['scale']}: {estimated(row.retained, amount)}" for row in rows)
    holds = all(each >= 12 * MIB for each in beyond)
    temporary = estimated(rows[-1].peak, amount)
    return (
        "holds" if holds else "does not hold",
        f"held after one call, output included: {said}; what it needs meanwhile ({temporary}) is given back",
    )


def _b2(figures: Figures) -> tuple[Verdict, str]:
    typed, said = _times(figures, "resize", "skimage_rescale_ubyte", "opencv_linear")
    same, also = _times(figures, "resize", "skimage_antialiased_float", "opencv_antialiased_float")
    return all_of(more(typed, 10), more(same, 10)), f"as typed: {said}; with the same output: {also}"


def _b3(figures: Figures) -> tuple[Verdict, str]:
    found = [
        _peaks(figures, "resize", "skimage_resize_astype", "skimage_resize_ubyte", scale=scale)
        for scale in ("0.5", "3.5")
    ]
    return all_of(*(less(ratio) for ratio, _ in found)), "; ".join(said for _, said in found)


def _b4(figures: Figures) -> tuple[Verdict, str]:
    one, other = figures.row("record_format", "serialize_tensor"), figures.row("record_format", "encoded_bytes")
    ratio = over(one.disk, other.disk)
    return more(
        ratio, 10
    ), f"{estimated(one.disk, amount)} against {estimated(other.disk, amount)}: {factor(ratio.value)}"


def _b5(figures: Figures) -> tuple[Verdict, str]:
    warm, said = _times(figures, "record_format", "serialize_tensor", "encoded_bytes", page_cache="warm")
    cold, also = _times(figures, "record_format", "serialize_tensor", "encoded_bytes", page_cache="cold")
    not_faster: dict[Verdict, Verdict] = {"holds": "does not hold", "does not hold": "holds"}
    verdicts = [not_faster.get(less(each), "undecided here") for each in (warm, cold)]
    return all_of(*verdicts), f"warm: {said}; cold: {also}"


def _b6(figures: Figures) -> tuple[Verdict, str]:
    warm, said = _times(figures, "record_format", "encoded_bytes", "separate_files", page_cache="warm")
    cold, also = _times(figures, "record_format", "encoded_bytes", "separate_files", page_cache="cold")
    verdicts = [less(each, 1 / NOTICEABLE, margin=1.0) for each in (warm, cold)]
    return all_of(*verdicts), f"warm: {said}; cold: {also}"


def _b7(figures: Figures) -> tuple[Verdict, str]:
    rows = [figures.row("read_order", name, record="tensor") for name in ("interleave", "parallel_reads")]
    said = "; ".join(
        f"{row.strategy} {level(row.growth, row.level, row.level_held)}, peak {multiple(row.over_floor)} its floor"
        for row in rows
    )
    words = [row.growth or "undecided" for row in rows]
    if any("undecided" in each for each in words):
        return "undecided here", said
    return ("holds" if "growing, in use" in words[0] and "growing" not in words[1] else "does not hold"), said


def _b8(figures: Figures) -> tuple[Verdict, str]:
    pairs = [
        ("mixed_interleave_no_prefetch", "mixed_interleave"),
        ("mixed_interleave_map_apart", "mixed_interleave"),
        ("mixed_parallel_reads_no_prefetch", "mixed_parallel_reads"),
        ("mixed_parallel_reads_map_apart", "mixed_parallel_reads"),
        ("interleave", "mixed_interleave"),
        ("parallel_reads", "mixed_parallel_reads"),
    ]
    found = [(one, other, over(*_two_peaks(figures, one, other))) for one, other in pairs]
    verdicts: list[Verdict] = [
        "undecided here" if ratio.low is None else "does not hold" if ratio.differs_from_one else "holds"
        for _, _, ratio in found
    ]
    said = "; ".join(f"{one} / {other}: {multiple(ratio)}" for one, other, ratio in found)
    return all_of(*verdicts), f"peak memory: {said}"


def _two_peaks(figures: Figures, one: str, other: str) -> tuple[Estimate | None, Estimate | None]:
    return (
        figures.row("read_order", one, record="tensor").peak,
        figures.row("read_order", other, record="tensor").peak,
    )


def _b9(figures: Figures) -> tuple[Verdict, str]:
    row = figures.row("read_order", "range_indexed", record="tensor")
    said = level(row.growth, row.level, row.level_held)
    if not row.growth:
        return "undecided here", said
    return (
        "holds" if row.growth == "flat" else "holds in part" if "growing" not in row.growth else "does not hold"
    ), said


def _b10(figures: Figures) -> tuple[Verdict, str]:
    names = ("range_indexed", "sequential", "parallel_reads", "interleave")
    rows = [figures.row("read_order", name, record="int64") for name in names]
    said = "; ".join(f"{row.strategy} {level(row.growth, row.level, row.level_held)}" for row in rows)
    if any(not row.growth for row in rows):
        return "undecided here", said
    return ("does not hold" if any("in use" in (row.growth or "") for row in rows) else "holds"), said


def _b11(figures: Figures) -> tuple[Verdict, str]:
    tails = {}
    for name in ("parallel_reads", "interleave"):
        order = figures.row("read_order", name, record="int64").order
        if order is None or order.tail_monotony is None:
            raise NotMeasuredError(f"the order of {name} was not measured")
        tails[name] = order.tail_monotony
    said = ", ".join(f"{name}: {tail:.0%}" for name, tail in tails.items())
    both: list[Verdict] = [
        "holds" if tails["parallel_reads"] > 0.9 else "does not hold",
        "holds" if tails["interleave"] < 0.1 else "does not hold",
    ]
    return all_of(*both), f"of the last tenth of the records, the share read on in order: {said}"


def _c1(figures: Figures) -> tuple[Verdict, str]:
    ratio, said = _peaks(figures, "selection", "list_to_list", "numpy_to_list")
    return less(ratio, 0.2), said


def _c2(figures: Figures) -> tuple[Verdict, str]:
    ratio, said = _peaks(figures, "selection", "numpy_to_numpy", "list_to_list")
    return less(ratio, 0.5, margin=1.0), said


def _c3(figures: Figures) -> tuple[Verdict, str]:
    row = figures.row("selection", "numpy_to_list")
    if row.peak is None:
        raise NotMeasuredError("no figure")
    expected = sum((500 - drawn) * 32 * 32 * 3 * 8 for drawn in range(100))
    share = row.peak.value / expected
    said = f"{estimated(row.peak, amount)}; a hundred arrays kept whole are {amount(expected)}"
    return ("holds" if 0.8 < share < 1.2 else "does not hold"), said


def _c4(figures: Figures) -> tuple[Verdict, str]:
    found = [_peaks(figures, "selection", cure, "numpy_to_list") for cure in ("mixed_tolist", "mixed_copy")]
    return all_of(*(less(ratio, 0.2) for ratio, _ in found)), "; ".join(said for _, said in found)


def _c5(figures: Figures) -> tuple[Verdict, str]:
    ratio, said = _peaks(figures, "selection", "list_to_list", "list_skipping")
    return less(ratio, NOTICEABLE, margin=1.0), said


def _d1(figures: Figures) -> tuple[Verdict, str]:
    found, slices = figures.scaling("load_all"), figures.scaling("load_all_from_tensor_slices")
    whole = 10_000 * found.per_sample.value
    said = (
        f"load_all needs {estimated(found.per_sample, small_amount)} for each added image, "
        f"so {whole / 1e9:.1f} GB for 10 000; with from_tensor_slices {10_000 * slices.per_sample.value / 1e9:.1f} GB"
    )
    grows = more(found.largest, 2.0)
    if grows != "holds":
        return grows, said
    return ("holds" if whole > 16e9 else "holds in part"), said


def _d2(figures: Figures) -> tuple[Verdict, str]:
    found = [figures.scaling(name) for name in ("path_generator", "path_generator_from_generator")]
    said = "; ".join(f"{each.strategy} from least to most data: {multiple(each.largest)}" for each in found)
    return all_of(*(less(each.largest, NOTICEABLE, margin=1.0) for each in found)), said


def _d3(figures: Figures) -> tuple[Verdict, str]:
    found = figures.scaling("tf1_queue")
    return less(found.largest, 1.25, margin=1.0), f"from least to most data: {multiple(found.largest)}"


def _d4(figures: Figures) -> tuple[Verdict, str]:
    row = figures.row("batching", "keras_pydataset_4")
    if row.peak is None:
        raise NotMeasuredError("no figure")
    bound = (10 + 4 + 2) * 32 * PICTURE_BYTES
    said = f"{estimated(row.peak, amount)}; a queue of ten batches, four under way and two in hand are {amount(bound)}"
    return ("holds" if row.peak.value < NOTICEABLE * bound else "does not hold"), said


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
        "peak of 4 calls with prefetch 2 over that of 8 calls, interval below 1",
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
        "time of native over py_function at 4 calls, interval below 1",
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
        "it needs at least 80 % of the decoded data's bytes more than no cache",
        _a7,
    ),
    Claim(
        "A8",
        "caching",
        "A cache before the heavy step is light.",
        "peak with cached paths over that without cache, interval below 1.25",
        _a8,
    ),
    Claim(
        "B1",
        "resize",
        "skimage's resize leaks 12 to 56 MiB a call.",
        "12 MiB or more are held after a call, beyond its output",
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
        "ratio of the bytes on disk above 10",
        _b4,
    ),
    Claim(
        "B5",
        "record_format",
        "Reading serialize_tensor is no faster than decoding JPEG.",
        "the time ratio's interval is not below 1, warm and cold",
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
        "growth of memory in use for interleave, and none for parallel reads, with 0.5 MB records",
        _b7,
    ),
    Claim(
        "B8",
        "read_order",
        "Removing prefetch, sharing the map function or reading one source changes nothing.",
        "every ratio of peaks has an interval that includes 1",
        _b8,
    ),
    Claim("B9", "read_order", "Range indexing stays flat.", "the verdict on its memory is flat", _b9),
    Claim(
        "B10",
        "read_order",
        "Tiny records never leak.",
        "no verdict of growth in use with one integer a record",
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
        "it grows with the data; in part where 10 000 float32 pictures would fit after all",
        _d1,
    ),
    Claim(
        "D2",
        "batching",
        "Keeping only the paths makes memory independent of the data's size.",
        "peak with most over peak with least data, interval below 1.1",
        _d2,
    ),
    Claim(
        "D3",
        "batching",
        "A queue's capacity bounds its memory.",
        "peak with most over peak with least data, interval below 1.25",
        _d3,
    ),
    Claim(
        "D4",
        "batching",
        "max_queue_size bounds a generator's memory.",
        "the peak is below what the queue, the workers and two batches may hold",
        _d4,
    ),
]
