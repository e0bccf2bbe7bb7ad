"""Claims about ``record_format``: what a record holds."""

from __future__ import annotations

from loaders._claims._declare import Found, claim
from loaders._claims._evidence import Figures, NotMeasuredError, below, exactly, gain, known, opposite
from loaders._claims._figures import NOTICEABLE, joined, ratio
from loaders._corpus import OWN
from loaders._judge import TIME_MARGIN
from loaders._words import amount, factor, small_amount


@claim("B4", "serialize_tensor files are over 10 times as large.")
def tensors_take_ten_times_the_disk(figures: Figures) -> Found:
    """Ratio of the bytes on disk above 10, at JPEG qualities 92 (or as stored in a folder of one's own), 75 and 50."""
    tensor = figures.row("record_format", "serialize_tensor")
    size = known(tensor["disk"]).value
    is_own = figures.comparison("record_format").data.startswith(OWN)
    parts, said = [], []
    for quality, name in ((92, "encoded_bytes"), (75, "encoded_quality_75"), (50, "encoded_quality_50")):
        encoded = known(figures.row("record_format", name)["disk"]).value
        if encoded <= 0:
            raise NotMeasuredError("no figure")
        parts.append(exactly(size > 10 * encoded))
        stored = is_own and name == "encoded_bytes"
        said.append(
            f"{factor(size / encoded)} {'what is stored' if stored else f'quality {quality}'} ({amount(encoded)})"
        )
    if tensor.delivered:
        said.append(
            f"over 10 times what takes less than {small_amount(size / 10 / tensor.delivered)} a picture as JPEG"
        )
    return parts, f"{amount(size)} is {', '.join(said)}"


@claim("B5", "Reading serialize_tensor is no faster than decoding JPEG.")
def tensors_read_no_faster(figures: Figures) -> Found:
    """The time ratio's 90 % interval lies above 1/1.1, warm and cold; in part where it is faster by less. A cold time
    is of a first epoch, and its start is in it.
    """
    return joined(
        [
            ratio(
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


@claim("B6", "TFRecord trains noticeably faster than separate files.")
def records_beat_separate_files(figures: Figures) -> Found:
    """Time ratio, interval below 1/1.1, warm and cold. A cold time is of a first epoch, and its start is in it."""
    return joined(
        [
            ratio(
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
