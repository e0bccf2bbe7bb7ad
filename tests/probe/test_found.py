"""Verdicts on a pipeline, and limits: each comes out every way that it can."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from loaders._probe import words
from loaders._probe.delivered import Delivered, Epoch
from loaders._probe.found import found
from loaders._probe.gates import Gate, Limits, exit_code, gates
from loaders._probe.pages import NewPages
from loaders._probe.stages import Stage, Stages, _plain
from tests.probe.made import MIB, PLAN, SAME, grown, judged, record

OTHER = msgspec.structs.replace(SAME, only_first=3, only_second=2)


@pytest.mark.parametrize(
    ("waits", "step", "answer"),
    [
        ((0.001, 0.0011, 0.0009), 0.05, "no"),
        ((0.02, 0.021, 0.019), 0.05, "yes"),
        ((0.001, 0.02, 0.0), 0.05, "undecided"),
        ((0.004,), 0.05, "undecided"),  # a single trial has no interval
        ((0.02, 0.021, 0.019), None, "not asked"),
    ],
)
def test_loading_is_the_bottleneck_if_a_step_surely_waits_for_a_tenth_of_it(
    waits: tuple[float, ...], step: float | None, answer: str
) -> None:
    plan = msgspec.structs.replace(PLAN, step=step)
    result = judged(*(record(wait_time=each) for each in waits), plan=plan)
    assert result.bottleneck == answer
    said = {"no": "It is not your loader", "yes": "Loading holds up training", "undecided": "undecided"}
    assert said.get(answer, "Memory does not grow") in words.answer(result)


@pytest.mark.parametrize(("first", "steps", "answer"), [(1.0, None, "yes"), (0.01, None, "no"), (1.0, 19, "no")])
def test_a_long_wait_at_the_start_of_each_epoch_holds_up_training(first: float, steps: int | None, answer: str) -> None:
    """Such as a shuffle buffer that fills anew, or workers that start anew; a stream has no epochs."""
    plan = msgspec.structs.replace(PLAN, steps=steps)
    result = judged(*(record(wait_time=each, slow_first=first) for each in (0.001, 0.0011, 0.0009)), plan=plan)
    assert result.bottleneck == answer
    if answer == "yes":
        assert result.figures["wait_time"].value == pytest.approx((1.0 + 18 * 0.001) / 19, rel=0.01)


@pytest.mark.parametrize(
    ("closing", "steady", "late"),
    [
        ((0.0, 0.3, 0.001), 0.5, True),
        ((0.04,) * 3, 0.5, False),
        ((0.015,) * 3, 0.02, False),
        ((0.3,) * 3, None, False),
    ],
)
def test_what_an_epoch_takes_after_its_last_batch_is_said_if_it_is_a_good_part_of_it(
    closing: tuple[float, ...], steady: float | None, *, late: bool
) -> None:
    """In any trial: tf.data takes a millisecond for it or as long again as the epoch."""
    result = judged(*(record(closing_time=each, steady_time=steady) for each in closing))
    assert result.closes_late == late
    assert ("dropping its iterator took up to 300 ms (" in words.answer(result)) == late
    assert "autotune" not in words.answer(result), "it is not known to be of tf.data"
    in_tfdata = msgspec.structs.replace(result, stages=Stages([Stage("Map", 1, 0.1)]))
    assert ("options.autotune.enabled = False" in words.answer(in_tfdata)) == late


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (NewPages(396_000, 6_000, 0.2), True),
        (NewPages(396_000, 6_000, 0.04), False),
        (NewPages(396_000, 200_000, 0.2), False),
        (None, False),
    ],
)
def test_memory_that_is_given_back_and_taken_anew_is_said_if_the_system_spends_a_good_part_of_an_epoch_on_it(
    pages: NewPages | None, *, said: bool
) -> None:
    each = record()
    told = msgspec.structs.replace(each, found={**each.found, "new_pages": msgspec.to_builtins(pages)})
    result = judged(each, told, each)
    assert result.new_pages == pages
    assert result.gives_back == said
    assert ("takes 396000 new pages, on which the system spends 200 ms" in words.answer(result)) == said


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (["flat", "flat", "plateau"], "no"),
        (["flat", "flat", "undecided"], "no"),
        (["growing, in use"] * 3, "yes"),
        (["growing, in use", "growing, in use", "undecided"], "yes"),
        (["growing, in use", "flat", "flat"], "undecided"),
        (["undecided", "undecided", "flat"], "undecided"),
        ([], "undecided"),
    ],
)
def test_memory_grows_if_most_trials_show_it_and_not_if_none_does(verdicts: list[str], answer: str) -> None:
    records = [record(memory_growth=grown(each, slope=2.0**16 * ("grow" in each))) for each in verdicts]
    result = judged(*records or [record(memory_growth=None)])
    assert result.grows == answer
    assert bool(words.cure(result)) == (answer == "yes")
    differ = answer == "undecided" and len(set(verdicts)) > 1 and "undecided" not in verdicts
    assert ("its trials differ (more of them: --trials)" in words.answer(result)) == differ
    (gate,) = gates(result, Limits(("growing",)))
    assert (gate.why == "its trials differ in whether memory grows") == differ


def test_summed_resident_sets_of_several_processes_say_nothing_of_growth() -> None:
    """As where the system does not tell what they share."""
    shown: dict[str, Any] = {"memory_growth": grown("growing, in use", 1000.0), "peak_memory_tree": 200 * MIB}
    assert judged(*[record(**shown, anonymous_memory=MIB)] * 3).grows == "yes"
    assert judged(*[record(**shown, anonymous_memory=None)] * 3).grows == "undecided"


def test_a_cure_depends_on_who_holds_the_memory() -> None:
    held = judged(*[record(memory_growth=grown("growing, held by the allocator", 1000.0))] * 3)
    assert "MALLOC_ARENA_MAX" in words.cure(held)
    tree = judged(
        *[record(memory_growth=grown("growing", 1000.0), peak_memory_tree=200 * MIB, anonymous_memory=MIB)] * 3
    )
    assert "worker" in words.cure(tree)
    assert tree.highest == 200 * MIB
    assert "of all processes together" in dict(words.lines(tree)).keys().__str__()


@pytest.mark.parametrize(
    ("limits", "records", "state"),
    [
        (Limits(("growing",)), {}, "kept"),
        (Limits(("growing",)), {"memory_growth": grown("growing, in use", 1e5)}, "broken"),
        (Limits(("growing",)), {"memory_growth": grown("undecided")}, "undecided"),
        (Limits(("bottleneck",)), {}, "kept"),
        (Limits(("bottleneck",)), {"wait_time": 0.03}, "broken"),
        (Limits(("uneven",)), {}, "kept"),
        (Limits(("uneven",)), {"delivered": OTHER}, "broken"),
        (Limits(("uneven",)), {"delivered": msgspec.structs.replace(OTHER, whole=True)}, "undecided"),
        (Limits(("uneven",)), {"delivered": msgspec.structs.replace(SAME, whole=True)}, "kept"),
        (Limits(max_peak=101 * MIB), {}, "kept"),
        (Limits(max_peak=99 * MIB), {}, "broken"),
        (Limits(min_rate=1000.0), {}, "kept"),
        (Limits(min_rate=1300.0), {}, "broken"),
        (Limits(min_rate=1300.0), {"delivered": msgspec.structs.replace(SAME, whole=True)}, "undecided"),
    ],
)
def test_a_limit_is_kept_broken_or_left_open(limits: Limits, records: dict[str, Any], state: str) -> None:
    result = judged(*[record(**records)] * 3)
    (gate,) = gates(result, limits)
    assert gate.state == state
    assert exit_code(result, [gate]) == {"kept": 0, "broken": 1, "undecided": 3}[state]


def test_one_trial_whose_epochs_differ_makes_a_pipeline_uneven() -> None:
    """A worker that loses a sample now and then does so in some trials."""
    unread = Delivered([], [], unread="ValueError: ragged")
    for others, state in (([SAME, OTHER], "broken"), ([SAME, SAME], "kept"), ([unread, SAME], "undecided")):
        result = judged(record(), *(record(delivered=each) for each in others))
        assert [each.state for each in gates(result, Limits(("uneven",)))] == [state]


def test_what_steps_cut_off_or_could_not_be_compared_is_no_uneven_epoch() -> None:
    """With a given number of steps an epoch goes on in the stream, and has other samples."""
    cut = msgspec.structs.replace(PLAN, steps=19)
    unread = Delivered([], [], unread="ValueError: ragged")
    for plan, delivered in ((cut, OTHER), (PLAN, unread)):
        result = judged(*[record(delivered=delivered)] * 3, plan=plan)
        (gate,) = gates(result, Limits(("uneven",)))
        assert gate.state == "undecided"
    assert "could not be compared: ValueError: ragged." in words.answer(result)


def test_cores_are_kept_busy_by_the_same_epochs_that_took_the_time() -> None:
    """The first of three epochs decodes for 1.2 s on two cores, the others read a cache."""
    found = judged(*[msgspec.structs.replace(record(cpu_time=0.8, epoch_time=1.2, steady_time=0.05), epochs=3)] * 3)
    assert found.utilisation == pytest.approx(0.8 / ((1.2 + 2 * 0.05) / 3))


def test_a_limit_within_the_uncertainty_is_left_open() -> None:
    result = judged(*(record(throughput=each, peak_memory=int(each * MIB)) for each in (80.0, 100.0, 120.0)))
    peak, rate = gates(result, Limits(max_peak=121 * MIB, min_rate=100.0))
    assert (peak.state, rate.state) == ("undecided", "undecided")
    (peak,) = gates(result, Limits(max_peak=119 * MIB))
    assert peak.state == "broken", "one trial held more"


def test_a_single_trial_breaks_a_limit_but_keeps_none() -> None:
    alone = judged(record())
    assert [each.state for each in gates(alone, Limits(max_peak=200 * MIB, min_rate=1.0))] == ["undecided"] * 2
    assert [each.state for each in gates(alone, Limits(max_peak=50 * MIB))] == ["broken"]


@pytest.mark.parametrize(
    ("readings", "anonymous", "states"),
    [
        (10, 150 * MIB, ["kept", "broken", "broken"]),
        (4, 150 * MIB, 2 * ["undecided"] + ["broken"]),
        (10, None, 2 * ["undecided"] + ["broken"]),
    ],
)
def test_no_limit_is_kept_by_a_peak_of_worker_processes_that_is_none(
    readings: int, anonymous: int | None, states: list[str]
) -> None:
    """The process itself held 100 MiB, which breaks a limit whatever its workers held."""
    tree = record(peak_memory_tree=200 * MIB, tree_readings=readings, anonymous_memory=anonymous)
    result = judged(*[tree] * 3)
    limits = (250 * MIB, 150 * MIB, 50 * MIB)
    found = [gate for limit in limits for gate in gates(result, Limits(max_peak=limit))]
    assert [each.state for each in found] == states
    assert ["could not be read" in each.why for each in found] == [each == "undecided" for each in states]


def test_a_pipeline_that_raises_keeps_no_limit() -> None:
    raised = msgspec.structs.replace(SAME, failed="ValueError: damaged (train.py, line 3, in make)", after=37)
    result = judged(record(delivered=raised))
    judged_gates = gates(result, Limits(("growing",), max_peak=50 * MIB))
    assert [each.state for each in judged_gates] == ["undecided", "broken"]
    assert exit_code(result, []) == 1
    assert "It failed: ValueError: damaged (train.py, line 3, in make), after 37 batches." in words.answer(result)


def test_a_trial_that_was_ended_says_so() -> None:
    result = judged(record("over_budget", "held 600 MiB", delivered=None, peak_memory=600 * MIB))
    assert (result.trials, result.highest, exit_code(result, [])) == (0, 600 * MIB, 1)
    assert "It failed: over budget: held 600 MiB." in words.answer(result)


def test_nothing_is_found_in_no_trial() -> None:
    with pytest.raises(ValueError, match="no trials"):
        found(PLAN, [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (SAME, "delivers 600 samples in 19 batches; the next delivers the same, in another order."),
        (msgspec.structs.replace(SAME, same_order=True), "the next delivers the same, in the same order."),
        (msgspec.structs.replace(SAME, twice=8), "19 batches, 8 of them for a second time; the next"),
        (OTHER, "the next delivers 600: 3 are missing in it, and 2 are new."),
        (
            msgspec.structs.replace(SAME, only_first=600, only_second=600),
            "the next delivers as many others (as random changes to the samples do).",
        ),
        (
            Delivered([Epoch(19, 600, "ab"), Epoch(18, 576, "cd")], [], only_first=24),
            "the next delivers 576: 24 are missing in it, and 0 are new.",
        ),
    ],
)
def test_epochs_in_words(given: Delivered, said: str) -> None:
    assert said in words.epochs_in_words(given)


def test_the_slowest_stage_is_the_one_that_takes_longest_with_all_its_threads() -> None:
    stages = Stages(
        [
            Stage("Range", 800, 0.0),
            Stage("ParallelMap", 800, 4.0, 4),
            Stage("Batch", 100, 1.5),
            Stage("Prefetch", 100, 0.0),
        ],
        added={"ParallelMap": 1, "Prefetch": 1},
        removed={"Map": 1},
    )
    assert stages.slowest == stages.stages[2]
    result = msgspec.structs.replace(judged(), stages=stages)
    lines = dict(words.lines(result))
    assert lines["slowest stage, by tf.data's own account"] == "Batch: 1.50 s of processor time for 100 elements"
    assert lines["tf.data rewrote it"] == "runs ParallelMap, Prefetch, does not run Map as written"
    assert Stages([Stage("Range", 800, 0.0)]).slowest is None


def test_a_summary_for_a_pull_request_holds_answer_limits_and_command() -> None:
    result = judged()
    said = words.markdown(result, [Gate("--max-peak 50 MiB", "broken", "a | b <c>")], "python -m loaders probe x")
    assert said.startswith("## train.py:make\n\nIt is not your loader: a step of 50.0 ms waits")
    assert "| --max-peak 50 MiB | broken | a \\| b &lt;c> |" in said
    assert "`python -m loaders probe x`" in said


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("ParallelMapDatasetV2", "ParallelMap"),
        ("ParallelMapV2", "ParallelMap"),
        ("FiniteTake", "Take"),
        ("ForeverRepeat", "Repeat"),
        ("RangeDataset", "Range"),
        ("MemoryCache", "Cache"),
        ("CacheDatasetV2", "Cache"),
        ("FromTensor", "Tensor"),
    ],
)
def test_a_stage_has_the_name_that_users_write(name: str, plain: str) -> None:
    assert _plain(name) == plain
