from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from loaders._check.judge import LOOKS, MOST_TRIALS, UNFAILING, judge
from loaders._check.run import GIVE_UP_AFTER, Outcome, Subject, run

MIB = 2**20


class Clock:
    """Advances by one second with each trial."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran: list[tuple[str, str, int]] = []

    def __call__(self) -> float:
        return self.now

    def trial(
        self, name: str, side: str, time: float, peak: float = 10, **record: Any
    ) -> Callable[[int], dict[str, Any]]:
        def ran(seed: int) -> dict[str, Any]:
            self.now += 1
            self.ran.append((name, side, seed))
            metrics = {"epoch_time": time, "peak_memory": int(peak * MIB)}
            return {"status": "ok", "message": "", "metrics": metrics, **record}

        return ran

    def subject(self, name: str, a: float, b: float, **of_b: Any) -> Subject:
        return Subject(name, "epoch_time", self.trial(name, "a", a), self.trial(name, "b", b, **of_b))


def _run(clock: Clock, *subjects: Subject, seconds: float = 1e6) -> dict[str, Outcome]:
    return {each.name: each for each in run(subjects, seconds, clock=clock)}


def test_blocks_are_a_b_b_a_and_both_sides_draw_alike() -> None:
    clock = Clock()
    found = _run(clock, clock.subject("x", 1.0, 1.2))
    assert [side for _, side, _ in clock.ran] == list("abba") * LOOKS[0], "slower: nothing more to ask"
    assert [seed for _, _, seed in clock.ran] == [index // 4 + 1 for index in range(4 * LOOKS[0])]
    assert found["x"].time
    assert found["x"].time.verdict == "slower"
    assert found["x"].is_regression
    assert found["x"].memory
    assert found["x"].memory.verdict == "no difference"


def test_no_difference_gives_way_to_one_that_a_later_look_confirms() -> None:
    """3 % slower is within 5 % at the first look, and beyond 2 % at a later one: memory asks for the blocks between."""
    clock = Clock()
    usual = clock.subject("x", 1.0, 1.0)

    def slower(seed: int) -> dict[str, Any]:
        record = usual.b(seed)
        record["metrics"]["epoch_time"] = 1.03 * (1.004 if seed % 2 else 1 / 1.004)
        record["metrics"]["peak_memory"] = (10 if seed % 2 else 18) * MIB
        return record

    subject = msgspec.structs.replace(usual, b=slower)
    first = _run(clock, subject, seconds=4 * LOOKS[0])["x"].time
    assert first
    assert (first.verdict, first.blocks) == ("no difference", LOOKS[0])
    found = _run(clock, subject)["x"].time
    assert found
    assert found.verdict == "slower"
    assert found.blocks in LOOKS[1:]
    same = _run(clock, usual)["x"].time
    assert same
    assert (same.verdict, same.blocks) == ("no difference", LOOKS[0]), "and stays where none does"


def _in_turn(clock: Clock, name: str, a: float, b: float, **of_b: Any) -> Subject:
    whole = clock.subject(name, a, b, **of_b)
    return msgspec.structs.replace(whole, in_turn=lambda seed: [whole.a(seed), whole.b(seed)])


def test_a_block_of_trials_in_turn_is_one_of_each_side() -> None:
    clock = Clock()
    found = _run(clock, _in_turn(clock, "x", 1.0, 1.2))["x"]
    assert [side for _, side, _ in clock.ran] == list("ab") * LOOKS[0]
    assert found.time
    assert (found.time.verdict, found.time.blocks) == ("slower", LOOKS[0])
    assert (found.failures.of_a, found.failures.of_b) == (LOOKS[0], LOOKS[0])


def test_failures_are_counted_in_trials_whatever_a_block_is() -> None:
    clock = Clock()
    found = _run(clock, _in_turn(clock, "x", 1.0, 1.0, status="failed"))["x"]
    assert (found.failures.b, found.failures.of_b) == (len(clock.ran) // 2, len(clock.ran) // 2)
    assert found.broken
    assert found.failures.of_b < 2 * LOOKS[0], "fewer blocks would show it if a block were four trials"
    clock = Clock()
    _run(clock, _in_turn(clock, "x", 1.0, 1.0))
    assert len(clock.ran) // 2 == min(each for each in LOOKS if each >= UNFAILING), "until it counts as not failing"


def test_trials_in_turn_go_on_until_failures_are_told_and_figures_rest_on_no_more_blocks_for_it() -> None:
    clock = Clock()
    whole = clock.subject("x", 1.0, 1.0)
    fails = _now_and_then(whole.b, set(range(0, 1000, 6)))
    found = _run(clock, msgspec.structs.replace(whole, in_turn=lambda seed: [whole.a(seed), fails(seed)]))["x"]
    assert found.broken
    assert LOOKS[-1] < found.failures.of_b <= MOST_TRIALS
    assert found.time
    assert found.time.blocks == LOOKS[0], "a verdict that is reached stays"
    clock = Clock()
    open_ = _noisy(clock, "x", 0.5)
    fails = _now_and_then(open_.b, set(range(0, 1000, 6)))
    found = _run(clock, msgspec.structs.replace(open_, in_turn=lambda seed: [open_.a(seed), fails(seed)]))["x"]
    assert found.failures.of_b > LOOKS[-1]
    assert found.time
    assert found.time.blocks == max(each for each in LOOKS if each <= LOOKS[-1] - LOOKS[-1] // 6)


def test_what_is_undecided_comes_before_what_might_only_fail_more_often() -> None:
    clock, times = Clock(), iter([0.97, 1.04] * 100)
    noisy, still = clock.trial("noisy", "b", 1.0), clock.trial("noisy", "a", 1.0)

    def wobbling(seed: int) -> dict[str, Any]:
        record = noisy(seed)
        record["metrics"]["epoch_time"] = next(times)
        return record

    undecided = Subject("noisy", "epoch_time", still, wobbling, in_turn=lambda seed: [still(seed), wobbling(seed)])
    # Time for the first look at both, and for one of them to go on to its fifth.
    seconds = 2 * (LOOKS[0] + LOOKS[4])
    found = _run(clock, undecided, _in_turn(clock, "clear", 1.0, 1.0), seconds=seconds)
    assert found["clear"].time
    assert found["noisy"].time
    assert (found["clear"].time.verdict, found["noisy"].time.verdict) == ("no difference", "undecided")
    assert found["noisy"].time.blocks > found["clear"].time.blocks


def test_memory_of_worker_processes_counts() -> None:
    clock = Clock()
    tree = {"epoch_time": 1.0, "peak_memory": 10 * MIB, "peak_memory_tree": 90 * MIB}
    found = _run(
        clock,
        clock.subject("known", 1.0, 1.0, metrics={**tree, "anonymous_memory": 90 * MIB}),
        clock.subject("unread", 1.0, 1.0, metrics={**tree, "anonymous_memory": 90 * MIB, "tree_readings": 2}),
        clock.subject("untold", 1.0, 1.0, metrics=tree),
    )
    assert found["known"].memory
    assert found["known"].memory.verdict == "fatter"
    assert (found["unread"].memory, found["untold"].memory) == (None, None)


def test_what_is_decided_is_not_measured_on_and_the_rest_is() -> None:
    clock = Clock()
    times = iter([1.0, 1.6, 0.5, 1.3, 0.8] * 100)
    noisy = clock.trial("noisy", "b", 1.0)

    def wobbling(seed: int) -> dict[str, Any]:
        record = noisy(seed)
        record["metrics"]["epoch_time"] = next(times)
        return record

    open_ = Subject("noisy", "epoch_time", clock.trial("noisy", "a", 1.0), wobbling)
    found = _run(clock, open_, clock.subject("clear", 1.0, 1.5))
    assert found["clear"].time
    assert found["noisy"].time
    assert (found["clear"].time.blocks, found["noisy"].time.blocks) == (LOOKS[0], LOOKS[-1])
    assert found["noisy"].time.verdict == "undecided"


def test_time_up_leaves_what_is_there() -> None:
    clock = Clock()
    _run(clock, clock.subject("x", 1.0, 1.5), clock.subject("y", 1.0, 1.5), seconds=5)
    assert len(clock.ran) == 8
    none = _run(Clock(), Clock().subject("x", 1.0, 1.5), seconds=0)
    assert none["x"].message == "not measured: the time was up"
    assert not none["x"].is_regression


def test_an_interruption_has_told_what_is_there() -> None:
    clock = Clock()
    good, told = clock.trial("x", "b", 1.5), list[list[Outcome]]()

    def stopped(seed: int) -> dict[str, Any]:
        if len(clock.ran) == 10:
            raise KeyboardInterrupt
        return good(seed)

    with pytest.raises(KeyboardInterrupt):
        run([Subject("x", "epoch_time", clock.trial("x", "a", 1.0), stopped)], 1e6, told=told.append, clock=clock)
    (found,) = told[-1]
    assert found.time
    assert (found.time.blocks, found.time.verdict) == (2, "undecided")


def test_what_always_fails_on_the_new_side_only_is_a_regression() -> None:
    clock = Clock()
    failing: dict[str, Any] = {"status": "wrong_output", "message": "delivered 3 samples"}
    found = _run(clock, clock.subject("x", 1.0, 1.0, **failing))
    assert (found["x"].is_regression, found["x"].message) == (True, "B wrong output: delivered 3 samples")
    assert len(clock.ran) == 4 * LOOKS[0], "a few blocks"
    assert (found["x"].failures.a, found["x"].failures.b, found["x"].failures.of_b) == (0, 8, 8)


def test_what_always_fails_on_the_old_side_is_given_up_and_is_none() -> None:
    clock = Clock()
    failing: dict[str, Any] = {"status": "failed", "message": "ValueError"}
    both = Subject("y", "epoch_time", clock.trial("y", "a", 1.0, **failing), clock.trial("y", "b", 1.0, **failing))
    mended = Subject("z", "epoch_time", clock.trial("z", "a", 1.0, **failing), clock.trial("z", "b", 1.0))
    found = _run(clock, both, mended)
    assert not found["y"].is_regression
    assert not found["z"].is_regression
    assert found["y"].message == "A failed: ValueError; B failed: ValueError"
    assert len(clock.ran) == 2 * 4 * 2


def _now_and_then(good: Callable[[int], dict[str, Any]], which: set[int]) -> Callable[[int], dict[str, Any]]:
    """Fail in those calls."""
    calls = iter(range(10**6))

    def ran(seed: int) -> dict[str, Any]:
        record = good(seed)
        return {**record, "status": "timed_out"} if next(calls) in which else record

    return ran


LACKING: dict[str, Any] = {"status": "skipped", "message": "torch is not installed"}


def test_what_neither_side_runs_here_is_run_once_a_side_and_asks_nothing() -> None:
    clock = Clock()
    both = [
        Subject(name, "epoch_time", clock.trial(name, "a", 1, **LACKING), clock.trial(name, "b", 1, **LACKING))
        for name in ("x", "y", "z")
    ]
    found = _run(clock, *both, _noisy(clock, "there", 0.02))
    assert found["x"] == Outcome("x", None, None, skipped="torch is not installed")
    assert [side for name, side, _ in clock.ran if name == "x"] == ["a", "b"]
    assert found["there"].time == _run(Clock(), _noisy(Clock(), "there", 0.02))["there"].time


def test_what_the_new_side_alone_skips_is_a_regression() -> None:
    clock = Clock()
    found = _run(clock, clock.subject("x", 1.0, 1.0, **LACKING))
    assert (found["x"].broken, found["x"].skipped) == (True, "")


DIFFERING = "torch 2.8 in A and none in B"


@pytest.mark.parametrize("side", ["a", "b"])
def test_what_only_one_sides_environment_can_run_is_skipped(side: str) -> None:
    clock = Clock()
    records: dict[str, dict[str, Any]] = {"a": {}, "b": {}, side: LACKING}
    a, b = (clock.trial("x", each, 1.0, **records[each]) for each in "ab")
    found = _run(clock, Subject("x", "epoch_time", a, b, environments=DIFFERING))["x"]
    assert (found.is_regression, found.skipped) == (False, f"on {side.upper()} alone: torch is not installed")
    assert found.environments == DIFFERING
    assert [each for _, each, _ in clock.ran] == ["a", "b"]


def test_what_the_new_side_skips_for_another_reason_is_a_regression_whatever_the_environments() -> None:
    clock = Clock()
    whole = clock.subject("x", 1.0, 1.0, status="skipped", message="too many cores")
    assert _run(clock, msgspec.structs.replace(whole, environments=DIFFERING))["x"].broken


def test_failures_on_both_sides_are_no_regression_and_cost_themselves_alone() -> None:
    clock = Clock()
    a, b = (_now_and_then(clock.trial("x", side, 1.0), {1, 4, 9}) for side in "ab")
    found = _run(clock, Subject("x", "epoch_time", a, b))
    assert found["x"].time
    assert found["x"].time.verdict == "no difference"
    assert (found["x"].is_regression, found["x"].message) == (False, "A timed out; B timed out")
    enough = min(each for each in LOOKS if 2 * each >= UNFAILING)
    assert len(clock.ran) == 4 * enough, "decided, and failing alike in as many trials as tell"


def test_two_failures_on_one_side_are_chance_until_shown_otherwise() -> None:
    clock = Clock()
    twice = Subject("x", "epoch_time", clock.trial("x", "a", 1.0), _now_and_then(clock.trial("x", "b", 1.0), {1, 9}))
    found = _run(clock, twice)
    assert not found["x"].is_regression
    assert found["x"].failures.b == 2
    often = _now_and_then(clock.trial("x", "b", 1.0), set(range(0, 1000, 4)))
    found = _run(clock, Subject("x", "epoch_time", clock.trial("x", "a", 1.0), often))
    assert found["x"].broken


def test_a_time_that_one_side_lacks_is_asked_of_neither() -> None:
    clock = Clock()
    old = clock.trial("x", "a", 2.0)
    both: dict[str, Any] = {"metrics": {"epoch_time": 2.0, "steady_time": 1.0, "peak_memory": 10 * MIB}}
    found = run([Subject("x", "steady_time", old, clock.trial("x", "b", 1.0, **both))], 1e6, clock=clock)[0]
    assert found.time
    assert (found.time.verdict, found.timed_by) == ("no difference", "epoch_time")
    own = run([Subject("x", "steady_time", clock.trial("x", "a", 9, **both), clock.trial("x", "b", 1, **both))], 1e6)[0]
    assert own.timed_by == ""
    assert own.time
    assert own.time.a == pytest.approx(1.0)


def test_a_round_begins_once_for_all_and_the_outcome_says_how_trials_started() -> None:
    clock = Clock()
    begun: list[int] = []
    forked = msgspec.structs.replace(clock.subject("x", 1.0, 1.5), start="forked")
    found = run([forked, clock.subject("y", 1.0, 1.5)], 1e6, begin=lambda _: begun.append(len(clock.ran)), clock=clock)
    assert begun == [8 * each for each in range(LOOKS[0])]
    assert [each.start for each in found] == ["forked", "fresh"]


def test_a_round_that_cannot_be_run_is_left_out() -> None:
    clock = Clock()
    begun: list[int] = []

    def begin(names: Sequence[str]) -> str:
        begun.append(len(clock.ran))
        return "no memory" if len(begun) in (1, 3) else ""

    forked = msgspec.structs.replace(clock.subject("x", 1.0, 1.5), start="forked")
    (found,) = run([forked], 1e6, begin=begin, clock=clock)
    assert found.time
    assert (found.time.verdict, found.time.blocks) == ("slower", LOOKS[0])
    assert begun == [0, 0, 4, 4, 8, 12]


def test_what_needs_no_fork_is_measured_in_a_round_in_which_none_can_be_made() -> None:
    clock = Clock()
    both = [clock.subject("fresh", 1.0, 1.5), msgspec.structs.replace(clock.subject("x", 1.0, 1.5), start="forked")]
    fresh, forked = run(both, 100, begin=lambda _: "no memory", clock=clock)
    assert fresh.time
    assert fresh.time.verdict == "slower"
    assert forked.message == "not measured: no memory"


def test_rounds_that_can_never_be_run_end_the_check() -> None:
    clock = Clock()
    begun: list[str] = []

    def begin(names: Sequence[str]) -> str:
        begun.extend(names)
        return "no memory"

    forked = msgspec.structs.replace(clock.subject("x", 1.0, 1.5), start="forked")
    (found,) = run([forked], 1e6, begin=begin, clock=clock)
    assert (found.message, clock.ran, begun) == ("not measured: no memory", [], ["x"] * GIVE_UP_AFTER)


def _noisy(clock: Clock, name: str, spread: float, seconds: float = 1.0) -> Subject:
    random = np.random.default_rng(sum(map(ord, name)))

    def side(letter: str) -> Callable[[int], dict[str, Any]]:
        quiet = clock.trial(name, letter, 1.0)

        def ran(seed: int) -> dict[str, Any]:
            record = quiet(seed)
            clock.now += seconds - 1
            record["metrics"]["epoch_time"] = float(np.exp(random.normal(0, spread)))
            return record

        return ran

    return Subject(name, "epoch_time", side("a"), side("b"))


def test_time_that_cannot_decide_a_strategy_goes_to_those_that_it_can() -> None:
    clock = Clock()
    hopeless = [_noisy(clock, f"noisy {each}", 0.5, seconds=4.0) for each in range(3)]
    near = [_noisy(clock, f"near {each}", 0.02) for each in range(3)]
    found = _run(clock, *hopeless, *near, seconds=4 * LOOKS[0] * 15 + 4 * 3 * 20)
    names = [name for name, *_ in clock.ran]
    last = max(index for index, name in enumerate(names) if "near" in name)
    until = Counter(name for name in names[:last] if "noisy" in name)
    assert set(until.values()) == {4 * LOOKS[0]}, "they have the blocks that tell their spread, and wait"
    assert "noisy" in names[-1], "which leaves time for the nearest of the others"
    assert [found[f"near {each}"].time.verdict for each in range(3)] == ["no difference"] * 3  # type: ignore[union-attr]


def test_too_little_time_for_all_decides_those_that_it_reaches() -> None:
    clock = Clock()
    slow = [_noisy(clock, f"slow {each}", 0.001, seconds=8.0) for each in range(2)]
    quick = [_noisy(clock, f"quick {each}", 0.001) for each in range(6)]
    one = 4 * (6 * 1 + 2 * 8)
    found = _run(clock, *slow, *quick, seconds=one + (LOOKS[0] - 1) * 4 * 7)
    assert [found[f"quick {each}"].time.verdict for each in range(6)] == ["no difference"] * 6  # type: ignore[union-attr]
    assert [found[f"slow {each}"].time.verdict for each in range(2)] == ["undecided"] * 2  # type: ignore[union-attr]


def test_where_time_is_short_for_all_some_are_decided() -> None:
    """Thirty strategies, each of which needs a dozen blocks, and time for five each: some are measured to the end."""
    decided = 0
    for check in "abcdefgh":
        clock = Clock()
        found = _run(clock, *(_noisy(clock, f"{check}{each}", 0.05) for each in range(30)), seconds=4 * 30 * 5)
        verdicts = [each.time.verdict for each in found.values() if each.time]
        assert len(verdicts) == 30
        decided += verdicts.count("no difference")
    assert decided >= 8 * 2, "4.5 of a check on average, by chance 1 to 8; none if all were measured equally often"


def test_first_blocks_take_half_of_the_time_at_most() -> None:
    """Of a hundred strategies, for which there is time for one block each, some are decided."""
    clock = Clock()
    begun: list[list[str]] = []
    subjects = [_noisy(clock, f"{each}", 0.01) for each in range(100)]
    found = run(subjects, 400, begin=lambda names: begun.append(list(names)), clock=clock)
    assert sum(each.time is not None for each in found) == 50
    assert sum(each.time is not None and each.time.verdict == "no difference" for each in found) >= 10
    assert [len(each) for each in begun[:2]] == [100, 16]
    assert any(each.message == "not measured: the time was up" for each in found)


def test_time_that_is_left_goes_to_those_that_have_not_begun() -> None:
    """Those that have begun cannot be run here, and need none of it."""
    clock = Clock()
    begun: list[list[str]] = []
    subjects = [
        Subject(str(each), "epoch_time", clock.trial("x", "a", 1.0, **LACKING), clock.trial("x", "b", 1.0, **LACKING))
        for each in range(10)
    ]
    found = run(subjects, 10, begin=lambda names: begun.append(list(names)), clock=clock)
    assert [len(each) for each in begun] == [10, 1, 1, 1]
    assert sum(bool(each.skipped) for each in found) == 5


def test_a_strategy_waits_at_looks_alone() -> None:
    clock = Clock()
    found = _run(clock, *(_noisy(clock, str(each), 0.02 * (each + 1)) for each in range(5)), seconds=400)
    assert all(each.time and each.time.blocks in LOOKS for each in found.values())
    ends = [count // 4 in LOOKS for count in Counter(name for name, _, _ in clock.ran).values()]
    assert ends.count(False) <= 1, "only what was under way when the time was up"


def test_the_last_strategy_is_measured_until_the_time_is_up() -> None:
    clock = Clock()
    found = _run(clock, _noisy(clock, "noisy", 0.5), seconds=40)
    assert found["noisy"].time
    assert len(clock.ran) == 4 * 10
    assert found["noisy"].time.blocks == 8, "the last look: one more would have its own share of false alarms"


def test_apart_each_is_judged_by_its_own_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def noted(figure: Any, blocks: Any, questions: int, others: Any = ()) -> Any:
        seen.append(len(others))
        return judge(figure, blocks, questions, others)

    monkeypatch.setattr("loaders._check.run.judge", noted)
    for apart, most in ((False, 2), (True, 0)):
        clock = Clock()
        seen.clear()
        run([clock.subject(name, 1.0, 1.5) for name in "xyz"], 1e6, apart=apart, clock=clock)
        assert max(seen) == most


def test_a_verdict_that_was_reached_is_not_lost_to_a_further_block() -> None:
    """A mean of five blocks leaves out two, and its interval is twice as wide as that of four."""
    clock, random = Clock(), np.random.default_rng(1)

    def side(letter: str, time: float) -> Callable[[int], dict[str, Any]]:
        quiet = clock.trial("x", letter, time)

        def ran(seed: int) -> dict[str, Any]:
            record = quiet(seed)
            record["metrics"]["epoch_time"] *= float(np.exp(random.normal(0, 0.01)))
            record["metrics"]["peak_memory"] = int(100 * MIB * np.exp(random.normal(0, 0.5)))
            return record

        return ran

    subject = Subject("x", "epoch_time", side("a", 1.0), side("b", 1.2))
    for blocks in range(LOOKS[0], 8):
        clock.now, clock.ran[:] = 0.0, []
        found = _run(clock, subject, seconds=4 * blocks)["x"]
        assert len(clock.ran) == 4 * blocks
        assert found.memory
        assert found.memory.verdict == "undecided"
        assert found.time
        assert (found.time.verdict, found.time.blocks) == ("slower", LOOKS[0])
        assert found.is_regression


def test_what_an_interruption_before_the_first_block_left_unmeasured_is_named() -> None:
    clock, told = Clock(), list[list[Outcome]]()

    def interrupted(names: Sequence[str]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([clock.subject("x", 1.0, 1.0)], 1e6, clock=clock, begin=interrupted, told=told.append)
    assert [each.name for each in told[-1]] == ["x"]
    assert told[-1][0].message == "not measured: none of its blocks was run"
    late = run([clock.subject("x", 1.0, 1.0)], 0.0, clock=clock)
    assert late[0].message == "not measured: the time was up"


def test_a_verdict_on_memory_stays_though_a_later_trial_has_another_time() -> None:
    clock, count = Clock(), [0]

    def b(seed: int) -> dict[str, Any]:
        record = clock.trial("x", "b", 1.0, 90.0)(seed)
        count[0] += 1
        record["metrics"]["peak_memory"] = int((90 if count[0] <= 2 * LOOKS[0] else 10) * MIB)
        if count[0] < 2 * LOOKS[0] + 2:
            record["metrics"]["steady_time"] = 1.0
        return record

    def a(seed: int) -> dict[str, Any]:
        record = clock.trial("x", "a", 1.0, 10.0)(seed)
        return {**record, "metrics": {**record["metrics"], "steady_time": 1.0 + 0.3 * (seed % 2)}}

    found = _run(clock, Subject("x", "steady_time", a, b), seconds=4 * 7)["x"]
    assert found.memory
    assert (found.memory.verdict, found.memory.blocks) == ("fatter", LOOKS[0])
    assert found.timed_by
