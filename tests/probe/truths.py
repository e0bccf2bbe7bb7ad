"""What is true of each planted pipeline, and whether the probe says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from loaders._probe.asked import Asked
from loaders._probe.found import Answer, Found
from loaders._probe.target import Target

MIB = 2**20
HERE = Path(__file__).parent / "planted"


class Truth(msgspec.Struct, frozen=True):
    """What must be found, as far as it is planted.

    Attributes
    ----------
    grows
        Whether memory grows; the ``verdict`` is the word for how. *Undecided*: anything but growth may be found.
    bottleneck
        Whether loading holds up a step of ``step`` seconds.
    peak
        The least and the most bytes of the peak.
    slowest
        The slowest stage, by tf.data's account.
    epochs
        What the second epoch is to the first: ``same``, ``shuffled`` or ``other``.
    twice
        The samples that come twice.
    raises
        What it raises, and after how many batches.
    steps
        The length of an epoch that it must be given.
    package
        What it needs besides.
    closes_late
        Whether dropping its iterator takes a good part of each epoch; that others do not is not asked.
    gives_back
        Whether giving memory back does.
    """

    grows: Answer = "no"
    verdict: str = ""
    bottleneck: Answer = "not asked"
    step: float | None = None
    peak: tuple[int, int] | None = None
    slowest: str = ""
    epochs: str = "same"
    twice: int = 0
    raises: tuple[str, int] | None = None
    steps: int | None = None
    package: str = ""
    closes_late: bool = False
    gives_back: bool = False


PLANTED: Mapping[str, Truth] = {
    "plain.py:leak_python": Truth("yes", "growing, in use"),
    "plain.py:leak_malloc": Truth("yes", "growing, in use"),
    "plain.py:leak_large": Truth("yes", "growing, in use"),
    "plain.py:plateau": Truth(verdict="plateau", peak=(32 * MIB, 36 * MIB)),
    "plain.py:held": Truth("yes", "growing, held by the allocator"),
    "plain.py:spike": Truth(peak=(254 * MIB, 262 * MIB)),
    "plain.py:uneven": Truth(epochs="other"),
    "plain.py:twice": Truth(twice=8),
    "plain.py:raises": Truth(grows="undecided", raises=("ValueError: sample 37 is damaged", 37)),
    "plain.py:slow": Truth(grows="undecided", bottleneck="yes", step=0.005),
    "plain.py:endless": Truth(steps=100),
    "plain.py:closes_late": Truth(grows="undecided", closes_late=True),
    "tfdata.py:given_back": Truth(grows="undecided", gives_back=True),
    "tfdata.py:shuffled": Truth(epochs="shuffled"),
    "tfdata.py:augmented": Truth(epochs="other"),
    "tfdata.py:cached": Truth(grows="undecided", peak=(25 * MIB, 80 * MIB)),
    "tfdata.py:slow_stage": Truth(grows="undecided", slowest="Map", epochs="other"),
    "tfdata.py:not_the_bottleneck": Truth(grows="undecided", bottleneck="no", step=0.02),
    "tfdata.py:endless": Truth(steps=100),
    "tfdata.py:leak": Truth("yes", "growing, in use"),
    "keras_sets.py:leak": Truth("yes", "growing, in use"),
    "workers.py:leak": Truth("yes", "growing"),
}
"""Pipelines with something to be found."""

SOUND: Mapping[str, Truth] = {
    "plain.py:sound": Truth("undecided"),
    "plain.py:sound_list": Truth("undecided"),
    "plain.py:sound_large": Truth("undecided"),
    "plain.py:sound_dicts": Truth("undecided"),
    "plain.py:sound_single": Truth("undecided"),
    "plain.py:sound_fast": Truth("undecided"),
    "plain.py:sound_zip": Truth("undecided"),
    "plain.py:sound_threads": Truth("undecided"),
    "plain.py:sound_iterable": Truth("undecided"),
    "plain.py:sound_shuffled": Truth("undecided", epochs="shuffled"),
    "tfdata.py:sound": Truth("undecided"),
    "tfdata.py:sound_plain": Truth("undecided"),
    "tfdata.py:sound_dict": Truth("undecided"),
    "tfdata.py:sound_ragged": Truth("undecided"),
    "tfdata.py:sound_strings": Truth("undecided"),
    "tfdata.py:sound_generator": Truth("undecided"),
    "keras_sets.py:sound": Truth("undecided"),
    "keras_sets.py:sound_threads": Truth("undecided"),
    "workers.py:sound": Truth("undecided"),
    "photographs.py:sound": Truth("undecided"),
    "photographs.py:sound_tfdata": Truth("undecided"),
    "engines.py:sound_grain": Truth("undecided", package="grain"),
    "engines.py:sound_spdl": Truth("undecided", package="spdl"),
    "torch_loaders.py:sound": Truth("undecided", package="torch"),
    "torch_loaders.py:sound_workers": Truth("undecided", package="torch"),
}
"""Pipelines with nothing to be found."""


def asked(name: str, truth: Truth) -> Asked:
    """Return how a planted pipeline is measured."""
    place, _, function = name.partition(":")
    return Asked(Target(str(HERE / place), function, {}, str(HERE)), step=truth.step, steps=truth.steps)


def wrong(found: Found, truth: Truth) -> list[str]:
    """Return what was not found as it is, in words; a verdict that was left open is no false alarm."""
    said = list[str]()

    def expect(what: str, is_right: bool, was: Any) -> None:
        if not is_right:
            said.append(f"{what}: {was}")

    verdict = found.growth.verdict if found.growth else "none"
    expect(
        "memory grows", found.grows == truth.grows or (truth.grows == "undecided" and found.grows != "yes"), found.grows
    )
    expect("verdict on memory", not truth.verdict or verdict == truth.verdict, verdict)
    expect("closes late", found.closes_late or not truth.closes_late, f"{found.closing:.3f} s")
    expect("gives memory back", found.gives_back == truth.gives_back, found.new_pages)
    expect("bottleneck", found.bottleneck == truth.bottleneck, found.bottleneck)
    if truth.peak:
        expect("peak", truth.peak[0] <= found.highest <= truth.peak[1], f"{found.highest / MIB:.1f} MiB")
    if truth.slowest:
        slowest = found.stages.slowest.name if found.stages and found.stages.slowest else "none"
        expect("slowest stage", truth.slowest in slowest, slowest)
    if truth.raises:
        what, after = truth.raises
        expect("raised", what in found.failure and f"after {after} batches" in found.failure, found.failure)
        return said
    expect("raised", not found.failure, found.failure)
    given = found.delivered
    if given is None:
        return [*said, "nothing is known of what it delivered"]
    other = given.only_first + given.only_second
    epochs = "other" if other else "same" if given.same_order else "shuffled"
    expect("the second epoch", epochs == truth.epochs, epochs)
    expect("delivered twice", given.twice == truth.twice, given.twice)
    return said
