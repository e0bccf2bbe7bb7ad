from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders._advise import candidates, words
from loaders._advise.choose import CHOICE, Amount, Candidate, Decision, Settings, is_steady, memory_of, reckon
from loaders._law import law
from loaders._trial.growth import Growth
from tests.advise import golden, made

MIB = 2**20

GROWTH = Growth("flat", 0.0, 0.0, 0.0, 0.0, 40 * MIB, 400, bound=100.0, over=200)


def planted(
    load: float,
    *,
    wait: float = 1.0,
    start: float = 0.0,
    level: float = 40.0,
    slope: float = 0.0,
    rounds: int = 4,
    wobble: float = 0.01,
    convert: float | None = None,
    phase: int = 0,
) -> list[Amount]:
    """Seconds a sample, the share of them that a slow consumer waits, seconds to start, MiB and MiB a sample."""
    found = []
    for samples in (40, 160, 640):
        factors = {index: 1 + wobble * ((index * (7 + phase) + samples) % 3 - 1) for index in range(rounds)}
        found.append(
            Amount(
                samples,
                samples // 32,
                dict.fromkeys(factors, (level + slope * samples) * MIB),
                {index: (load * samples + start) * each for index, each in factors.items()},
                {index: load * samples * each for index, each in factors.items()},
                {index: load * samples / (samples // 32) * wait * each for index, each in factors.items()},
                {} if convert is None else {index: convert * samples * each for index, each in factors.items()},
            )
        )
    return found


FAST = Candidate("fast", lines=30, amounts=planted(0.0005, wait=0.01))
SLOW = Candidate("slow", lines=10, amounts=planted(0.002))
AHEAD = Candidate("ahead", lines=20, amounts=planted(0.0012, wait=0.01))


def decided(*candidates: Candidate, **changes: float) -> Decision:
    asked = msgspec.structs.replace(Settings(2**30, 0.05), **changes)
    return reckon(candidates, asked).decide(asked.memory)


def test_where_loading_keeps_up_it_is_not_the_loader_and_the_simplest_is_named() -> None:
    found = decided(FAST, SLOW, AHEAD)
    assert (found.recommended, found.bottleneck, found.decided) == ("ahead", False, True)
    assert found.kinds == {"fast": "as good", "slow": "slower", "ahead": "recommended"}


def test_where_loading_is_the_bottleneck_the_fastest_is_named() -> None:
    found = decided(FAST, SLOW, AHEAD, step=0.001)
    assert (found.recommended, found.bottleneck) == ("fast", True)
    assert found.kinds["ahead"] == "slower"


def test_without_a_step_loading_alone_counts() -> None:
    found = decided(FAST, SLOW, AHEAD, step=0.0)
    assert (found.recommended, found.bottleneck) == ("fast", None)


@pytest.mark.parametrize("step", [0.0, 0.05])
def test_no_step_hides_what_closing_an_epoch_takes(step: float) -> None:
    """0.3 s for 640 samples, in 20 batches. It is a part of the steady time."""
    (*_, amount) = AHEAD.amounts
    steady = {index: seconds + 0.3 for index, seconds in amount.steady.items()}
    closed = msgspec.structs.replace(amount, steady=steady, closing=dict.fromkeys(steady, 0.3))
    asked = Settings(2**30, step)
    without, with_ = (
        reckon([msgspec.structs.replace(AHEAD, amounts=[each])], asked).waits["ahead"] for each in (amount, closed)
    )
    more = {index: with_[index] - without[index] for index in without}
    # The first epoch, which is taken to have none here, takes as much less beyond a later one, once in all epochs.
    assert more == pytest.approx(dict.fromkeys(without, 0.3 / 20), rel=0.06)


def test_closing_an_epoch_takes_a_minute_at_most() -> None:
    """It takes longer after a longer epoch, and by tf.data's code no longer than that."""
    (*_, amount) = AHEAD.amounts
    steady = {index: seconds + 0.3 for index, seconds in amount.steady.items()}
    closed = msgspec.structs.replace(amount, steady=steady, closing=dict.fromkeys(steady, 0.3))
    one = msgspec.structs.replace(AHEAD, amounts=[closed])
    for samples, seconds in ((64_000, 30.0), (6_400_000, 60.0)):
        steps = samples / 32
        waits = reckon([one], Settings(2**30, 0.0, samples=samples, epochs=10**6)).waits["ahead"]
        load = {index: each / 20 for index, each in amount.steady.items()}
        assert {index: (wait - load[index]) * steps for index, wait in waits.items()} == pytest.approx(
            dict.fromkeys(waits, seconds), rel=0.01
        )


def test_the_simplest_is_the_one_with_least_to_it() -> None:
    same = [
        Candidate("converts", converts=True, lines=1, amounts=planted(0.0005, convert=0.0)),
        Candidate("sets", settings="MALLOC_ARENA_MAX=1", lines=2, amounts=planted(0.0005)),
        Candidate("long", lines=40, amounts=planted(0.0005)),
        Candidate("short", lines=20, amounts=planted(0.0005)),
    ]
    order = ["short", "long", "sets", "converts"]
    for gone in range(4):
        left = [each for each in same if each.name in order[gone:]]
        assert decided(*left, step=0.0).recommended == order[gone]


def test_an_engine_is_advised_where_it_is_there_or_gains_enough() -> None:
    engine = Candidate("engine", needs="grain", lines=1, amounts=planted(0.0005))
    there = msgspec.structs.replace(engine, needs="")
    for slower, wins in ((1.15, False), (1.24, False), (1.4, True)):
        own = Candidate("own", lines=30, amounts=planted(0.0005 * slower))
        found = decided(engine, own, step=0.0)
        assert found.recommended == ("engine" if wins else "own")
        assert found.kinds["engine"] == ("recommended" if wins else "not worth installing")
        assert found.decided
        assert decided(there, own, step=0.0).recommended == "engine"
    vague = Candidate("own", lines=30, amounts=planted(0.0005 * 1.4, wobble=0.3))
    assert decided(engine, vague, step=0.0).recommended == "own", "a gain that may be less than 1.25 is not shown"


def test_an_engine_that_alone_fits_is_advised() -> None:
    engine = Candidate("engine", needs="grain", amounts=planted(0.002))
    whole = Candidate("whole", amounts=planted(0.0005, slope=2.0))
    assert decided(engine, whole, step=0.0).recommended == "engine"


def test_of_two_alike_the_one_that_is_there_is_taken_where_both_gain_enough() -> None:
    engines = [Candidate(name, needs=name, lines=1, amounts=planted(0.0005)) for name in ("grain", "spdl")]
    found = decided(*engines, Candidate("own", amounts=planted(0.001)), step=0.0)
    assert found.recommended == "grain"
    assert found.kinds["spdl"] == "as good"
    found = decided(engines[0], msgspec.structs.replace(engines[1], needs=""), step=0.0)
    assert found.recommended == "spdl"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"historic": True}, "historic"),
        ({"ceiling": True}, "ceiling"),
        ({"tier": "same purpose"}, "other output"),
        ({"problem": "failed in 1 of 12 trials: timed out"}, "failed"),
        ({"problem": "lost 3 samples of an epoch"}, "failed"),
        ({"problem": "not measured: skipped, no such library", "amounts": []}, "not measured"),
        ({"amounts": []}, "not measured"),
        ({"amounts": planted(0.0005, wait=0.01, slope=2.0)}, "does not fit"),
        ({"amounts": planted(0.0005, wait=0.01)[:2]}, "memory unknown"),
        ({"amounts": planted(0.0005, wait=0.01, rounds=1)}, "memory unknown"),
        ({"grows": "it grows from step to step, in 3 of 4 trials"}, "memory unknown"),
    ],
)
def test_what_may_not_be_taken_is_not(change: dict[str, object], kind: str) -> None:
    barred = msgspec.structs.replace(FAST, **change)
    found = decided(barred, SLOW, step=0.0)
    assert found.kinds["fast"] == kind
    assert found.recommended == "slow"
    assert decided(barred).recommended is None


@pytest.mark.parametrize(
    ("verdicts", "grows"),
    [
        (["flat"] * 4, False),
        (["growing, in use", "growing, held by the allocator", "undecided", "flat"], True),
        (["growing, in use", "flat", "undecided"], False),  # one of two that tell
        (["undecided"] * 4, False),
        ([], False),
    ],
)
def test_what_grows_from_step_to_step_is_never_certain_to_fit(verdicts: list[str], *, grows: bool) -> None:
    """Its peak over some epochs says nothing of a training that has thousands."""
    records = made.run(rounds=4)
    mine = [each for each in records if (each.strategy, each.case["data"]) == ("path_generator_pool", "x16")]
    for record, verdict in zip(mine, verdicts, strict=False):
        growth = msgspec.structs.replace(GROWTH, verdict=verdict)
        changed = msgspec.structs.replace(record, metrics=msgspec.structs.replace(record.metrics, memory_growth=growth))
        records[records.index(record)] = changed
    among = candidates.candidates(records, "batching", {"augment": "off"})
    found = reckon(among, Settings(2**34, 0.05)).decide(2**34)
    assert (found.kinds["path_generator_pool"] == "memory unknown") is grows
    (one,) = (each for each in among if each.name == "path_generator_pool")
    assert one.grows == ("it grows from step to step, in 2 of 3 trials" if grows else "")


def test_what_keeps_everything_fits_little_data_only() -> None:
    array = msgspec.structs.replace(FAST, amounts=planted(0.0005, wait=0.01, level=0, slope=0.575))
    assert decided(array, SLOW, samples=1000).kinds["fast"] == "recommended"
    assert decided(array, SLOW, samples=10_000).kinds["fast"] == "does not fit"


def _needs(amounts: list[Amount], **changes: float) -> float:
    asked = msgspec.structs.replace(Settings(2**30, 0.05), **changes)
    found = reckon([Candidate("one", amounts=amounts)], asked).memory["one"]
    assert found is not None
    return found.value / MIB


def test_what_holds_batches_grows_with_them_and_what_holds_the_data_does_not() -> None:
    level, both = planted(0.001, level=40), planted(0.001, level=40, slope=0.5)
    assert [_needs(level, batch=batch) for batch in (16, 32, 64, 128)] == pytest.approx([40, 40, 80, 160])
    assert [_needs(both, batch=batch) for batch in (32, 64)] == pytest.approx([5040, 5080])
    one_by_one = [msgspec.structs.replace(each, batches=each.samples) for each in level]
    assert _needs(one_by_one, batch=128) == pytest.approx(40)


def test_few_epochs_do_not_pay_for_a_conversion() -> None:
    converted = Candidate("converted", converts=True, amounts=planted(0.0005, convert=0.01))
    plain = Candidate("plain", amounts=planted(0.001))
    assert decided(converted, plain, step=0.0, epochs=1).recommended == "plain"
    assert decided(converted, plain, step=0.0, epochs=100).recommended == "converted"


def test_a_first_epoch_that_costs_more_counts_by_epochs() -> None:
    cached = Candidate("cached", amounts=[_dear(each) for each in planted(0.0005)])
    plain = Candidate("plain", amounts=planted(0.001))
    assert decided(cached, plain, step=0.0, epochs=1).recommended == "plain"
    assert decided(cached, plain, step=0.0, epochs=20).recommended == "cached"


def test_a_step_waits_for_the_start_and_a_conversion_too() -> None:
    """A second at the start, and a millisecond a sample of conversion: over 1000 samples 2 s, of 1000 / 32 steps."""
    one = Candidate("one", converts=True, amounts=planted(0.0005, wait=0.0, start=1.0, convert=0.001, wobble=0.0))
    settings = Settings(2**30, 0.05, samples=1000, epochs=1)
    waits = reckon([one], settings).waits["one"]
    assert waits[0] == pytest.approx(2 / (1000 / 32))
    assert decided(one, samples=1000, epochs=1).bottleneck is True
    assert decided(one, samples=1000, epochs=100).bottleneck is False


def test_what_was_measured_with_large_batches_is_not_reckoned_up_to_them() -> None:
    large = msgspec.structs.replace(Settings(2**30, 0.05), batch=256)
    usual, own = (Candidate("one", batch=batch, amounts=planted(0.0005, level=64.0)) for batch in (32, 256))
    needs = [reckon([each], large).memory["one"] for each in (usual, own)]
    assert needs[0]
    assert needs[1]
    assert needs[0].value == pytest.approx(8 * 64 * MIB)
    assert needs[1].value == pytest.approx(64 * MIB)


def _forked(amount: Amount) -> Amount:
    """Return an amount of which the first two rounds pair with none of the largest amount."""
    moved = {
        name: {index if index > 1 else ~index: each for index, each in values.items()}
        for name in ("needed", "first", "steady", "wait", "convert")
        if (values := getattr(amount, name))
    }
    return msgspec.structs.replace(amount, **moved)


def test_rounds_without_a_smaller_amount_take_what_happens_once_from_the_others() -> None:
    """A start of half a second must not grow with the data only because no round tells that it does not."""
    few, most = planted(0.001, start=0.5, wobble=0.0)[1:]
    (totals,) = reckon([Candidate("one", amounts=[_forked(few), most])], Settings(2**30, 0.0)).totals.values()
    (paired,) = reckon([Candidate("one", amounts=[few, most])], Settings(2**30, 0.0)).totals.values()
    assert totals == pytest.approx(paired)
    (alone,) = reckon([Candidate("one", amounts=[most])], Settings(2**30, 0.0)).totals.values()
    assert min(alone.values()) > max(paired.values()) + 1, "in proportion, as far as anybody knows"


def test_what_happens_once_grows_with_the_data_and_not_with_how_a_process_started() -> None:
    """A fork of the smaller amount has no start of 0.3 s; a fresh process has it once, however much data there is."""
    few, most = planted(0.001, start=0.0, wobble=0.0)[1:]
    later = msgspec.structs.replace(
        most, first={index: each + 0.3 for index, each in most.first.items()}, as_run=dict(most.first)
    )
    (without,) = reckon([Candidate("one", amounts=[few, most])], Settings(2**30, 0.0)).totals.values()
    (started,) = reckon([Candidate("one", amounts=[few, later])], Settings(2**30, 0.0)).totals.values()
    for index, seconds in without.items():
        assert started[index] == pytest.approx(seconds + 0.3)


def test_where_epochs_are_too_short_to_be_steady_the_first_one_counts() -> None:
    short = [
        msgspec.structs.replace(each, amounts=[msgspec.structs.replace(one, steady={}) for one in each.amounts])
        for each in (FAST, SLOW)
    ]
    assert not is_steady(short)
    assert decided(*short, step=0.0).recommended == "fast"
    few = msgspec.structs.replace(short[1], name="few", amounts=short[1].amounts[:1])
    among = [FAST, SLOW, few]
    assert is_steady(among), "what ran with little data only does not take the others' steady epochs away"
    assert reckon(among, Settings(2**30)).decide(2**30).recommended == "fast"


def _dear(amount: Amount) -> Amount:
    return msgspec.structs.replace(amount, first={index: 5 * each for index, each in amount.steady.items()})


def test_what_cannot_be_told_apart_is_undecided_and_the_lowest_estimate_is_named() -> None:
    rough = [
        Candidate("a", amounts=planted(0.00100, wobble=0.5)),
        Candidate("b", amounts=planted(0.00105, wobble=0.45, phase=1)),
        Candidate("c", amounts=planted(0.02, wobble=0.5, phase=2)),
    ]
    found = decided(*rough, step=0.0)
    assert found.recommended == "a"
    assert not found.decided
    assert found.rivals == ["b"]


def test_one_round_decides_nothing() -> None:
    single = [
        msgspec.structs.replace(each, amounts=planted(0.001 * (1 + place), rounds=1))
        for place, each in enumerate((FAST, SLOW))
    ]
    assert decided(*single).recommended is None


@given(
    st.lists(
        st.tuples(
            st.floats(1e-5, 0.1),
            st.floats(0, 1),
            st.floats(0, 3),
            st.floats(1, 500),
            st.sampled_from([0.0, 0.5, 2.0]),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(2**22, 2**36),
    st.sampled_from([0.0, 0.001, 0.05, 1.0]),
    st.integers(1, 512),
    st.integers(1, 10**7),
    st.integers(1, 100),
)
@settings(max_examples=60, deadline=None)
def test_a_decision_holds_its_promises(
    drawn: list[tuple[float, float, float, float, float, bool, bool]],
    memory: int,
    step: float,
    batch: int,
    samples: int,
    epochs: int,
) -> None:
    among = [
        Candidate(
            f"s{place}",
            historic=historic,
            ceiling=ceiling,
            lines=place,
            amounts=planted(load, wait=wait, start=start, level=level, slope=slope, wobble=0.02 * (place % 3)),
        )
        for place, (load, wait, start, level, slope, historic, ceiling) in enumerate(drawn)
    ]
    asked = Settings(memory, step, batch, samples, epochs)
    reckoned = reckon(among, asked)
    found = reckoned.decide(memory)
    assert set(found.kinds) == {each.name for each in among}
    allowed = [name for name, kind in found.kinds.items() if kind in CHOICE]
    assert (found.recommended is None) == (not allowed)
    for name in allowed:
        bound = reckoned.memory[name]
        assert bound is not None
        assert bound.high is not None
        assert bound.high <= memory
    if found.recommended:
        assert found.fastest in allowed
        ratio = reckoned.fits.difference(found.recommended, found.fastest or "")
        assert ratio is not None
        assert ratio.value <= 0.0954, "at most 1.1"
        assert {found.kinds[name] for name in found.rivals} <= {"undecided"}, "what may be the fastest is not slower"
    more = reckoned.decide(2 * memory)
    assert set(allowed) <= {name for name, kind in more.kinds.items() if kind in CHOICE}


def test_the_golden_cases_are_what_the_rule_decides() -> None:
    known = golden.read()
    assert len(known) >= 200
    assert golden.made_anew() == known
    assert len({each.recommended for each in known}) > 4
    assert {each.bottleneck for each in known} == {True, False, None}
    assert any(each.rivals for each in known)
    assert set("".join(each.kinds for each in known)) == set("rgsuimkthcofn"), "every kind"


def test_what_a_process_must_be_given_is_said_with_the_strategy() -> None:
    set_first = Candidate("pooled", settings="TF_ENABLE_ONEDNN_OPTS=1", needs="grain", amounts=planted(0.0005))
    said = words.answer("caching", {}, [set_first], Settings(2**30), None, "").because
    assert "Its process needs TF_ENABLE_ONEDNN_OPTS=1 in its environment." in said
    assert "pip install grain" in said
    plain = msgspec.structs.replace(set_first, settings="", needs="")
    assert "environment" not in words.answer("caching", {}, [plain], Settings(2**30), None, "").because


def test_files_that_memory_did_not_hold_were_not_timed() -> None:
    """Three times as fast from memory, for as many samples as it holds; nobody knows how fast a disk is."""
    mapped = msgspec.structs.replace(FAST, name="mapped", held=5000.0)
    assert decided(mapped, SLOW, step=0.0, samples=5000).recommended == "mapped"
    many = decided(mapped, SLOW, step=0.0, samples=5001)
    assert (many.recommended, many.kinds["mapped"]) == ("slow", "time unknown")
    asked = Settings(2**30, 0.0, samples=5001)
    said = words.answer("batching", {}, [mapped, SLOW], asked, None, "")
    assert "their files were timed in memory, which does not hold those of 5001 samples: mapped." in said.because
    assert next(each for each in said.strategies if each.name == "mapped").verdict == (
        "time unknown: its files were read from memory, which held those of 5000 samples and no more"
    )
    alone = words.answer("batching", {}, [mapped], asked, None, "")
    assert alone.recommended is None
    assert "does not hold those of 5001 samples: mapped" in alone.because
    assert "No eligible strategy has been measured" not in alone.because


def test_what_fits_but_is_not_worth_installing_is_counted_as_what_it_is() -> None:
    engine = Candidate("engine", needs="grain", amounts=planted(0.0019))
    said = words.answer("batching", {}, [engine, SLOW], Settings(2**30, 0.0), None, "")
    assert said.recommended == "slow"
    assert "slow is the only strategy that is certain to fit, besides 1 not worth installing." in said.because
    assert said.because.endswith("Left out, as they fit but are not worth installing: engine.")


def test_buffers_that_no_measured_amount_fills_grow_with_the_batch_too() -> None:
    """Fourteen batches of 32, measured with fewer samples than these hold."""
    held, each = 40 * MIB, 0.5 * MIB
    needed = {count: {index: held + each * min(count, 448) for index in range(4)} for count in (40, 160, 320)}
    law_ = law(needed, 448)
    assert law_.kind == "saturating"
    amounts = [Amount(count, count // 32, values) for count, values in needed.items()]
    found = Candidate("queue", capacity=448, amounts=amounts)
    for batch in (64, 256):
        bound = memory_of(found, law_, Settings(2**30, 0.0, batch, samples=10_000))
        assert bound
        assert bound.high
        assert bound.high >= held + each * 14 * batch


def test_what_may_lose_samples_has_another_output() -> None:
    found = candidates.candidates([], "read_order", {"record": "jpeg"})
    kinds = reckon(found, Settings(2**30)).barred
    assert kinds["parallel_reads_ignore_errors"] == "other output"
    assert kinds["parallel_reads"] == "not measured"
    (one,) = (each for each in found if each.name == "parallel_reads_ignore_errors")
    assert one.tier == "may lose samples"


def test_what_seems_slower_and_may_be_the_fastest_is_undecided() -> None:
    """Its own interval excludes that it is as fast, but not one for as many as it was picked from."""
    found = [
        msgspec.structs.replace(
            SLOW, name=f"s{place}", amounts=planted(0.0022 if place else 0.002, wobble=0.05, phase=place)
        )
        for place in range(6)
    ]
    reckoned = reckon(found, Settings(2**30, 0.0))
    decision = reckoned.decide(2**30)
    seeming = [
        name
        for name in decision.rivals
        if (found_of := reckoned.fits.difference(name, decision.fastest or "")) and found_of.interval()[0] > 1
    ]
    assert seeming, "the case that this is about"
    said = words.answer("batching", {}, found, Settings(2**30, 0.0), None, "")
    assert "may be faster" in said.because
    for each in said.strategies:
        if each.name in decision.rivals:
            assert each.kind == "undecided"
            assert each.verdict.startswith("undecided (")


def test_strategies_that_all_failed_are_not_said_to_be_unmeasured() -> None:
    bad = msgspec.structs.replace(SLOW, problem="failed in 1 of 4 trials: ValueError")
    for measure, end in (("", "went wrong."), ("measure it", "went wrong. To measure them: measure it")):
        said = words.answer("batching", {}, [bad], Settings(2**30), None, measure).because
        assert said == f"No eligible strategy has been measured without a failure: slow {end}"
    said = words.answer("batching", {}, [Candidate("new")], Settings(2**30), None, "").because
    assert said == "No eligible strategy has been measured."


def test_what_was_measured_with_code_that_is_gone_is_not_said_to_be_unmeasured() -> None:
    gone = msgspec.structs.replace(FAST, name="gone", problem="not measured: this version lacks its code")
    run = made.run({"path_generator": made.BATCHING["path_generator"]})
    source = candidates.source(run, {"augment": "off"}, [gone, SLOW], "box")
    said = words.answer("batching", {}, [gone, SLOW], Settings(2**30), source, "")
    assert said.recommended == "slow"
    assert "not measured there" not in said.because
    lacking = words.answer("batching", {}, [gone, SLOW, Candidate("new")], Settings(2**30), source, "")
    assert "what could be used and is not measured there: new." in lacking.because
