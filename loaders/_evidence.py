"""Repeated experiments that show how often the judge and the check are wrong. Pure except for the log.

Nothing is timed here. Comparisons with known truths are assembled from the noise of real trials, and checks run on
simulated trials, so every answer can be compared with the truth. Each experiment is appended to ``evidence.jsonl`` as
one line, with its commit and processor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loaders import _judge
from loaders._check import equivalence
from loaders._errors import InputError
from loaders._rows.figures import value
from loaders._stats import estimate
from loaders._trial import log
from loaders._trial.record import SCHEMA, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from loaders._check.run import Outcome

NAME = "evidence.jsonl"

ROUNDS = (3, 6, 8)

DRIFT = 0.05
"""The standard deviation of a round's effect on the logarithm. It must cancel out."""

LEAST_ROUNDS = 3
"""Noise is taken only from comparisons with at least this many rounds: fewer do not show it."""


class Count(msgspec.Struct, frozen=True):
    """How often something happened, and how often it should.

    ``share`` is the mean of ``repetitions`` independent comparisons, and ``error`` its standard error. ``wanted`` says
    from which side ``target`` must be reached, allowing two standard errors.
    """

    what: str
    share: float
    error: float
    repetitions: int
    wanted: Literal["at least", "at most"]
    target: float

    @property
    def is_reached(self) -> bool:
        """Whether the share is on the right side of the target, allowing two standard errors."""
        allowed = 2 * self.error
        return self.share >= self.target - allowed if self.wanted == "at least" else self.share <= self.target + allowed


class Experiment(msgspec.Struct, frozen=True):
    """One line of the log; ``source`` says where the noise was taken from."""

    name: str
    started: str
    commit: str
    cpu: str
    source: str
    counts: list[Count]


@dataclass(frozen=True)
class Noise:
    """The noise of real trials: the spreads of the strategies of each comparison, and all standardised residuals."""

    spreads: list[NDArray[np.float64]]
    residuals: NDArray[np.float64]


def noise(records: Iterable[Record]) -> Noise:
    """Return the noise of the comparisons with enough rounds, from every strategy that was ok in all rounds.

    Raises
    ------
    InputError
        If there is no such comparison.
    """
    import numpy as np

    spreads, residuals = [], []
    for samples in _comparisons(records):
        logs = np.log([[values[index] for index in sorted(values)] for values in samples.values()])
        strategies, rounds = logs.shape
        left = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
        left /= math.sqrt((1 - 1 / strategies) * (1 - 1 / rounds))  # what fitting the effects removed
        spread = np.sqrt((left**2).mean(axis=1))
        if spread.min() > 0:
            spreads.append(spread)
            residuals.append((left / spread[:, None]).ravel())
    if not residuals:
        raise InputError(f"no comparison of {LEAST_ROUNDS} rounds or more to take the noise from")
    pooled = np.concatenate(residuals)
    return Noise(spreads, pooled - pooled.mean())


def _comparisons(records: Iterable[Record]) -> list[dict[str, dict[int, float]]]:
    """Return the times of every comparison with enough rounds: rounds of at least half of its strategies.

    Strategies that miss one of these rounds are left out.
    """
    found = []
    for _, times in _times(records):
        ran = Counter(index for values in times.values() for index in values)
        rounds = [index for index, count in ran.items() if count >= max(ran.values()) / 2]
        whole = {
            name: {index: values[index] for index in rounds}
            for name, values in times.items()
            if all(index in values for index in rounds)
        }
        if len(rounds) >= LEAST_ROUNDS and len(whole) > 1:
            found.append(whole)
    return found


def _times(records: Iterable[Record], *, alike: bool = False) -> list[tuple[str, dict[str, dict[int, float]]]]:
    """Return the question and the times of every comparison, by strategy and round: steady times if all have them.

    Of several runs of a case the newest counts, as on the page; with ``alike``, only its forked trials if it has any.
    """
    groups: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for record in records:
        if record.status == "ok" and record.run:
            case = tuple(sorted(record.case.items()))
            runs = groups.setdefault((record.environment.machine, record.question, case), {})
            runs.setdefault(record.run, []).append(record)
    found = []
    for runs in groups.values():
        newest = max(runs.values(), key=lambda run: run[0].started)
        group = [record for record in newest if alike and record.process == "forked"] or newest
        steady = all(record.metrics.steady_time for record in group)
        times: dict[str, dict[int, float]] = {}
        for record in group:
            time = record.metrics.steady_time if steady else record.metrics.epoch_time
            if time:
                times.setdefault(record.strategy, {})[record.round] = time
        found.append((group[0].question, times))
    return found


def decoded(path: Path) -> list[Record]:
    """Return the records of a log, whatever their schema: noise measured by an older instrument will do.

    See ``log.read``, which leaves out lines that cannot be read and trials that it holds already.
    """
    if not path.exists():
        raise InputError(f"there is no trial log {path}")
    return log.read(path)


class _Simulated:
    """Comparisons with known truths and the noise of real ones."""

    def __init__(self, noise: Noise, seed: int) -> None:
        import numpy as np

        self.noise, self.random = noise, np.random.default_rng(seed)

    def spreads(self) -> NDArray[np.float64]:
        """Return the spreads of a randomly drawn comparison, in random order."""
        return self.random.permutation(self.noise.spreads[self.random.integers(len(self.noise.spreads))])

    def fitted(self, truths: NDArray[np.float64], spreads: NDArray[np.float64], rounds: int) -> _judge.Fitted:
        """Return the judge's fit of this many rounds of strategies with these true logarithms."""
        import numpy as np

        drift = self.random.normal(0, DRIFT, rounds)
        left = self.random.choice(self.noise.residuals, (len(spreads), rounds))
        values = np.exp(truths[:, None] + drift + spreads[:, None] * left)
        return _judge.fitted({str(name): dict(enumerate(row)) for name, row in enumerate(values.tolist())})


def simulation(noise: Noise, repetitions: int, seed: int = 1) -> list[Count]:
    """Count how often the judge is right about simulated comparisons of each kind."""
    counts = []
    for rounds in ROUNDS:
        made = _Simulated(noise, seed + rounds)
        said = f"at {rounds} rounds"
        for what, wanted, target, once in (
            ("95 % intervals cover the truth", "at least", 0.93, _covers),
            ("the best set contains the true best", "at least", 0.95, _holds_best),
            ("the best set contains a true best with four times the spread", "at least", 0.95, _holds_noisy_best),
            ("'no difference' is reported when the truth is at the margin", "at most", 0.05, _says_no_difference),
            ("a strategy 25 % slower is reported as slower", "at least", 0.80, _finds_slower),
            ("a strategy 50 % slower is not in the best set", "at least", 0.90, _leaves_best),
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
    """Return the share of intervals, for ratios to one strategy, that hold the true ratio."""
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
    """Return whether the true best is in the best set when all others are only slightly slower."""
    spreads = made.spreads()
    spreads[0] *= noisier
    truths = made.random.choice([0.0, 0.01, 0.05], 1) * (made.random.random(len(spreads)) + 1e-9)
    truths[0] = 0
    return float("0" in made.fitted(truths, spreads, rounds).best_names())


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
    """Return whether a strategy 50 % slower than the best leaves the set, with the others in between."""
    spreads = made.spreads()
    truths = made.random.random(len(spreads)) * math.log(1.5)
    truths[0], truths[1] = 0, math.log(1.5)
    return float("1" not in made.fitted(truths, spreads, rounds).best_names())


SIMULATED = "batching"
"""The question whose strategies have the times of a simulated comparison with rounds by need."""

ALIKE = 0.5
"""The share of its strategies that take as long as its baseline."""


def rounds_by_need(noise: Noise, repetitions: int, seed: int = 1) -> list[Count]:
    """Count how often a comparison is right whose later rounds go to what its earlier ones have left open.

    Whether it goes on depends on what it has shown, so its intervals cover less than those of rounds fixed beforehand.
    """
    from loaders import _rows
    from loaders._compare.plans import MOST_ROUNDS, UNTIL

    covered, invented, held, saved = [], [], [], []
    for index in range(repetitions):
        made = _Simulated(noise, seed + index)
        truths, records = _by_need(made, UNTIL)
        rows = {row.strategy: row for row in _rows.comparison(records).rows}
        baseline = next(row.strategy for row in rows.values() if row.is_baseline)
        others = [(row.ratio, math.exp(truths[name] - truths[baseline])) for name, row in rows.items() if row.ratio]
        covered.append(
            _mean([float((each.ratio.low or 0) <= truth <= (each.ratio.high or math.inf)) for each, truth in others])
        )
        invented.append(_mean([float(each.verdict in ("less", "more")) for each, truth in others if truth == 1]))
        held.append(float(rows[min(truths, key=truths.__getitem__)].in_best))
        saved.append(1 - len(records) / (MOST_ROUNDS * len(truths)))
    return [
        _count("rounds by need: 95 % intervals cover the truth", covered, "at least", 0.93),
        _count("rounds by need: what takes as long as its baseline is said to differ", invented, "at most", 0.05),
        _count("rounds by need: the best set contains the true best", held, "at least", 0.95),
        _count(f"rounds by need: share of the trials of {MOST_ROUNDS} rounds that they save", saved, "at least", 0.1),
    ]


def _by_need(made: _Simulated, until: float) -> tuple[dict[str, float], list[Record]]:
    """Return strategies' true logarithms, and the records of a comparison of them until a precision."""
    import numpy as np

    from loaders import _registry
    from loaders._compare.plans import LEAST_ROUNDS as WHOLE_ROUNDS
    from loaders._compare.plans import MOST_ROUNDS
    from loaders._compare.schedule import LOOKS, goes_on
    from loaders._trial.metrics import Metrics
    from loaders._trial.record import Environment

    question = _registry.find_question(SIMULATED)
    baseline = _registry.baseline(SIMULATED).name
    spreads = made.spreads()
    known = [name for name, each in _registry.variants(SIMULATED).items() if not each.is_apart]
    names = [baseline, *(name for name in known if name != baseline)][: len(spreads)]
    spreads = spreads[: len(names)]
    alike = made.random.random(len(names)) < ALIKE
    alike[:2] = True
    truths = np.where(alike, 0.0, made.random.normal(0, 0.3, len(names)))
    drift = made.random.normal(0, DRIFT, MOST_ROUNDS)
    left = made.random.choice(made.noise.residuals, (len(names), MOST_ROUNDS))
    times = np.exp(truths[:, None] + drift + spreads[:, None] * left)
    records: list[Record] = []
    due = set(names)
    for index in range(MOST_ROUNDS):
        if index >= WHOLE_ROUNDS and index in LOOKS:
            due = goes_on(records, until)
        records += [
            Record(
                question=SIMULATED,
                strategy=name,
                status="ok",
                message="",
                metrics=Metrics(epoch_time=time, steady_time=time, peak_memory=2**26, needed_memory=2**26),
                environment=Environment(),
                case=question.default_case,
                size="full",
                data="simulated",
                seed=index,
                started="2026-01-01T00:00:00+00:00",
                seconds=time,
                run="simulated",
                round=index,
            )
            for name, time in zip(names, times[:, index].tolist(), strict=True)
            if name in due
        ]
    return dict(zip(names, truths.tolist(), strict=True)), records


STRATEGIES = 10
"""Strategies in a simulated check."""

FAILING, FAILING_ONLY_NOW = 0.02, 0.2
"""The shares of trials that fail: on both sides if nothing has changed, and on the new side if something has."""


def checks(noise: Noise, repetitions: int, seed: int = 1) -> list[Count]:
    """Run simulated checks: how often is one wrong, and how often does it find the failing strategy?

    This is counted in blocks of four whole trials, and in those of two trials whose epochs alternate.
    """
    return [
        count
        for in_turn in (False, True)
        for count in (
            missed(noise, repetitions, seed, in_turn=in_turn),
            *_failing(noise, repetitions, seed, in_turn=in_turn),
        )
    ]


HOW = {False: "in blocks of four trials", True: "in blocks of two trials"}
"""How the two sides of a simulated check are measured, without and with turns."""


def missed(noise: Noise, repetitions: int, seed: int = 1, *, in_turn: bool) -> Count:
    """Count the strategies that take longer by the least that matters and are said not to differ."""
    from loaders._check.judge import MISSED, TIME_ALIKE

    checked = [_checked(noise, seed + index, 0, 0, TIME_ALIKE, in_turn=in_turn) for index in range(repetitions)]
    return _count(
        f"{HOW[in_turn]}: a strategy that takes {TIME_ALIKE - 1:.0%} longer is said not to differ, in a check of "
        f"{STRATEGIES}",
        [_mean([float(each.time.verdict == "no difference") for each in one if each.time]) for one in checked],
        "at most",
        MISSED,
    )


def _failing(noise: Noise, repetitions: int, seed: int, *, in_turn: bool) -> list[Count]:
    def checked(on_a: float, on_b: float) -> list[list[Outcome]]:
        return [_checked(noise, seed + index, on_a, on_b, in_turn=in_turn) for index in range(repetitions)]

    return [
        _count(
            f"{HOW[in_turn]}: a check of {STRATEGIES} strategies exits with 1, all failing in {FAILING:.0%} of trials "
            "on both sides",
            [float(any(each.is_regression for each in outcomes)) for outcomes in checked(FAILING, FAILING)],
            "at most",
            0.05,
        ),
        _count(
            f"{HOW[in_turn]}: of {STRATEGIES} strategies, the only one that now fails, in {FAILING_ONLY_NOW:.0%} of "
            "trials, is found",
            [float(outcomes[0].broken) for outcomes in checked(0, FAILING_ONLY_NOW)],
            "at least",
            0.90,
        ),
    ]


def _checked(
    noise: Noise, seed: int, on_a: float, on_b: float, ratio: float = 1.0, *, in_turn: bool = False
) -> list[Outcome]:
    """Check strategies that fail equally often on both sides, or the first of them more often on one.

    ``ratio`` is how much longer all of them take on the new side. With ``in_turn`` a block is a trial of each side;
    their times spread as those of whole trials do, which is more than epochs that alternate.
    """
    import numpy as np

    from loaders._check import run
    from loaders._check.judge import MOST_TRIALS

    random = np.random.default_rng(seed)
    spreads = np.concatenate(noise.spreads)

    def side(spread: float, failing: float, usual: float = 1.0) -> Callable[[int], dict[str, Any]]:
        left, peaks = random.choice(noise.residuals, MOST_TRIALS), random.normal(2**25, 2**17, MOST_TRIALS)
        drawn = iter(zip(left.tolist(), peaks.tolist(), random.random(MOST_TRIALS).tolist(), strict=True))

        def trial(seed: int) -> dict[str, Any]:  # noqa: ARG001
            residual, peak, chance = next(drawn)
            ok = chance >= failing
            return {
                "status": "ok" if ok else "failed",
                "message": "" if ok else "simulated",
                "metrics": {"epoch_time": usual * math.exp(spread * residual), "peak_memory": int(peak)},
            }

        return trial

    subjects = []
    for index in range(STRATEGIES):
        spread = float(random.choice(spreads))
        alike = on_a == on_b or index > 0
        both = on_a if on_a == on_b else 0.0
        a = side(spread, both if alike else on_a)
        b = side(spread, both if alike else on_b, ratio)
        subject = run.Subject(f"simulated.{index}", "epoch_time", a, b)
        if in_turn:
            subject = msgspec.structs.replace(subject, in_turn=lambda seed, a=a, b=b: [a(seed), b(seed)])
        subjects.append(subject)
    return run.run(subjects, math.inf, clock=lambda: 0.0)


def replayed(records: Sequence[Record]) -> list[Count]:
    """Compare every recommendation that follows from the records with a second reading of the raw trials."""
    from loaders._advise.replay import BROKEN, replay

    counts = replay(records)
    settings = counts["settings"]
    if not settings:
        raise InputError("no records of the current instrument from which a strategy could be chosen")
    return [Count(f"recommendation: {rule}", counts[rule] / settings, 0.0, settings, "at most", 0.0) for rule in BROKEN]


FORESEEN, FORESEEN_CASE = "batching", {"augment": "off"}
"""The question and the case whose memory is predicted for more data than was measured."""

FURTHER, TRIALS = "x64", 3
"""Four times the comparison's largest amount, run by hand (``--size large``), and the number of trials of each."""

BEYOND = 1.1
"""No trial may exceed its upper bound times this factor."""


def foreseen(records: Sequence[Record]) -> list[Count]:
    """Compare the law of memory's predictions from three amounts with trials at four times the largest of them.

    Those of a machine are compared with what its own run predicts.
    """
    from loaders._advise import candidates, choose

    measured: dict[tuple[str, str], list[Record]] = {}
    case = {**FORESEEN_CASE, "data": FURTHER}
    for record in records:
        if (record.schema, record.question, record.case) == (SCHEMA, FORESEEN, case):
            measured.setdefault((record.environment.machine, record.strategy), []).append(record)
    laws = {}
    for machine in {machine for machine, _ in measured}:
        own = [each for each in records if each.environment.machine == machine]
        run = candidates.pick(own, FORESEEN, FORESEEN_CASE, "")
        laws[machine] = choose.laws_of(candidates.candidates(run, FORESEEN, FORESEEN_CASE))
    known = 0
    within: list[float] = []
    passed: list[float] = []
    for (machine, name), trials in measured.items():
        needed = [held for each in trials if (held := value(each, "needed_memory")) is not None]
        samples = next((each.metrics.samples for each in trials if each.metrics.samples), None)
        predicted = laws[machine][name].at(samples) if name in laws[machine] and samples else None
        if len(needed) < TRIALS or predicted is None or predicted.low is None or predicted.high is None:
            continue  # too few trials, or the law gave no prediction
        known += 1
        within += [float(predicted.low <= each <= predicted.high) for each in needed]
        passed += [float(each > BEYOND * predicted.high) for each in needed]
    if not within:
        raise InputError(
            f"no trials to test the law of memory with; run `python -m loaders trial {FORESEEN} STRATEGY --size large "
            f"--case data={FURTHER}`, {TRIALS} times each"
        )
    said, count = f"four times the data: {known} of {len(measured)} strategies have a prediction", len(within)
    return [
        Count(f"memory is within the predicted interval, {said}", sum(within) / count, 0, count, "at least", 0.9),
        Count(f"memory exceeds {BEYOND} times the upper bound, {said}", sum(passed) / count, 0, count, "at most", 0),
    ]


def forked(records: Sequence[Record]) -> list[Count]:
    """Count the questions in which forked trials are shown to measure the same as fresh ones.

    Those whose published trials are fresh, because that is not shown, do not count.

    Raises
    ------
    InputError
        If no such trials are there.
    """
    from loaders import _registry

    starts_fresh = {name for name, each in _registry.questions().items() if each.fresh}
    found = [each for each in equivalence.judged(records) if each.question not in starts_fresh]
    if not found:
        raise InputError("no fresh and forked trials to compare; run `python -m loaders selftest --start`")
    counts = []
    for metric, figure in equivalence.FIGURES.items():
        if figure.is_judged:
            within = [float(metric in each.pooled and each.pooled[metric].verdict == "within") for each in found]
            beyond = [float(one.beyond(metric)) for each in found for one in each.strategies]
            words = f"fresh and forked trials, {figure.heading}"
            counts += [
                Count(f"{words}: a question's is shown to be the same", _mean(within), 0, len(within), "at least", 1),
                Count(f"{words}: a strategy's lies beyond its margin", _mean(beyond), 0, len(beyond), "at most", 0),
            ]
    failing = [float(one.fails_forked) for each in found for one in each.strategies]
    counts.append(Count("a strategy fails in forks only", _mean(failing), 0, len(failing), "at most", 0))
    return counts


REPORTED, WATCHED = "known_issues", {"data": "paths"}
"""The question and the case whose trials show whether a leak is found, and a level memory left alone."""

LEAKS = ("growing", "growing, in use")
LEVEL = ("flat", "plateau")

ENOUGH_TRIALS = 20


def copies(records: Sequence[Record]) -> list[Count]:
    """Count the trials in which torch's workers are found to copy a list of strings, and not an array of them.

    Raises
    ------
    InputError
        If there are too few.
    """
    counts = []
    for name, wanted, words in (
        ("torch_dataloader_list", LEAKS, "a list of strings: memory is found to grow"),
        ("torch_dataloader_array", LEVEL, "an array of strings: memory is found to stay level"),
    ):
        said = [
            record.metrics.memory_growth.verdict if record.metrics.memory_growth else record.status
            for record in records
            if (record.schema, record.question, record.strategy, record.case) == (SCHEMA, REPORTED, name, WATCHED)
        ]
        if len(said) < ENOUGH_TRIALS:
            raise InputError(
                f"{len(said)} trials of {name}, at least {ENOUGH_TRIALS} needed; run "
                f"`python -m loaders compare {REPORTED} --case data=paths --size full --rounds {ENOUGH_TRIALS}`"
            )
        found = [float(each in wanted) for each in said]
        counts.append(Count(f"torch's workers read {words}", _mean(found), 0, len(found), "at least", 0.95))
    return counts


def _mean(shares: Sequence[float]) -> float:
    return math.fsum(shares) / len(shares)


def pairing(records: Iterable[Record]) -> list[Count]:
    """Show what pairing by round gains: how much the times of a strategy and of its baseline vary together.

    Each comparison with enough rounds gives means over its strategies. Both are negative where what is paired lies too
    far apart in time to share anything.

    Raises
    ------
    InputError
        If there is no such comparison.
    """
    import numpy as np

    from loaders import _registry

    known = _registry.questions()
    correlations, gains = [], []
    for question, times in _times(records, alike=True):  # what makes all fresh ones slower is not shared by chance
        if question not in known or known[question].calibrates:
            continue
        baseline = times.pop(_registry.baseline(question).name, {})
        together = []
        for values in times.values():
            rounds = sorted(values.keys() & baseline.keys())
            one, other = (np.log([of[index] for index in rounds]) for of in (values, baseline))
            if len(rounds) >= LEAST_ROUNDS and np.ptp(one) and np.ptp(other):
                (own, shared), (_, its) = np.cov(one, other)
                together.append((shared / math.sqrt(own * its), 2 * shared / (own + its)))
        if together:
            correlations.append(math.fsum(each for each, _ in together) / len(together))
            gains.append(math.fsum(each for _, each in together) / len(together))
    if not correlations:
        raise InputError(f"no comparison of {LEAST_ROUNDS} rounds or more with its baseline")
    return [
        _with_interval("correlation of a strategy with its baseline within a round", correlations),
        _with_interval("share of a ratio's variance that pairing by round takes away", gains),
    ]


def _with_interval(what: str, values: Sequence[float]) -> Count:
    found = estimate(values, "linear")
    interval = (
        "" if found.low is None or found.high is None else f" (95 % interval {found.low:.0%} to {found.high:.0%})"
    )
    return _count(f"{what}{interval}", values, "at least", 0.0)


OWN = ("start", "copies")
"""The logs of experiments that have trials of their own: those of this machine, not the published ones."""

OF_ALL = ("replay", "law")
"""Experiments that read the logs of all the project's machines, each machine's run by itself: each question's answer is
of the machine that has measured most of it, and only one of them has trials of four times the data."""

EXPERIMENTS: Mapping[str, Callable[[Sequence[Record], int], list[Count]]] = {
    "simulation": lambda records, repetitions: simulation(noise(records), repetitions),
    "rounds": lambda records, repetitions: rounds_by_need(noise(records), repetitions),
    "checks": lambda records, repetitions: checks(noise(records), repetitions),
    "replay": lambda records, _: replayed(records),
    "law": lambda records, _: foreseen(records),
    "pairing": lambda records, _: pairing(records),
    "start": lambda records, _: forked(records),
    "copies": lambda records, _: copies(records),
}
"""In their order; those that may lack their trials come last."""


def experiment(name: str, sources: Sequence[Path], repetitions: int) -> Experiment:
    """Run an experiment with the noise or the answers of trial logs."""
    from loaders._trial import machine

    if name == "start":
        sources = [each.with_name(equivalence.NAME) for each in sources]
    records = [record for each in sources if each.exists() or name not in OWN for record in decoded(each)]
    counts = EXPERIMENTS[name](records, repetitions)
    named = ", ".join(f"{each.parent.name}/{each.name}" for each in sources)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return Experiment(name, started, machine.commit(), machine.processor(), named, counts)


def newest(path: Path, say: Callable[[str], None] = lambda _: None) -> list[Experiment]:
    """Return the last line of every experiment in a log."""
    return list({each.name: each for each in log.lines(path, msgspec.json.Decoder(Experiment).decode, say)}.values())


HEADINGS = ("what", "share", "wanted", "reached")


def line(count: Count) -> tuple[str, ...]:
    """Return the cells of a count under ``HEADINGS``; a share without an error was counted, not estimated."""
    counted = f"{round(count.share * count.repetitions)} of {count.repetitions}"
    return (
        count.what,
        f"{count.share:.1%} ± {count.error:.1%} of {count.repetitions}" if count.error else counted,
        f"{count.wanted} {count.target:.0%}",
        "yes" if count.is_reached else "no",
    )


def finding(experiments: Sequence[Experiment]) -> str:
    """Return how many counts reach their targets, and name those that do not."""
    counts = [count for each in experiments for count in each.counts]
    missed = [count.what for count in counts if not count.is_reached]
    reached = f"{len(counts) - len(missed)} of {len(counts)} counts reach their targets"
    return f"{reached}; these do not: {'; '.join(missed)}" if missed else reached


PAGE_HEADINGS = (*HEADINGS, "from")


def lines(experiments: Iterable[Experiment]) -> list[tuple[str, ...]]:
    """Return the cells under ``PAGE_HEADINGS``, a line for each count."""
    return [
        (*line(count), f"{each.name}, {each.source}, commit {each.commit[:8] or 'unknown'}, {each.started[:10]}")
        for each in experiments
        for count in each.counts
    ]
