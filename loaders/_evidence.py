"""Experiments that must be repeated to be believed: how often the judge and the check are wrong. Pure but for the log.

Nothing is timed here. Comparisons with known truths are put together from the noise of real trials, and checks are run
on strategies whose trials are made up, so every answer can be held against the truth. Each experiment is appended as
one line to ``evidence.jsonl``, with the commit and the processor that it ran on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loaders import _judge
from loaders._errors import InputError
from loaders._trial.record import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "evidence.jsonl"

ROUNDS = (3, 6, 8)

DRIFT = 0.05
"""Of a round: the standard deviation of its effect on the logarithm. It cancels, as it must."""

LEAST_ROUNDS = 3
"""Of a comparison whose noise is taken: fewer tell nothing of it."""


class Count(msgspec.Struct, frozen=True):
    """How often something happened, beside what is wanted.

    ``share`` is the mean of ``repetitions`` comparisons, which do not depend on each other, and ``error`` its standard
    error. ``target`` must be reached from the side that ``wanted`` says, less two standard errors.
    """

    what: str
    share: float
    error: float
    repetitions: int
    wanted: Literal["at least", "at most"]
    target: float

    @property
    def is_reached(self) -> bool:
        """Whether the target lies on the right side of the share, two standard errors allowed."""
        allowed = 2 * self.error
        return self.share >= self.target - allowed if self.wanted == "at least" else self.share <= self.target + allowed


class Experiment(msgspec.Struct, frozen=True):
    """One line of the log; ``source`` is what the noise was taken from."""

    name: str
    started: str
    commit: str
    cpu: str
    source: str
    counts: list[Count]


@dataclass(frozen=True)
class Noise:
    """What trials leave over: of each comparison the spread of every strategy, and of all the standardised residuals.

    Residuals are standardised by the moderated spread: by the plain one of a few rounds, none could lie far out, and
    the tails that real trials have would be lost.
    """

    spreads: list[NDArray[np.float64]]
    residuals: NDArray[np.float64]


def noise(records: Iterable[Record]) -> Noise:
    """Return the noise of the comparisons that hold rounds enough; every strategy that was ok in all rounds counts.

    Raises
    ------
    InputError
        Without such a comparison.
    """
    import numpy as np

    spreads, residuals = [], []
    for samples in _comparisons(records):
        found = _judge.fitted(samples)
        logs = np.log([[samples[name][index] for index in sorted(samples[name])] for name in found.strategies])
        strategies, rounds = logs.shape
        left = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
        left /= math.sqrt((1 - 1 / strategies) * (1 - 1 / rounds))  # what fitting the effects has taken off
        spread = np.array([found.spread(name) for name in found.strategies])
        spreads.append(spread)
        residuals.append((left / spread[:, None]).ravel())
    if not residuals:
        raise InputError(f"no comparison of {LEAST_ROUNDS} rounds or more to take the noise from")
    pooled = np.concatenate(residuals)
    return Noise(spreads, pooled - pooled.mean())


def _comparisons(records: Iterable[Record]) -> list[dict[str, dict[int, float]]]:
    """Return the times of every comparison, by strategy and round: the steady ones where all have them."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        if record.status == "ok" and record.run:
            case = tuple(sorted(record.case.items()))
            groups.setdefault((record.environment.machine, record.run, record.question, case), []).append(record)
    found = []
    for group in groups.values():
        steady = all(record.metrics.steady_time for record in group)
        times: dict[str, dict[int, float]] = {}
        for record in group:
            time = record.metrics.steady_time if steady else record.metrics.epoch_time
            if time:
                times.setdefault(record.strategy, {})[record.round] = time
        most = max(map(len, times.values()), default=0)
        whole = {name: values for name, values in times.items() if len(values) == most}
        if most >= LEAST_ROUNDS and len(whole) > 1:
            found.append(whole)
    return found


def decoded(path: Path) -> list[Record]:
    """Return the records of a log, of whichever schema: the noise of an older instrument is noise too."""
    if not path.exists():
        raise InputError(f"there is no trial log {path}")
    return [msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines() if line.strip()]


class _Simulated:
    """Comparisons with known truths and the noise of real ones."""

    def __init__(self, noise: Noise, seed: int) -> None:
        import numpy as np

        self.noise, self.random = noise, np.random.default_rng(seed)

    def spreads(self) -> NDArray[np.float64]:
        """Return the spreads of a comparison drawn at random, in random order."""
        return self.random.permutation(self.noise.spreads[self.random.integers(len(self.noise.spreads))])

    def fitted(self, truths: NDArray[np.float64], spreads: NDArray[np.float64], rounds: int) -> _judge.Fitted:
        """Return what the judge makes of so many rounds of strategies with these true logarithms."""
        import numpy as np

        drift = self.random.normal(0, DRIFT, rounds)
        left = self.random.choice(self.noise.residuals, (len(spreads), rounds))
        values = np.exp(truths[:, None] + drift + spreads[:, None] * left)
        return _judge.fitted({str(name): dict(enumerate(row)) for name, row in enumerate(values.tolist())})


def simulation(noise: Noise, repetitions: int, seed: int = 1) -> list[Count]:
    """Ask the judge of so many simulated comparisons of each kind how often it is right."""
    counts = []
    for rounds in ROUNDS:
        made = _Simulated(noise, seed + rounds)
        said = f"at {rounds} rounds"
        for what, wanted, target, once in (
            ("95 % intervals cover the truth", "at least", 0.93, _covers),
            ("the best set holds the truly best", "at least", 0.95, _holds_best),
            ("the best set holds a truly best of four times the spread", "at least", 0.95, _holds_noisy_best),
            ("no difference is said with the truth at the margin", "at most", 0.05, _says_no_difference),
            ("25 % slower is called slower", "at least", 0.80, _finds_slower),
            ("50 % slower leaves the best set", "at least", 0.90, _leaves_best),
        ):
            if rounds < ROUNDS[-1] and once in (_finds_slower, _leaves_best):
                continue
            counts.append(_count(f"{what}, {said}", [once(made, rounds) for _ in range(repetitions)], wanted, target))
    return counts


def _count(what: str, shares: Sequence[float], wanted: Any, target: float) -> Count:
    mean = math.fsum(shares) / len(shares)
    error = math.sqrt(math.fsum((each - mean) ** 2 for each in shares) / len(shares) / max(len(shares) - 1, 1))
    return Count(what, mean, error, len(shares), wanted, target)


def _covers(made: _Simulated, rounds: int) -> float:
    """Return the share of the intervals of ratios to one strategy that hold the true ratio."""
    spreads = made.spreads()
    truths = made.random.normal(0, 0.5, len(spreads))
    found = made.fitted(truths, spreads, rounds)
    covered = 0
    for index in range(1, len(spreads)):
        difference = found.difference(str(index), "0")
        low, high = difference.interval() if difference else (0.0, math.inf)
        covered += low <= math.exp(truths[index] - truths[0]) <= high
    return covered / (len(spreads) - 1)


def _holds_best(made: _Simulated, rounds: int, noisier: float = 1.0) -> float:
    """Return whether the best stays in its set where the others are hardly slower: they never are further off."""
    spreads = made.spreads()
    spreads[0] *= noisier
    truths = made.random.choice([0.0, 0.01, 0.05], 1) * (made.random.random(len(spreads)) + 1e-9)
    truths[0] = 0
    return float("0" in made.fitted(truths, spreads, rounds).best().names)


def _holds_noisy_best(made: _Simulated, rounds: int) -> float:
    return _holds_best(made, rounds, noisier=4.0)


def _says_no_difference(made: _Simulated, rounds: int) -> float:
    return float(_verdict(made, rounds, _judge.TIME_MARGIN) == "no difference")


def _finds_slower(made: _Simulated, rounds: int) -> float:
    return float(_verdict(made, rounds, 1.25) == "more")


def _verdict(made: _Simulated, rounds: int, ratio: float) -> str:
    spreads = made.spreads()
    truths = made.random.normal(0, 0.5, len(spreads))
    truths[1] = truths[0] + math.log(ratio)
    judged = made.fitted(truths, spreads, rounds).compare("1", "0", margin=_judge.TIME_MARGIN)
    return judged.verdict if judged else "undecided"


def _leaves_best(made: _Simulated, rounds: int) -> float:
    """Return whether one that is half slower than the best leaves the set, the others anywhere between."""
    spreads = made.spreads()
    truths = made.random.random(len(spreads)) * math.log(1.5)
    truths[0], truths[1] = 0, math.log(1.5)
    return float("1" not in made.fitted(truths, spreads, rounds).best().names)
