"""Limits that a pipeline must keep: each is kept, broken, or cannot be decided by the trials. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from loaders._probe.found import Found
from loaders._words import amount, duration, estimated, rate

State = Literal["kept", "broken", "undecided"]
Forbidden = Literal["growing", "bottleneck", "uneven"]
"""What ``--fail-on`` accepts."""


class Limits(msgspec.Struct, frozen=True):
    """What was asked for; bytes, and samples a second."""

    forbidden: tuple[Forbidden, ...] = ()
    max_peak: int | None = None
    min_rate: float | None = None


class Gate(msgspec.Struct, frozen=True):
    """One limit, and why it is kept or not."""

    name: str
    state: State
    why: str


def gates(found: Found, limits: Limits) -> list[Gate]:
    """Hold a pipeline against its limits; one that failed keeps none of them."""
    judged: list[Gate] = []
    for name in limits.forbidden:
        judged.append({"growing": _growing, "bottleneck": _bottleneck, "uneven": _uneven}[name](found))
    if limits.max_peak is not None:
        judged.append(_peak(found, limits.max_peak))
    if limits.min_rate is not None:
        judged.append(_rate(found, limits.min_rate))
    if found.failure:
        judged = [each if each.state == "broken" else Gate(each.name, "undecided", "it failed") for each in judged]
    return judged


def exit_code(found: Found, judged: Sequence[Gate]) -> int:
    """Return 1 if the pipeline failed or a gate is broken, else 3 if one is undecided, else 0."""
    if found.failure or any(each.state == "broken" for each in judged):
        return 1
    return 3 if any(each.state == "undecided" for each in judged) else 0


WHOLE = "its arrays do not tell whether a batch is one sample or several, so these cannot be told apart or counted"


def _growing(found: Found) -> Gate:
    states: dict[str, State] = {"yes": "broken", "no": "kept"}
    why = f"memory: {found.growth.verdict}" if found.growth else "there is no trace of its memory"
    if found.grows == "undecided" and found.growth and found.growth.verdict != "undecided":
        why = "its trials differ in whether memory grows"
    return Gate("--fail-on growing", states.get(found.grows, "undecided"), why)


def _bottleneck(found: Found) -> Gate:
    states: dict[str, State] = {"yes": "broken", "no": "kept"}
    why = f"a step waits {estimated(found.figures.get('wait_time'), duration)}"
    return Gate("--fail-on bottleneck", states.get(found.bottleneck, "undecided"), why)


def _uneven(found: Found) -> Gate:
    given = found.delivered
    if given is None:
        return Gate("--fail-on uneven", "undecided", "nothing is known of what it delivered")
    if given.unread:
        return Gate("--fail-on uneven", "undecided", f"its samples could not be compared: {given.unread}")
    other = given.only_first + given.only_second
    if other and given.whole:
        return Gate("--fail-on uneven", "undecided", WHOLE)
    if other and found.steps is not None:
        why = f"{other} samples are in one of two epochs only; with --steps an epoch goes on where the last one ended"
        return Gate("--fail-on uneven", "undecided", why)
    return Gate("--fail-on uneven", "broken" if other else "kept", f"{other} samples are in one of two epochs only")


def _peak(found: Found, limit: int) -> Gate:
    """One trial above the limit breaks it: memory that was once needed is needed."""
    peak = found.figures.get("peak_memory")
    why = f"the highest peak is {amount(found.highest)}"
    if found.highest > limit:
        state: State = "broken"
    elif peak is None and found.has_workers:
        state, why = "undecided", "how much its processes hold together could not be read"
    elif peak is None or peak.high is None or peak.high > limit:
        state, why = "undecided", f"{why}, and too near to tell" if peak and peak.high is not None else why
    else:
        state = "kept"
    return Gate(f"--max-peak {amount(limit)}", state, why)


def _rate(found: Found, limit: float) -> Gate:
    if found.delivered and found.delivered.whole:
        return Gate(f"--min-rate {rate(limit)}", "undecided", WHOLE)
    rated = found.figures.get("throughput")
    state: State = "undecided"
    if rated and rated.low is not None and rated.high is not None:
        state = "kept" if rated.low >= limit else "broken" if rated.high < limit else "undecided"
    return Gate(f"--min-rate {rate(limit)}", state, f"{estimated(rated, rate)} samples a second")
