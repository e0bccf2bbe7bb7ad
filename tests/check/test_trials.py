"""How both sides run their trials, with sides that are simulated."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from loaders._check import partners, trials
from loaders._check.serve import Asked, Order
from loaders._check.sides import Side
from loaders._errors import InputError
from loaders._trial import turns

MIB = 2**20


class Ordered:
    """A side that answers every order with a record, and notes the orders."""

    def __init__(self, **record: Any) -> None:
        self.orders: list[Order] = []
        self.record = record

    def trial(self, order: Order) -> dict[str, Any]:
        self.orders.append(order)
        metrics = {"epoch_time": 0.5, "steady_time": 0.1, "samples": 40, "peak_memory": MIB}
        return {"status": "ok", "message": "", "metrics": metrics, **self.record}


def _pair(a: Ordered, b: Ordered) -> trials._Pair:
    return trials._Pair([cast(trials.Served, each) for each in (a, b)], [["batching", "x"]] * 2, forked=True)


def test_each_side_is_proven_by_its_first_trial_and_now_and_then_again() -> None:
    a, b = Ordered(), Ordered()
    pair = _pair(a, b)
    for seed in range(1, 9):
        for run in (pair.a, pair.b, pair.b, pair.a):
            assert run(seed)["status"] == "ok"
    assert [each.checked for each in a.orders] == [True, *[False] * 7] * 2
    assert [each.checked for each in b.orders] == [each.checked for each in a.orders]
    assert a.orders == b.orders, "the same trials on both sides"
    assert all(each.forked for each in a.orders)


def test_a_side_that_delivers_the_wrong_data_is_never_timed() -> None:
    wrong = Ordered(status="wrong_output", message="delivered 3")
    pair = _pair(Ordered(), wrong)
    assert [pair.b(seed)["status"] for seed in range(12)] == ["wrong_output"] * 12
    assert all(each.checked for each in wrong.orders)


def test_once_a_trial_has_delivered_the_wrong_data_all_are_checked() -> None:
    """Those that nobody checks would count as trials that do not fail."""
    a, b = Ordered(), Ordered()
    pair = _pair(a, b)
    for seed in (1, 2):
        pair.a(seed)
        pair.b(seed)
    assert not a.orders[-1].checked
    b.record = {"status": "wrong_output", "message": "delivered other labels"}
    pair.b(3)
    for seed in range(4, 9):
        pair.a(seed)
        pair.b(seed)
    assert all(each.checked for each in (*a.orders[3:], *b.orders[3:])), "on both sides"


def test_a_side_that_fails_its_proof_may_prove_itself_later() -> None:
    side = Ordered(status="timed_out")
    pair = _pair(side, Ordered())
    pair.a(1)
    side.record = {}
    assert pair.a(1)["status"] == "ok"
    assert [each.checked for each in side.orders] == [True, True]
    pair.a(2)
    assert not side.orders[-1].checked


def test_a_trial_that_is_not_checked_must_deliver_as_many_samples() -> None:
    side = Ordered()
    pair = _pair(side, Ordered())
    assert pair.a(1)["status"] == "ok"
    side.record = {"metrics": {"steady_time": 0.1, "samples": 39}}
    found = pair.a(1)
    assert found["status"] == "wrong_output"
    assert found["message"] == "delivered 39 samples, and 40 when checked"


@pytest.mark.parametrize(
    ("question", "arguments"),
    [("batching", ["--case", "data=x4"]), ("caching", ["--case", "data=x4"]), ("selection", []), ("resize", [])],
)
def test_blocks_use_a_quarter_of_the_data_where_the_default_is_all(question: str, arguments: list[str]) -> None:
    from loaders import _registry

    assert trials._amount(_registry.find_question(question)) == arguments
    assert trials._amount(None) == []


@dataclass
class Turning:
    """A side whose trial takes turns that are given to it, and whose process may have ended."""

    name: str
    log: list[str]
    answers: list[dict[str, Any] | None] = field(default_factory=list)

    def answer(self) -> dict[str, Any] | None:
        return self.answers.pop(0)

    def replaced(self) -> dict[str, Any]:
        self.log.append(f"{self.name} anew")
        return {"status": "failed", "message": f"{self.name} ended"}


def _turning(monkeypatch: pytest.MonkeyPatch, a: list[Any], b: list[Any]) -> tuple[trials._Pair, list[str]]:
    log: list[str] = []
    sides = [Turning("A", log, a), Turning("B", log, b)]

    def in_turn(both: list[Turning], orders: list[Order]) -> list[dict[str, Any] | None]:
        log.append("".join(side.name for side in both) + "!" * orders[0].checked)
        return [side.answer() for side in both]

    monkeypatch.setattr(trials, "_in_turn", in_turn)
    found = trials._Pair([cast(trials.Served, each) for each in sides], [["batching", "x"]] * 2, forked=True)
    return found, log


class Playing:
    """A side whose trial takes turns in a thread, and may hang in its second one."""

    def __init__(self, name: str, *, hangs: bool = False) -> None:
        self.name, self._hangs, self.released = name, hangs, threading.Event()
        self.answering, self._answers = os.pipe()

    def tell(self, order: Order) -> None:
        def play() -> None:
            with turns.taken(Path(order.turns)) as ask:
                while ask(0.01, 1):
                    if self._hangs:
                        self.released.wait()
            os.write(self._answers, b"x")

        self.thread = threading.Thread(target=play)
        self.thread.start()

    def ends(self, seconds: float) -> bool:
        self.thread.join(seconds)
        return not self.thread.is_alive()


@pytest.mark.skipif(not turns.AVAILABLE, reason="this system has no named pipes")
@pytest.mark.parametrize("hanging", [0, 1])
def test_a_trial_that_hangs_does_not_take_the_other_one_down(monkeypatch: pytest.MonkeyPatch, hanging: int) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    sides = [Playing("A", hangs=hanging == 0), Playing("B", hangs=hanging == 1)]
    waited = list[bool]()

    def answer(self: Playing) -> dict[str, Any]:
        """The one that hangs is released when the other one has ended, which must not depend on it."""
        waited.append(sides[1 - hanging].ends(20))
        sides[hanging].released.set()
        return {"ended": self.ends(20)}

    monkeypatch.setattr(Playing, "answer", answer, raising=False)
    order = Order(["batching", "x"], forked=True, checked=False)
    records = trials._in_turn([cast(trials.Served, each) for each in sides], [order, order])
    assert waited == [True, True]
    assert records == [{"ended": True}] * 2


@dataclass
class Taken:
    """The turns that a trial has taken."""

    times: list[float]
    epochs: int


GOOD: dict[str, Any] = {"status": "ok", "message": "", "metrics": {"steady_time": 0.1, "samples": 40}}


@pytest.mark.parametrize(("ran", "expected"), [(6, [0.2, 0.4]), (3, [0.1, 0.1])])
def test_trials_in_turn_are_timed_by_their_turns(
    monkeypatch: pytest.MonkeyPatch, ran: int, expected: list[float]
) -> None:
    """A trial that was run once more, without turns, has other epochs: then neither is."""
    records = [{**GOOD, "metrics": {**GOOD["metrics"], "steady_epochs": count}} for count in (2, ran)]
    given = [Taken([0.2, 0.2], 2), Taken([0.4, 0.4, 0.5], 6)]
    monkeypatch.setattr(partners, "play", lambda _: ([*records], given))
    found = trials._in_turn([], [])
    assert [each["metrics"]["steady_time"] for each in found if each] == pytest.approx(expected)
    assert [each["metrics"]["samples"] for each in found if each] == [40, 40]
    records[1:] = [None]  # type: ignore[list-item]
    assert trials._in_turn([], []) == records


def test_both_sides_are_first_in_turn_and_checked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, log = _turning(monkeypatch, [GOOD] * 8, [{**GOOD, "seed": 1}] * 8)
    for seed in range(1, 9):
        a, b = pair.in_turn(seed)
        assert ("seed" in a, "seed" in b) == (False, True), "A's record comes first whoever was first"
    assert log == ["AB!", "BA", "AB", "BA", "AB!", "BA", "AB", "BA"]


def test_trials_in_turn_are_held_to_what_was_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {**GOOD, "metrics": {"steady_time": 0.1, "samples": 39}}
    pair, _ = _turning(monkeypatch, [GOOD, GOOD], [GOOD, fewer])
    assert [each["status"] for each in pair.in_turn(1)] == ["ok", "ok"]
    assert [each["status"] for each in pair.in_turn(2)] == ["ok", "wrong_output"]


def test_a_pair_runs_once_more_if_a_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, log = _turning(monkeypatch, [GOOD, GOOD], [None, GOOD])
    assert [each["status"] for each in pair.in_turn(1)] == ["ok", "ok"]
    assert log == ["AB!", "B anew", "AB!"]
    pair, log = _turning(monkeypatch, [GOOD, GOOD], [None, None])
    a, b = pair.in_turn(1)
    assert (a["status"], b["message"]) == ("ok", "B ended")
    assert log == ["AB!", "B anew"] * 2, "it can run the next one"


@pytest.mark.skipif(not turns.AVAILABLE, reason="this system has no named pipes")
@pytest.mark.parametrize(("older", "question"), [(True, "batching"), (False, "selection"), (False, "batching")])
def test_epochs_take_turns_where_both_sides_can_and_they_rank_the_question(
    tmp_path: Path, older: bool, question: str
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    a, b = Fake(tmp_path / "a", name="A"), Fake(tmp_path / "b", name="B", turns=not older)
    manager, _ = _running(tmp_path, a, b)
    with manager as found:
        assert (found.of(question, "x").in_turn is not None) == (not older and question == "batching")


ANSWERS = """
import json, os, sys, time
print("said", file=sys.stderr)
json.loads(sys.stdin.readline())
print(json.dumps({{"forks": {forks}, "reason": {reason!r}, "by_group": {by_group}, "turns": {turns}}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    with open({log!r}, "a") as file:
        print(request["type"], *request.get("arguments", []), *request.get("names", []), {name!r}, file=file)
    {does}
    print(json.dumps({{"status": "ok", "metrics": {{}}}}), flush=True)
"""


class Fake:
    """A side whose process is a script."""

    def __init__(
        self,
        root: Path,
        does: str = "pass",
        forks: tuple[str, ...] = (),
        reason: str = "",
        name: str = "fake",
        *,
        by_group: bool = True,
        turns: bool = True,
    ) -> None:
        self.name, self.root, self.log = name, root, root / "log"
        self.variables = dict(os.environ)
        script = root / f"{name}.py"
        script.write_text(
            ANSWERS.format(
                forks=list(forks),
                reason=reason,
                log=str(self.log),
                does=does,
                name=name,
                by_group=by_group,
                turns=turns,
            )
        )
        self.command = [sys.executable, str(script)]

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


def _served(side: Fake) -> trials.Served:
    served = trials.Served(cast(Side, side), Asked({"batching": ["x"]}, "tiny"))
    served.start()
    return served


ORDER = Order(["batching", "x"], forked=True, checked=False)


def test_a_process_that_ends_is_started_once_more(tmp_path: Path) -> None:
    mark = tmp_path / "died"
    side = Fake(tmp_path, f"if not os.path.exists({str(mark)!r}): open({str(mark)!r}, 'w'); os._exit(3)")
    with contextlib.closing(_Closing(_served(side))) as closing:
        assert closing.served.trial(ORDER)["status"] == "ok"
    assert len(side.lines) == 2


def test_a_process_that_ends_again_makes_a_failed_trial_and_the_next_one_runs(tmp_path: Path) -> None:
    mark = tmp_path / "healed"
    side = Fake(tmp_path, f"if not os.path.exists({str(mark)!r}): os._exit(3)")
    with contextlib.closing(_Closing(_served(side))) as closing:
        record = closing.served.trial(ORDER)
        assert record["status"] == "failed"
        assert record["message"] == "the process that runs the trials of fake ended: exit code 3: said"
        mark.touch()
        assert closing.served.trial(ORDER)["status"] == "ok"


class _Closing:
    def __init__(self, served: trials.Served) -> None:
        self.served = served

    def close(self) -> None:
        self.served.end()


def test_a_process_is_ended_while_it_runs_a_trial(tmp_path: Path) -> None:
    served = _served(Fake(tmp_path, "time.sleep(100)"))
    process = psutil.Process(served._process.pid)
    served.tell(ORDER)
    begun = time.monotonic()
    served.end()
    assert time.monotonic() - begun < trials.GRACE
    assert not process.is_running()


def _running(tmp_path: Path, *sides: Fake, fresh: bool = False) -> Any:
    said: list[str] = []
    manager = trials.trials([cast(Side, each) for each in sides], {"batching": ["x"]}, "tiny", said.append, fresh=fresh)
    return manager, said


def test_what_one_side_cannot_fork_starts_fresh_on_both(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    a = Fake(tmp_path / "a", forks=("batching.x", "batching.y"), name="A")
    b = Fake(tmp_path / "b", forks=("batching.x",), name="B")
    manager, said = _running(tmp_path, a, b)
    with manager as found:
        assert [found.start_of(f"batching.{each}") for each in "xyz"] == ["forked", "fresh", "fresh"]
        found.begin(["batching.x", "batching.y"])
        found.of("batching", "y").a(3)
    assert [each.split()[0] for each in a.lines] == ["Round", "Order"], "a new server, and the trial"
    assert not said


@pytest.mark.parametrize("older", [False, True])
def test_servers_import_alike_on_both_sides(tmp_path: Path, *, older: bool) -> None:
    """What the round's groups need, unless one side is an older commit, whose servers import otherwise."""
    for name in "ab":
        (tmp_path / name).mkdir()
    forks = ("batching.x", "batching.y")
    a = Fake(tmp_path / "a", forks=forks, name="A", by_group=not older)
    b = Fake(tmp_path / "b", forks=forks, name="B")
    manager, _ = _running(tmp_path, a, b)
    with manager as found:
        found.begin(["batching.y"])
        found.begin(["batching.z"])
    asked = [] if older else ["batching.y"]
    assert [each.split() for each in a.lines] == [["Round", *asked, "A"]], "none where nothing forks"
    assert [each.split() for each in b.lines] == [["Round", *asked, "B"]]


def test_nothing_begins_where_nothing_is_forked(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    a, b = (
        Fake(tmp_path / "a", forks=("batching.x",)),
        Fake(tmp_path / "b", reason="its imports have started 3 threads"),
    )
    manager, said = _running(tmp_path, a, b)
    with manager as found:
        found.begin(["batching.x"])
        assert found.start_of("batching.x") == "fresh"
    assert not a.log.exists()
    assert said == ["trials start in fresh processes: its imports have started 3 threads"]


def test_a_round_whose_servers_cannot_fork_is_left_out_and_said(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    refuses = "if request['type'] == 'Round': print(json.dumps({'reason': 'no memory'}), flush=True); continue"
    a = Fake(tmp_path / "a", forks=("batching.x",), name="A")
    b = Fake(tmp_path / "b", refuses, forks=("batching.x",), name="B")
    manager, said = _running(tmp_path, a, b)
    with manager as found:
        assert found.begin(["batching.x"]) == "no memory"
        assert found.begin(["batching.y"]) == "", "nothing is forked"
        assert found.of("batching", "x").b(1)["status"] == "ok", "each answer belongs to its question"
    assert said == ["a round of blocks is left out, because a side's trials cannot be forked: no memory"]


def test_a_side_too_old_for_it_makes_both_run_each_trial_alone(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    a, b = Fake(tmp_path / "a", forks=("batching.x",)), Fake(tmp_path / "b", name="old")
    b.command = [sys.executable, "-c", "raise SystemExit('No such option: --serve')"]
    manager, said = _running(tmp_path, a, b)
    with manager as found:
        assert isinstance(found, trials.Alone)
        assert found.start_of("batching.x") == "fresh"
    assert said == [
        "old cannot fork its trials, so all start in fresh processes (exit code 1: No such option: --serve)"
    ]


def test_without_turns_an_epoch_ends_with_its_last_batch_as_a_turn_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dropping an iterator takes would be in some blocks of a strategy, and not in others."""
    closed = {**GOOD, "metrics": {**GOOD["metrics"], "steady_epochs": 2, "closing_time": 0.04}}
    failed = {"status": "failed", "message": "no", "metrics": {}}
    monkeypatch.setattr(partners, "play", lambda _: ([closed, failed], [Taken([], 0), Taken([], 0)]))
    found = trials._in_turn([], [])
    assert found[0]
    assert found[0]["metrics"]["steady_time"] == pytest.approx(0.06)
    assert found[1] == failed


def test_what_no_trial_could_be_run_for_ends_a_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A full disk is no failure of a strategy: it would count as one, and a check that measured nothing would pass."""
    monkeypatch.setattr(trials.Served, "_launch", lambda _: None)
    served = trials.Served(cast(Side, SimpleNamespace(name="main")), Asked({}, "tiny"))
    answers = tmp_path / "answers"
    answers.write_bytes(b'{"status": "ok"}\n{"status": "unusable", "message": "the disk is full"}\n')
    with answers.open("rb") as stdout:
        monkeypatch.setattr(served, "_process", SimpleNamespace(stdout=stdout), raising=False)
        assert served.answer() == {"status": "ok"}
        with pytest.raises(InputError, match="main: the disk is full"):
            served.answer()
        assert served.answer() is None
