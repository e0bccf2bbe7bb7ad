"""What every strategy must deliver, and the check of its output.

A strategy is timed only once it provably returns the right data. The trial runs a question's ``check`` over
everything that a strategy delivers, outside the measured time, before it reports any figure.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from loaders._errors import WrongOutputError
from loaders._units import Quantity, Share, Word

if TYPE_CHECKING:
    from numpy.typing import NDArray


TIERS = ("identical", "same purpose", "as typed")
"""How a strategy's output relates to that of its question's other strategies."""


class OrderQuality(msgspec.Struct, frozen=True):
    """How well mixed the delivered order is; see ``order_quality`` for each figure."""

    displacement: Quantity
    label_run_length: Quantity
    same_shard_neighbours: Share
    tail_monotony: Share | None = None


class OddFiles(msgspec.Struct, frozen=True):
    """What a decoder makes of files that are turned or damaged.

    ``turned`` says whether it turns a picture upright as EXIF asks, and ``rejected`` names what it refuses.
    """

    turned: bool
    rejected: Annotated[list[Word], msgspec.Meta(max_length=20)]


Documented = Literal[
    "every image once",
    "every image once by each worker",
    "every image at most once",
    "every image at least once",
    "every image at least once by each worker",
    "nothing",
]
"""What is documented of how often each sample comes."""


class Delivery(msgspec.Struct, frozen=True):
    """How often the samples of an epoch came, held against what is documented.

    Attributes
    ----------
    promised
        What is documented.
    missing, repeated
        How many samples came less often than is documented, and how many more often; where nothing is documented, how
        many never came, and how many more than once.
    """

    promised: Documented
    missing: int
    repeated: int
    verdict: Literal["kept", "broken", "not promised"]

    @property
    def words(self) -> str:
        """The counts: ``none missing, 3 too often``."""
        return f"{self.missing or 'none'} missing, {self.repeated or 'none'} too often"


@dataclass(frozen=True)
class Promise:
    """How often each sample comes in an epoch, as is documented.

    ``most`` is ``None`` where nothing is.
    """

    least: int = 1
    most: int | None = 1
    words: Documented = "every image once"

    def held(self, came: Iterable[int]) -> Delivery:
        """Hold how often each sample came against it."""
        counts = list(came)
        missing = sum(each < max(1, self.least) for each in counts)
        repeated = sum(each > (self.most or 1) for each in counts)
        if self.most is None:
            return Delivery(self.words, missing, repeated, "not promised")
        kept = all(self.least <= each <= self.most for each in counts)
        return Delivery(self.words, missing, repeated, "kept" if kept else "broken")


class Quality(msgspec.Struct, frozen=True):
    """What a check found besides right or wrong.

    ``psnr`` is in dB against the question's reference, for the worst sample; ``max_difference`` is in grey
    levels (0 to 255), for the worst pixel. ``walk`` is the place on disk of each delivered sample, if the question
    draws it; ``lost`` is the number of samples that a strategy left out, if it is allowed to. ``odd_files`` is what it
    makes of files that decoders differ about. ``left_behind`` is the shared memory that it leaves, in bytes.
    ``delivery`` holds how often each sample came against what is documented.
    """

    psnr: float | None = None
    max_difference: float | None = None
    order: OrderQuality | None = None
    walk: list[int] | None = None
    lost: int = 0
    odd_files: OddFiles | None = None
    left_behind: int | None = None
    delivery: Delivery | None = None


class Cause(msgspec.Struct, frozen=True):
    """Why asv's own benchmark reads another time than a trial, as an experiment showed, and the ratio it can explain.

    ``low`` and ``high`` bound asv's figure over the trial's; outside them the cause is not a sufficient explanation.
    """

    low: float
    high: float
    words: str


def samples(batch: Any) -> Iterator[tuple[Any, ...]]:
    """Split a batch into samples: tuples with one value for each feature, as NumPy arrays or bytes."""
    features = batch if isinstance(batch, tuple) else (batch,)
    columns = [feature.numpy() if hasattr(feature, "numpy") else feature for feature in features]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise WrongOutputError(f"the features of a batch have different lengths: {sorted(lengths)}")
    return zip(*columns, strict=True)


def digest(sample: Sequence[Any]) -> bytes:
    """Digest a sample's content: every feature's dtype, shape and bytes. An integer's width does not count."""
    import numpy as np

    state = hashlib.blake2b(digest_size=16)
    for feature in sample:
        if isinstance(feature, bytes):
            state.update(b"bytes" + feature)
            continue
        value = np.asarray(feature)
        if value.ndim == 0 and value.dtype.kind in "iu":
            state.update(b"int" + str(int(value)).encode())
        else:
            state.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return state.digest()


def check_drawn_from(
    universe: Iterable[Sequence[Any]], count: int | None, batches: Iterable[Any], *, may_lose: bool = False
) -> list[int]:
    """Check that ``count`` different samples of ``universe`` were delivered bit for bit.

    With ``count == len(universe)`` this means every sample, exactly once. A sample that is in the universe
    twice may be delivered twice. Only digests of the universe are held, so it may be a generator of large samples.

    Parameters
    ----------
    count
        By default as many as there are in the universe.
    may_lose
        Accept fewer than ``count``, for a strategy that leaves out samples that it cannot read.

    Returns
    -------
    The place in the universe of each delivered sample, in the order of delivery.

    Raises
    ------
    WrongOutputError
        The message names the first sample that is foreign or delivered too often, or the wrong count.
    """
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    example: Sequence[Any] = ()
    for place, sample in enumerate(universe):
        example = example or sample
        places[digest(sample)].append(place)
    if count is None:
        count = sum(map(len, places.values()))
    unused = {key: list(reversed(known)) for key, known in places.items()}
    order: list[int] = []
    for batch in batches:
        for sample in samples(batch):
            key = digest(sample)
            if key not in unused:
                known = sum(map(len, places.values()))
                raise WrongOutputError(
                    f"sample {len(order)} is not one of the {known} expected: {_describe(sample, example)}"
                )
            if not unused[key]:
                raise WrongOutputError(
                    f"sample {len(order)} was delivered more often than it exists (place {places[key][0]})"
                )
            order.append(unused[key].pop())
    if len(order) != count and not (may_lose and 0 < len(order) < count):
        raise WrongOutputError(f"delivered {len(order)} samples instead of {count}")
    return order


NEAR = 2.0
"""An image may be any of those whose blocks differ from its own by at most so many times as much as the nearest's. Of
640 crops that turboloader reduced, in two draws of four one had blocks that were nearer to another's than to its own,
by a fifth, though it was 2.3 dB more like its own."""


def check_alike(
    universe: Sequence[tuple[Any, int]], image_of: Callable[[Any], NDArray[Any]], batches: Iterable[Any], least: float
) -> float:
    """Check that every image of ``universe`` was delivered once, much like it, with its label.

    For what decodes or reduces in its own way: which image is which is told by the means of a few large blocks, and
    where these are about as near to several, as to crops that overlap, by which of them it is most alike.

    Parameters
    ----------
    universe
        What ``image_of`` makes an 8-bit image of, and its label.
    least
        In dB: how much alike a delivered image and its original must be.

    Returns
    -------
    How much alike the worst are, in dB.

    Raises
    ------
    WrongOutputError
        The message names the first sample that is like none, delivered twice or wrongly labelled, or the wrong count.
    """
    import numpy as np

    known = np.stack([_blocks(image_of(source)) for source, _ in universe])
    original = image_of(universe[0][0])
    unused = np.ones(len(universe), bool)
    worst, count = 99.0, 0
    for batch in batches:
        for image, label in samples(batch):
            if np.shape(image) != original.shape or image.dtype != original.dtype:
                raise WrongOutputError(f"sample {count} is {_describe((image,), (original,))}")
            away = ((known - _blocks(image)) ** 2).sum(axis=1)
            near = np.flatnonzero(away <= NEAR**2 * away.min()).tolist()
            found = [(psnr(image, image_of(universe[each][0])), each) for each in near]
            alike = max(found)[0]
            # Of several equal pictures, one that has not come yet, with this label.
            equal = [each for quality, each in found if quality == alike]
            place = max(equal, key=lambda each: (unused[each], int(universe[each][1]) == int(label)))
            _, expected = universe[place]
            if alike < least:
                raise WrongOutputError(f"sample {count} is like none of the {len(universe)}: {alike:.1f} dB")
            if not unused[place]:
                raise WrongOutputError(f"sample {count} was delivered more often than it exists (place {place})")
            if int(label) != int(expected):
                raise WrongOutputError(f"sample {count} has the label {int(label)} instead of {int(expected)}")
            unused[place] = False
            worst, count = min(worst, alike), count + 1
    if count != len(universe):
        raise WrongOutputError(f"delivered {count} samples instead of {len(universe)}")
    return worst


def _blocks(image: NDArray[Any]) -> NDArray[Any]:
    """Return the mean colours of 49 blocks of an image."""
    import numpy as np

    high, wide = image.shape[0] // 7, image.shape[1] // 7
    parts = np.asarray(image[: 7 * high, : 7 * wide], np.float32).reshape(7, high, 7, wide, -1)
    return np.asarray(parts.mean(axis=1).mean(axis=2).ravel())  # ten times as fast as both at once


def psnr(image: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the peak signal-to-noise ratio of 8-bit images in dB, 99 for equal images."""
    import numpy as np

    difference = np.subtract(image, reference, dtype=np.float32)  # exact, and so are its squares
    error = float(np.mean(difference * difference, dtype=np.float64))
    return 99.0 if error == 0 else min(99.0, float(10 * np.log10(255**2 / error)))


def order_quality(order: Sequence[int], labels: Sequence[int], shards: Sequence[int]) -> OrderQuality:
    """Measure how far a delivered order is from the order on disk.

    Parameters
    ----------
    order
        Place on disk of each delivered sample.
    labels, shards
        For each place on disk, the sample's label and the number of its file.

    Returns
    -------
    displacement
        Mean distance between a sample's place on disk and its place in delivery, as a share of the length:
        0 for reading in order, about 1/3 for a perfect shuffle.
    label_run_length
        Mean length of runs of one label, in samples.
    same_shard_neighbours
        Share of neighbouring samples that come from the same file.
    tail_monotony
        Share of the last tenth of all steps that moves to the next record on disk: 1 if the last file is
        read alone, about 0 in a good shuffle.
    """
    import numpy as np

    length = len(order)
    if length == 0:
        return OrderQuality(0.0, 0.0, 0.0, 0.0)
    place = np.asarray(order)
    label, shard = np.asarray(labels)[place], np.asarray(shards)[place]
    runs = 1 + int(np.count_nonzero(np.diff(label)))
    neighbours = int(np.count_nonzero(np.diff(shard) == 0))
    tail = np.diff(place[-max(2, length // 10) :])
    return OrderQuality(
        displacement=float(np.abs(place - np.arange(length)).mean() / length),
        label_run_length=length / runs,
        same_shard_neighbours=neighbours / max(1, length - 1),
        tail_monotony=float(np.mean(tail == 1)) if len(tail) else 0.0,
    )


def _describe(sample: Sequence[Any], expected: Sequence[Any]) -> str:
    """Say what a wrong sample looks like beside a right one."""
    import numpy as np

    def kind(feature: Any) -> str:
        if isinstance(feature, bytes):
            return f"{len(feature)} bytes"
        value = np.asarray(feature)
        return f"{value.dtype}{list(value.shape)}"

    got, want = ", ".join(map(kind, sample)), ", ".join(map(kind, expected))
    return f"got {got}, expected {want}" if got != want else f"{got} with other values"
