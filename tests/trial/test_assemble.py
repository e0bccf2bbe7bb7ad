"""From readings to metrics, where every reading is known."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from loaders._contract import Quality
from loaders._registry import Meter
from loaders._rows.figures import value
from loaders._trial import assemble, workers
from loaders._trial.assemble import Readings
from loaders._trial.memory import Held
from loaders._trial.metrics import Metrics
from loaders._trial.record import Converted, Environment, Outcome, Progress
from loaders._trial.timing import Timeline, passes
from tests.trial.test_log import RECORD

MIB = 2**20


def _epoch(start: float, batches: int = 5, each: float = 0.1) -> Timeline:
    asked = [start + each * number for number in range(batches)]
    received = [start + each * (number + 1) for number in range(batches)]
    return Timeline(start, asked, received, received[-1], [4] * batches, [0.0] * batches)


READ = Readings(
    timelines=[_epoch(10.0), _epoch(20.0), _epoch(30.0)],
    passes=1,
    slow=None,
    slow_step=None,
    cpu_time=0.9,
    peak=90 * MIB,
    peak_slow=90 * MIB,
    most=Held(60 * MIB, 20 * MIB, 5 * MIB),
    retained=7 * MIB,
    allocator_held=3 * MIB,
    trace=[(1, 10.1, Held(1, 2, 3), 4, 5), (5, 10.5, Held(10, 20, 30), 40, 50)],
    meter=Meter(),
    steady=[_epoch(20.0), _epoch(30.0)],
)


def _outcome(quality: Quality | None = None, **read: Any) -> Outcome:
    facts: dict[str, Any] = dict.fromkeys(("memory_floor", "disk_bytes", "converted", "disturbance"))
    return assemble.outcome(dataclasses.replace(READ, **read), quality or Quality(), sample_bytes=100, **facts)


def test_epochs_one_by_one() -> None:
    found = _outcome()
    assert (found.status, found.message, found.began, found.ended) == ("ok", "", 10.0, 30.5)
    metrics = found.metrics
    assert (metrics.samples, metrics.batches) == (20, 5)
    assert metrics.epoch_time == pytest.approx(0.5)
    assert metrics.steady_time == pytest.approx(0.5)
    assert metrics.throughput == pytest.approx(20 / 0.5)
    assert metrics.cpu_time == pytest.approx(0.3)
    assert (metrics.wait_time, metrics.slow_step, metrics.peak_memory_slow) == (None, None, None)
    assert (metrics.bodies_in_flight, metrics.waiting, metrics.waiting_bytes) == (None, None, None)


def test_an_epoch_takes_until_its_iterator_is_gone() -> None:
    first, second, third = (
        dataclasses.replace(each, closing=seconds)
        for each, seconds in zip(READ.timelines, (2.0, 0.0, 0.4), strict=True)
    )
    metrics = _outcome(timelines=[first, second, third], steady=[second, third]).metrics
    assert metrics.epoch_time == pytest.approx(0.5 + 0.8), "by the same mean, so that both differ by what is done once"
    assert metrics.closing_time == pytest.approx(0.2)
    assert metrics.steady_time == pytest.approx(0.5 + 0.2)
    assert metrics.start_time == _outcome().metrics.start_time
    assert _outcome(steady=[]).metrics.closing_time is None


def test_epochs_in_one_pass_are_cut_into_the_same() -> None:
    whole = dataclasses.replace(_epoch(10.0, batches=15), closing=9.0)
    found = _outcome(timelines=[whole], passes=3, steady=passes(whole, 3)[1:])
    assert (found.began, found.ended) == (10.0, 11.5)
    assert (found.metrics.samples, found.metrics.batches) == (20, 5)
    assert found.metrics.epoch_time == pytest.approx(0.5)
    assert found.metrics.steady_time == pytest.approx(0.5)
    assert found.metrics.closing_time is None, "one iterator has made them all"
    assert found.metrics.cpu_time == pytest.approx(0.3)


def test_epochs_that_share_a_batch_have_an_equal_share_of_the_pass() -> None:
    metrics = _outcome(timelines=[_epoch(10.0, batches=2)], passes=4, steady=[]).metrics
    assert (metrics.samples, metrics.batches) == (2, 1)
    assert metrics.epoch_time == pytest.approx(0.2 / 4)
    assert metrics.steady_time is None
    assert metrics.throughput == pytest.approx(4 / 0.1)


def test_further_epochs_count_in_the_steady_time_only() -> None:
    further = [_epoch(40.0, each=0.08), _epoch(50.0, each=0.06), _epoch(60.0, each=0.06)]
    plain, more = _outcome(), _outcome(steady=[*READ.steady, *further], further=further)
    assert (plain.metrics.steady_epochs, more.metrics.steady_epochs) == (2, 5)
    assert more.metrics.steady_time == pytest.approx(0.4)  # the median of 0.5, 0.5, 0.4, 0.3, 0.3
    assert more.metrics.throughput == pytest.approx(20 / 0.4)
    assert more.metrics.start_time == pytest.approx(0.1 - 0.08)
    same = ("steady_epochs", "steady_time", "throughput", "start_time")
    changed = {name: getattr(more.metrics, name) for name in same}
    assert msgspec.structs.replace(plain.metrics, **changed) == more.metrics
    assert more.ended == plain.ended


def test_a_slow_consumer_has_figures_of_its_own() -> None:
    metrics = _outcome(slow=_epoch(40.0, each=0.2), slow_step=0.3, peak_slow=120 * MIB).metrics
    assert (metrics.peak_memory, metrics.peak_memory_slow) == (90 * MIB, 120 * MIB)
    assert metrics.wait_time == pytest.approx(0.2)
    assert metrics.slow_step == pytest.approx(0.3)
    assert metrics.epoch_time == pytest.approx(0.5)
    assert metrics.cpu_time == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("most", "needed"),
    [
        (Held(60 * MIB, 20 * MIB, 5 * MIB), 70 * MIB),  # the peak less what the system can take back
        (Held(80 * MIB, 20 * MIB, 5 * MIB), 85 * MIB),  # at least what was seen
        (Held(60 * MIB, -1, 5 * MIB), 90 * MIB),
    ],
)
def test_what_is_needed_is_what_the_system_cannot_take_back(most: Held, needed: int) -> None:
    assert _outcome(most=most).metrics.needed_memory == needed


def test_memory_below_the_baseline_is_none() -> None:
    metrics = _outcome(peak=-1, peak_slow=-1, most=Held(-1, 0, 0)).metrics
    assert (metrics.peak_memory, metrics.needed_memory, metrics.anonymous_memory) == (0, 0, -1)


def test_what_malloc_does_not_tell_is_in_no_trace() -> None:
    known, unknown = _outcome().metrics.memory_trace, _outcome(allocator_held=None).metrics.memory_trace
    assert known is not None
    assert unknown is not None
    assert (known.step, known.seconds, known.resident, known.file) == ([1, 5], [0.1, 0.5], [6, 60], [2, 20])
    assert (known.in_use, known.held) == ([4, 40], [5, 50])
    assert (unknown.in_use, unknown.held) == (None, None)


def test_what_bodies_counted() -> None:
    meter = Meter()
    for _ in range(2):
        with meter, meter:
            pass
    metrics = _outcome(meter=meter).metrics
    assert (metrics.bodies_in_flight, metrics.waiting, metrics.waiting_bytes) == (2, 4, 400)


def test_samples_that_may_be_lost_are_said() -> None:
    found = _outcome(Quality(lost=3))
    assert (found.message, found.metrics.lost) == ("lost 3 of 23 samples", 3)


def test_of_a_long_order_some_points_are_drawn() -> None:
    metrics = _outcome(Quality(walk=list(range(0, 10_000, 2)))).metrics
    assert metrics.steps is not None
    assert len(metrics.steps) == len(set(metrics.steps)) == assemble.WALK_POINTS
    assert metrics.walk == [2 * step for step in metrics.steps]
    assert _outcome(Quality(walk=[5, 6])).metrics.walk == [5, 6]


def test_what_is_handed_over_is_in_the_report() -> None:
    facts: dict[str, Any] = {"memory_floor": 11, "disk_bytes": 12, "disturbance": None}
    metrics = assemble.outcome(READ, Quality(), sample_bytes=0, converted=Converted(1.5, 13), **facts).metrics
    assert (metrics.memory_floor, metrics.disk_bytes, metrics.convert_time, metrics.convert_memory) == (11, 12, 1.5, 13)


class TestCompleted:
    """What only the parent sees, above a baseline of 10 MiB."""

    PROGRESS = Progress(Held(10 * MIB), Held(10 * MIB), Environment(memory=2**34))
    OK = Outcome("ok", metrics=Metrics(peak_memory=50 * MIB, needed_memory=50 * MIB, anonymous_memory=50 * MIB))

    def test_a_spike_that_the_process_did_not_see_itself(self) -> None:
        found = assemble.completed(self.OK, self.PROGRESS, Held(80 * MIB, 5 * MIB), [])
        assert (found.peak_memory, found.needed_memory, found.anonymous_memory) == (50 * MIB, 70 * MIB, 70 * MIB)
        assert (found.file_memory, found.peak_memory_tree) == (5 * MIB, None)

    def test_a_tree_has_a_peak_of_its_own_and_needs_it(self) -> None:
        tree = [(1.0, Held(110 * MIB)), (2.0, Held(90 * MIB, 30 * MIB))]
        found = assemble.completed(self.OK, self.PROGRESS, Held(), tree)
        assert (found.peak_memory, found.peak_memory_tree) == (50 * MIB, 110 * MIB)
        assert (found.needed_memory, found.anonymous_memory, found.file_memory) == (100 * MIB, 100 * MIB, 30 * MIB)

    def test_kinds_that_the_system_does_not_tell_are_absent(self) -> None:
        found = assemble.completed(self.OK, self.PROGRESS, Held(80 * MIB), [], kinds_told=False)
        assert (found.anonymous_memory, found.file_memory, found.shared_memory) == (None, None, None)
        assert (found.peak_memory, found.needed_memory) == (50 * MIB, 70 * MIB)

    @pytest.mark.parametrize("read", [0, workers.LEAST - 1, workers.LEAST])
    def test_of_workers_that_were_read_too_seldom_the_memory_is_unknown(self, read: int) -> None:
        tree = [(1.0, Held(110 * MIB))] * read
        worked = msgspec.structs.replace(self.OK, had_workers=True)
        found = assemble.completed(worked, self.PROGRESS, Held(), tree)
        assert found.tree_readings == read
        record = msgspec.structs.replace(RECORD, status="ok", metrics=found)
        known = [value(record, each) is not None for each in ("peak_memory", "peak_memory_tree", "needed_memory")]
        assert known == [read >= workers.LEAST] * 3

    def test_an_older_record_has_the_readings_of_its_trace(self) -> None:
        made = _outcome(trace=[(step, 10.0 + step / 10, Held(step), 0, 0) for step in range(1, 6)])
        for count, is_known in ((workers.LEAST - 1, False), (workers.LEAST, True)):
            tree = [(10.1 + index / 100, Held(30 * MIB)) for index in range(count)]
            found = assemble.completed(made, self.PROGRESS, Held(), tree)
            older = msgspec.structs.replace(found, tree_readings=None)
            record = msgspec.structs.replace(RECORD, status="ok", metrics=older)
            assert (value(record, "needed_memory") is not None) is is_known

    @pytest.mark.parametrize("status", ["over_budget", "timed_out"])
    def test_one_that_was_ended_has_the_peak_that_was_seen(self, status: Any) -> None:
        found = assemble.completed(Outcome(status), self.PROGRESS, Held(30 * MIB), [(1.0, Held(40 * MIB))])
        assert (found.peak_memory, found.peak_memory_tree) == (30 * MIB, 30 * MIB)
        assert found.epoch_time is None

    def test_without_a_baseline_there_is_nothing_to_add(self) -> None:
        assert assemble.completed(Outcome("failed"), None, Held(MIB), []) == Metrics()

    def test_workers_memory_over_the_steps_replaces_that_of_the_process(self) -> None:
        made = _outcome(trace=[(step, 10.0 + step / 10, Held(step), 0, 0) for step in range(1, 6)])
        tree = [(9.0, Held(99 * MIB)), (10.25, Held(30 * MIB, 4 * MIB)), (30.2, Held(50 * MIB)), (31.0, Held(99 * MIB))]
        trace = assemble.completed(made, self.PROGRESS, Held(), tree).memory_trace
        assert trace is not None
        assert trace.tree
        assert (trace.step, trace.seconds) == ([2, 5], [0.25, 20.2])
        assert (trace.resident, trace.file, trace.in_use) == ([24 * MIB, 40 * MIB], [4 * MIB, 0], None)

    def test_a_long_trace_of_workers_memory_can_be_read_back(self) -> None:
        made = _outcome(trace=[(step, 10.0 + step / 10, Held(step), 0, 0) for step in range(1, 6)])
        tree = [(10.0 + index * 0.001, Held(30 * MIB)) for index in range(12_345)]
        found = assemble.completed(made, self.PROGRESS, Held(), tree)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Metrics).memory_trace == found.memory_trace
        assert found.memory_trace is not None
        assert assemble.TREE_POINTS / 2 < len(found.memory_trace.step) <= assemble.TREE_POINTS
        assert found.memory_trace.seconds[-1] == pytest.approx(12.34, abs=0.02)

    def test_the_trace_is_judged(self) -> None:
        found = assemble.completed(_outcome(), self.PROGRESS, Held(), [])
        assert found.memory_growth is not None
        assert found.memory_trace == _outcome().metrics.memory_trace
