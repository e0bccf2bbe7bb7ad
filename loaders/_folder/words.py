"""The advice in sentences."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from loaders import _words
from loaders._folder.advice import Advice, Again
from loaders._folder.look import Look

NAMED = 3
"""Of a long list."""

WIDTH = 110
"""Of a line in a docstring."""


def seen(look: Look) -> Iterator[str]:
    """Yield what was seen in the folder."""
    formats = ", ".join(f"{count} {suffix}" for suffix, count in look.formats.items())
    named = {label: count for label, count in look.labels.items() if label}
    at_top = look.labels.get("", 0)
    labels = f"{len(look.labels)} labels" if len(look.labels) > 1 else "one label"
    top = f" ({at_top} of the images lie at the top and have a label of their own)" if at_top and named else ""
    yield f"{look.images} images ({formats}), {labels}{top}, {_words.amount(look.size)} on disk."
    width, height = look.median
    most = "×".join(map(str, look.largest))
    part = "" if look.opened == look.images else f"; {look.opened} of them were opened"
    yield f"Their size: {width}×{height} pixels in the median, {most} at most{part}."
    if look.turned:
        yield f"{look.turned} are turned by their EXIF data, which the loaders do as well."
    if look.broken:
        more = f" and {len(look.broken) - NAMED} more" if len(look.broken) > NAMED else ""
        few = ", ".join(look.broken[:NAMED])
        yield f"{len(look.broken)} cannot be read and are left out: {few}{more}."
    if look.odd_names:
        yield f"Not measured, as their names are not UTF-8: {look.odd_names} more; the loaders read them."
    if look.decoded < look.images:
        yield f"{look.decoded} images were decoded to see whether they can be read; the loaders leave out what cannot."
    if look.others:
        counts = ", ".join(f"{count} {suffix}" for suffix, count in list(look.others.items())[:NAMED])
        yield f"Other files, which are not loaded: {counts}{', …' if len(look.others) > NAMED else ''}."


def whole(found: Advice) -> str:
    """Say how much memory all images take, decoded."""
    pixels = found.folder.images * found.asked.height * found.asked.width * 3
    size = f"{found.asked.height}×{found.asked.width}"
    return f"Decoded to {size} they take {_words.amount(pixels)} as uint8, {_words.amount(4 * pixels)} as float32."


def ceiling(found: Advice) -> str:
    """Say what the machine can decode, and whether that is enough."""
    if found.ceiling is None:
        return ""
    rate = _words.estimated(found.ceiling, lambda each: f"{each:.3g} images/s")
    said = f"Bare decoding on all cores: {rate}."
    if found.demand is None:
        return said
    asks = f"A step of {_words.duration(found.asked.step)} with {found.asked.batch} images asks for {found.demand:.3g}"
    low, high = found.ceiling.low, found.ceiling.high
    if low is None or high is None:
        return f"{said} {asks}."
    if high < found.demand:
        return f"{said} {asks}: decoding in every epoch cannot keep up."
    if low > found.demand:
        return f"{said} {asks}: a good loader keeps up."
    return f"{said} {asks}: whether decoding can keep up is undecided."


def changes(found: Advice) -> Iterator[str]:
    """Yield what more memory would change."""
    for each in found.changes:
        if each.judged is None:
            yield f"The least memory that would do is {_words.enough(each.memory)}, for {each.loader}."
        else:
            faster = _words.times(each.judged)
            yield f"With {_words.enough(each.memory)}: {each.loader}, {faster} over {found.asked.epochs} epochs."


def not_again(found: Advice) -> str:
    """Say that an answer was not measured again: it was interrupted, left no time for it, or could not be."""
    return f"It was not measured again{f': {found.not_again}' if found.not_again else ''}."


def again(found: Again) -> str:
    """Set what was measured again beside what was predicted."""
    several = f"all {found.images} images" if found.images == found.of else f"{found.images} of {found.of} images"
    which = f"{found.images} images that were held out" if found.held_out else several
    if found.problem:
        gone = f" Images are gone meanwhile ({found.vanished}): run it again when nobody changes the folder."
        why = gone if found.vanished else ""
        return f"Run again on {which}, it failed, so that it is not written out: {found.problem}.{why}"
    said = []
    if found.time is not None:
        predicted = _words.estimated(found.predicted_time, _words.duration)
        said.append(f"{_words.duration(found.time)} an image (predicted {predicted})")
    if found.memory is not None:
        predicted = _words.estimated(found.predicted_memory, _words.amount)
        said.append(f"{_words.amount(found.memory)} of memory (predicted {predicted})")
    return f"Measured again on {which}, each of which came once an epoch, with its label: {', '.join(said)}."


def ended(found: Advice) -> str:
    """Say why the answer is not better, if it could be."""
    if found.ended == "answered":
        return ""
    why = "It was interrupted" if found.ended == "interrupted" else "The time was over"
    written = " with --force" if found.module else ""  # over the loader that it has just written
    return f"{why} before every doubt was; the same command{written} goes on."


def answer(found: Advice) -> list[str]:
    """Return the answer, how sure it is, and what would change it."""
    doubt = "" if found.answer.decided else " (undecided)"
    head = f"Use {found.answer.recommended}{doubt}." if found.answer.recommended else "No loader can be recommended."
    disk = f"It writes {_words.amount(found.disk)} to disk, once." if found.disk else ""
    disks = (
        f"Its images take {_words.amount(found.folder.size)}, more than this machine's memory, and it was measured "
        f"with some that were there: for this to hold, the disk must deliver {_words.amount(found.from_disk)} a second."
        if found.from_disk
        else ""
    )
    larger = f"{_words.amount(found.larger)} of that memory are for images larger than those it was measured with."
    said = [head, found.answer.because, larger if found.larger else "", disks, disk, ceiling(found), *changes(found)]
    said += [again(found.again)] if found.again else [not_again(found)] if found.module else []
    return [each for each in [*said, ended(found)] if each]


def usage(found: Advice, folder: str) -> str:
    """Return the code that trains with the loader; ``folder`` is how the folder is named there."""
    fit = f"model.fit(batches({json.dumps(folder, ensure_ascii=False)}), epochs={found.asked.epochs})"
    return f"    from {found.module} import batches\n    {fit}"


def path(found: Advice) -> str:
    """Return the path of the folder, from where one is."""
    folder = Path(found.asked.folder)
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


def heading(found: Advice, date: str) -> str:
    """Return the docstring of the loader that is handed out."""
    source, asked = found.answer.source, found.asked
    step = f"steps of {_words.duration(asked.step)}" if asked.step else "no training step"
    where = f"{source.cpu}, {source.cores} cores, {_words.in_rounds(0, source.rounds)}" if source else ""
    lines = [
        f"Load the images of a folder for training with TensorFlow: ``{found.answer.recommended}``.",
        usage(found, path(found)),
        f"Written by ``python -m loaders advise`` on {date}. Measured with {found.folder.images} images in "
        f"{found.folder.name}, {step}, batches of {asked.batch}, {_words.amount(asked.memory)} of memory ({where}).",
        found.answer.because,
    ]
    shown = [each if each.startswith("    ") else _wrapped(each) for each in lines]
    return "\n\n".join(_harmless(each) for each in shown) + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def _harmless(text: str) -> str:
    """Return a part of a docstring without what would end it."""
    return text.replace("\\", "/").replace('"""', "'''")
