from __future__ import annotations

import msgspec
import pytest

from loaders._check import show
from loaders._check.judge import Failures, Judgement, Verdict
from loaders._check.run import LEFT_OUT, Outcome
from loaders._stats import Estimate

MIB = 2**20


def _judged(verdict: Verdict, value: float, low: float | None, high: float | None, a: float, b: float) -> Judgement:
    return Judgement(verdict, Estimate(value, low, high, 8), a, b, 8)


SLOWER = Outcome(
    "resize.opencv_linear",
    _judged("slower", 1.1, 1.07, 1.13, 0.1, 0.11),
    _judged("no difference", 0.0, -0.1 * MIB, 0.1 * MIB, 20 * MIB, 20 * MIB),
    start="forked",
)
SAME = Outcome(
    "resize.tf_image",
    _judged("no difference", 1.0, 0.98, 1.02, 0.1, 0.1),
    _judged("undecided", 3 * MIB, None, None, 20 * MIB, 23 * MIB),
)
BROKEN = Outcome("resize.<b>", None, None, "B failed: ValueError: a | b\nnext", True, Failures(0, 8, 8, 8))
ABSENT = Outcome("resize.late", None, None, "not measured: the time was up")

LACKING = Outcome("batching.torch_0", None, None, skipped="torch is not installed: run `make engines`")


def test_what_got_worse_comes_first_with_its_interval() -> None:
    first, second, third, fourth = show.lines([SAME, ABSENT, BROKEN, SLOWER])
    assert first[0] == "resize.opencv_linear"
    assert first[1:] == (
        "100 ms to 110 ms",
        "slower: +10.0 % (+7.0 to +13.0)",
        "20.0 MiB to 20.0 MiB",
        "no difference: +0.0 MiB (-0.1 to +0.1)",
        "8",
        "forked",
        "–",
    )
    assert second[-1] == "more often: B 8 of 8, A 0 of 8"
    assert second[:2] == ("resize.<b>", "B failed: ValueError: a | b\nnext")
    assert third[4] == "undecided: +3.0 MiB, too few blocks"
    assert fourth[0] == "resize.late"


@pytest.mark.parametrize(
    ("enough", "said"),
    [(20, "; 20 blocks would decide"), (48, "; 48 blocks would decide"), (49, "would not decide"), (None, "would not")],
)
def test_no_more_blocks_are_asked_for_than_a_check_ever_runs(enough: int | None, said: str) -> None:
    change = Estimate(1.01, 0.9, 1.1, 8)
    words = show.time_in_words(Judgement("undecided", change, 0.1, 0.1, 8, enough))
    assert said in words
    assert "48 blocks" in words or enough == 20
    assert "blocks" not in show.time_in_words(Judgement("no difference", change, 0.1, 0.1, 8))


def test_the_summary_says_what_is_confirmed_open_and_missing() -> None:
    assert show.summary([SLOWER, BROKEN]) == (
        "2 confirmed regressions: resize.opencv_linear, resize.<b>; B fails more often: resize.<b>."
    )
    assert show.summary([SAME, ABSENT]) == (
        "No confirmed regression; undecided: resize.tf_image; not measured: resize.late."
    )
    assert show.summary([LACKING]) == (
        "No confirmed regression; skipped (torch is not installed: run `make engines`): batching.torch_0."
    )
    blind = msgspec.structs.replace(SAME, memory=None)
    assert show.summary([blind]) == (
        "No confirmed regression; memory not judged, as it could not be read: resize.tf_image."
    )
    assert show.summary([]) == "No confirmed regression."


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        (Failures(0, 3, 15, 15), True),
        (Failures(0, 0, 4, 4), False),
        (Failures(3, 3, 20, 20), False),
        (Failures(0, 4, 96, 96), False),
    ],
)
def test_what_may_fail_more_often_is_said(failures: Failures, *, said: bool) -> None:
    text = show.summary([msgspec.structs.replace(SLOWER, failures=failures)])
    assert ("whether B fails more often is undecided: resize.opencv_linear" in text) == said


def test_markdown_folds_the_noise_and_keeps_a_message_in_its_cell() -> None:
    text = show.markdown([SLOWER, SAME, BROKEN], "HEAD against main")
    opened, _, folded = text.partition("<details>")
    assert text.startswith("## HEAD against main\n")
    assert "| resize.opencv_linear |" in opened
    assert "| resize.&lt;b> | B failed: ValueError: a \\| b next |" in opened
    assert "resize.tf_image |" in folded
    assert "in the order A B B A" in folded
    noted = show.markdown([SAME], "HEAD against main", ["only main has selection.x: nothing to compare with"])
    assert "\n\nNote: only main has selection.x: nothing to compare with.\n\n" in noted
    assert show.markdown([SAME], "x", ["a <b>\nc"] * 3).count("Note: a &lt;b> c.\n") == 1


def test_what_neither_side_runs_here_takes_no_line() -> None:
    assert [name for name, *_ in show.lines([LACKING, SAME])] == [SAME.name]
    assert "torch_0 |" not in show.markdown([LACKING, SAME], "HEAD against main")


def test_why_trials_fail_is_said_where_they_are_counted() -> None:
    failures = Failures(0, 2, 8, 8)
    (line,) = show.lines([msgspec.structs.replace(SLOWER, message="B timed out", failures=failures)])
    assert line[-1] == "B 2 of 8, A 0 of 8; B timed out"


def test_what_is_left_out_is_counted_and_takes_no_line() -> None:
    left_out = [Outcome(f"resize.{each}", None, None, skipped=LEFT_OUT) for each in "abc"]
    text = show.markdown([SAME, *left_out], "HEAD against main")
    assert "; may be affected, but not measured: 3 more (--all measures them)." in text
    assert [name for name, *_ in show.lines([SAME, *left_out])] == [SAME.name]


def test_environments_that_differ_are_said_once() -> None:
    said = "figures may differ because the sides' environments do (torch 2.8 in A and none in B)"
    outcomes = [msgspec.structs.replace(each, environments="torch 2.8 in A and none in B") for each in (SLOWER, SAME)]
    assert show.summary(outcomes).count(said) == 1


def test_the_method_says_that_epochs_alternate_only_where_both_sides_can() -> None:
    assert "and both sides can run them in turn, those of two trials alternate" in show.METHOD
