from __future__ import annotations

import msgspec
import pytest

from loaders import _registry
from loaders._report import claims
from loaders._report.claims import CLAIMS, all_of, judged, less, more, over
from loaders._rows import Comparison, Row, Scaling
from loaders._stats import Estimate
from loaders._trial.record import Environment

MIB = 2**20


def _about(value: float, spread: float = 0.02) -> Estimate:
    return Estimate(value, value * (1 - spread), value * (1 + spread), 6)


def _comparison(question: str, *rows: Row, scaling: list[Scaling] | None = None) -> Comparison:
    return Comparison(
        question, "", "r", "full", "d", "now", 6, "epoch_time", 1, Environment(), list(rows), scaling or []
    )


def _row(question: str, strategy: str, case: dict[str, str] | None = None, **more_: object) -> Row:
    default = _registry.find_question(question).default_case
    row = Row(question, strategy, "", "identical", None, {**default, **(case or {})}, False, "ok", 6, 6)
    return msgspec.structs.replace(row, **more_)


def _verdict(claim: str, *comparisons: Comparison) -> str:
    return next(each.verdict for each in judged(comparisons) if each.claim.id == claim)


def test_every_claim_of_the_catalogue_is_there_once() -> None:
    expected = (
        [f"A{n}" for n in range(1, 9)]
        + [f"B{n}" for n in range(1, 12)]
        + [f"C{n}" for n in range(1, 6)]
        + [f"D{n}" for n in range(1, 5)]
    )
    assert [claim.id for claim in CLAIMS] == expected
    assert all(claim.question in _registry.questions() and claim.rule and claim.text for claim in CLAIMS)


def test_without_results_everything_is_undecided_and_says_what_is_missing() -> None:
    for each in judged([]):
        assert each.verdict == "undecided here"
        assert "was not run" in each.measured


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.5, "holds"), (1.0, "does not hold"), (1.5, "does not hold"), (0.995, "does not hold"), (0.9, "undecided here")],
)
def test_less_asks_for_the_whole_interval(ratio: float, verdict: str) -> None:
    spread = 0.02 if ratio != 0.9 else 0.15
    assert less(_about(ratio, spread)) == verdict


@pytest.mark.parametrize(("ratio", "verdict"), [(1.5, "holds"), (1.0, "undecided here"), (0.9, "does not hold")])
def test_more_asks_for_the_whole_interval(ratio: float, verdict: str) -> None:
    assert more(_about(ratio)) == verdict


def test_a_single_sample_decides_nothing() -> None:
    assert less(Estimate(0.1, None, None, 1)) == more(Estimate(9, None, None, 1)) == "undecided here"


@pytest.mark.parametrize(
    ("ratio", "than", "verdict"),
    [(0.96, 1.0, "does not hold"), (0.8, 1.0, "undecided here"), (1.0, 1.25, "holds"), (1.3, 1.25, "does not hold")],
)
def test_what_the_instruments_cannot_tell_from_none_is_no_gain(ratio: float, than: float, verdict: str) -> None:
    unresolved = msgspec.structs.replace(_about(ratio, 0.01), resolved=False)
    assert less(unresolved, than, margin=0.9 if than == 1 else 1.0) == verdict
    assert more(unresolved) != "holds"


@pytest.mark.parametrize(("deleting", "verdict"), [(1.0, "holds"), (2.0, "does not hold"), (1.09, "undecided here")])
def test_deleting_is_held_against_not_deleting(deleting: float, verdict: str) -> None:
    rows = [
        _row("selection", "list_to_list", {"images": "500"}, peak=_about(deleting * 100 * MIB)),
        _row("selection", "list_skipping", {"images": "500"}, peak=_about(100 * MIB)),
    ]
    assert _verdict("C5", _comparison("selection", *rows)) == verdict


def test_parts_make_a_whole() -> None:
    assert all_of("holds", "holds") == "holds"
    assert all_of("holds", "does not hold") == "holds in part"
    assert all_of("does not hold", "does not hold") == "does not hold"
    assert all_of("holds", "undecided here") == "undecided here"


def test_a_ratio_of_two_estimates_is_as_uncertain_as_both() -> None:
    found = over(_about(2.0, 0.1), _about(1.0, 0.1))
    assert found.value == 2.0
    assert found.low == pytest.approx(1.8 / 1.1)
    assert found.high == pytest.approx(2.2 / 0.9)


@pytest.mark.parametrize(("ratio", "verdict"), [(10.9, "holds"), (9.0, "does not hold"), (10.1, "undecided here")])
def test_bytes_on_disk(ratio: float, verdict: str) -> None:
    rows = [
        _row("record_format", "serialize_tensor", disk=_about(ratio * MIB, 0.01)),
        _row("record_format", "encoded_bytes", disk=Estimate(MIB, MIB, MIB, 6)),
    ]
    assert _verdict("B4", _comparison("record_format", *rows)) == verdict


@pytest.mark.parametrize(
    ("interleave", "parallel", "verdict"),
    [
        ("growing, in use", "plateau", "holds"),
        ("growing, held by the allocator", "plateau", "does not hold"),
        ("plateau", "plateau", "does not hold"),
        (None, "plateau", "undecided here"),
    ],
)
def test_a_leak_is_growth_in_use_and_nothing_else(interleave: str | None, parallel: str, verdict: str) -> None:
    case = {"record": "tensor"}
    rows = [
        _row("read_order", "interleave", case, growth=interleave, level=_about(MIB)),
        _row("read_order", "parallel_reads", case, growth=parallel, level=_about(MIB)),
    ]
    assert _verdict("B7", _comparison("read_order", *rows)) == verdict


@pytest.mark.parametrize(
    ("per_image", "verdict"), [(2 * MIB, "holds"), (0.6 * MIB, "holds in part")], ids=["too much", "fits after all"]
)
def test_loading_everything(per_image: float, verdict: str) -> None:
    scaling = [
        Scaling(name, _about(per_image), _about(12.0), []) for name in ("load_all", "load_all_from_tensor_slices")
    ]
    assert _verdict("D1", _comparison("batching", scaling=scaling)) == verdict


def test_a_strategy_that_failed_decides_nothing_and_is_named() -> None:
    failed = msgspec.structs.replace(_row("record_format", "serialize_tensor"), samples=0, status="over budget: 9 GiB")
    found = next(each for each in judged([_comparison("record_format", failed)]) if each.claim.id == "B4")
    assert found.verdict == "undecided here"
    assert "serialize_tensor: over budget: 9 GiB" in found.measured


def test_a_rule_that_is_wrong_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict comes from the rule: another rule, another verdict."""
    rows = [
        _row("record_format", name, disk=_about(size))
        for name, size in (("serialize_tensor", 11.0), ("encoded_bytes", 1.0))
    ]
    monkeypatch.setattr(claims, "more", lambda *_: "does not hold")
    assert _verdict("B4", _comparison("record_format", *rows)) == "does not hold"
