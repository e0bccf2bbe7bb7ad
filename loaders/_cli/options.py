"""Options shared by several commands, each declared once, and how their values are parsed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from loaders import _registry
from loaders._cli.output import say
from loaders._corpus import SIZES, Corpus
from loaders._errors import InputError

T = TypeVar("T")

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def amount_of_memory(value: str) -> int:
    """Return the number of bytes in ``2GiB``, ``512MiB`` or ``1.5G``; units are powers of 1024."""
    text = str(value).strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    try:
        amount = int(float(number) * UNITS[unit])
    except (ValueError, OverflowError, KeyError):
        amount = 0
    if amount <= 0:
        raise click.BadParameter(f"{value!r} is not an amount of memory; write 2GiB or 512MiB")
    return amount


def share(value: str) -> float:
    """Return the share in ``5%``, as a number from 0 to 1; ``0.05`` may mean that or a hundredth of it."""
    text = str(value).strip()
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100 or (percent < 1 and not text.endswith("%")):
        raise click.BadParameter(f"{value!r} is not a share; write 5%")
    return percent / 100


class _AboveZero(click.FloatRange):
    """A number above zero, and no infinity: what is reckoned with it, or sent to a trial, would be none."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return found


above_zero = _AboveZero()

outside = click.option(
    "--with",
    "outside",
    multiple=True,
    metavar="FILE",
    help="Register the strategies in a file of your own (LOADERS_WITH).",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
size = click.option(
    "--size",
    type=click.Choice(list(SIZES)),
    default="small",
    envvar="LOADERS_SIZE",
    show_default=True,
    help="Size of the data.",
)


def minutes(words: str, **more: Any) -> Callable[[Any], Any]:
    """Return the option ``--minutes``; ``words`` is its help text."""
    return click.option("--minutes", type=above_zero, show_default=True, help=words, **{"default": 10.0, **more})


def case(words: str) -> Callable[[Any], Any]:
    """Return the option that selects values of a question's axes; ``words`` is its help text."""
    return click.option("--case", "given", multiple=True, metavar="AXIS=VALUE", help=words)


@dataclass(frozen=True)
class Trials:
    """How trials are run: the options shared by ``trial`` and ``compare``.

    Attributes
    ----------
    data
        A folder of the user's own images.
    strict
        Treat an unreadable image as an error.
    size
        Size of the corpus.
    memory_limit
        Bytes; a trial whose process tree holds more is ended.
    deadline
        Seconds; a trial that takes longer is ended.
    epochs
        Epochs of a trial; ``None`` if the question and the size decide.
    outside
        Absolute paths of files that declare strategies; they are registered already.
    """

    data: str | None
    strict: bool
    size: str
    memory_limit: int | None
    deadline: float
    epochs: int | None
    outside: tuple[str, ...]

    def open(self) -> Corpus:
        """Open the corpus."""
        return open_corpus(self.size, self.data, strict=self.strict)


_TRIALS = (
    click.option(
        "--data", metavar="DIR", envvar="LOADERS_DATA", help="Your own images, DIR/LABEL/x.jpg (LOADERS_DATA)."
    ),
    click.option("--strict", is_flag=True, help="Treat an unreadable image as an error."),
    size,
    click.option(
        "--memory-limit",
        type=amount_of_memory,
        metavar="2GiB",
        help="End a trial whose process tree uses more, imports included. [default: 80 % of free memory]",
    ),
    click.option(
        "--deadline",
        type=above_zero,
        default=600.0,
        show_default=True,
        help="End a trial after this many seconds.",
    ),
    click.option(
        "--epochs",
        type=click.IntRange(min=1),
        help="Epochs in total: a verdict on memory needs a few hundred batches. [default: by question and size]",
    ),
    outside,
)


def trials(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of ``Trials``, register ``--with`` files, and pass the options to the command as ``how``."""

    @wraps(command)
    def run(**given: Any) -> T:
        own = {each.name: given.pop(each.name) for each in fields(Trials)}
        own["outside"] = tuple(register(own["outside"]))
        return command(how=Trials(**own), **given)

    for option in _TRIALS:
        run = option(run)
    return run


def typed(context: click.Context) -> set[str]:
    """Return the names of the parameters that were given on the command line."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def register(outside: Sequence[str]) -> list[str]:
    """Register the strategies of ``--with`` files and of those in ``LOADERS_WITH``, and return the files."""
    files = _registry.outside_files(outside)
    _registry.load_files(files)
    return files


def values(question: _registry.Question, given: Sequence[str]) -> dict[str, str]:
    """Return the values given with ``--case``, by axis."""
    chosen: dict[str, str] = {}
    for item in given:
        axis, separator, value = item.partition("=")
        if axis not in question.axes or not separator:
            axes = ", ".join(f"{name}={'|'.join(values)}" for name, values in question.axes.items())
            raise InputError(f"--case {item}: write AXIS=VALUE; {question.name} has {axes or 'no axes'}")
        if value not in question.axes[axis]:
            raise InputError(f"--case {item}: {axis} must be one of {', '.join(question.axes[axis])}")
        if axis in chosen:
            raise InputError(f"--case {item}: {axis}={chosen[axis]} was also given; give one of them")
        chosen[axis] = value
    return chosen


def open_corpus(size: str, data: str | None = None, *, strict: bool) -> Corpus:
    """Open the corpus, with a progress bar on standard error while it is built."""
    from loaders import _corpus, _terminal

    return _corpus.open_corpus(size, data, strict=strict, say=say, progress=_terminal.track_pictures)
