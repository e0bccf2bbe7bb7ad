from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from loaders import _registry, calibration
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._trial import Record, Trial, run_trial
from loaders._trial.drain import drain
from loaders._trial.timing import epoch_time

MIB = 2**20


def test_no_strategy_pays_for_tensorflow() -> None:
    for each in _registry.variants("calibration").values():
        assert not {"tensorflow", "cv2"} & _registry.imports_of(each.build).keys()


def test_output_that_is_not_the_numbers_is_wrong(corpus: Corpus, tmp_path: Path) -> None:
    asked, variant = _registry.find_question("calibration"), _registry.find_variant("calibration", "nothing")
    job = _registry.Job(corpus, asked.prepare(corpus, {}, 1), {}, 1)
    numbers = np.arange(400)
    asked.check(job, variant, [numbers[:100], numbers[100:]])
    for wrong in ([numbers[:399]], [numbers, numbers[:1]], [numbers[::-1]], []):
        with pytest.raises(WrongOutputError, match="missing or wrong"):
            asked.check(job, variant, wrong)


@pytest.mark.parametrize("strategy", ["wait_first", "wait_500ms"])
def test_known_times_are_read_within_one_percent(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """Held against what the waits took by the strategy's own account: a busy machine may wake them late."""
    waited: list[float] = []
    wait = calibration._wait

    def witnessed(seconds: float) -> None:
        before = time.monotonic()
        wait(seconds)
        waited.append(time.monotonic() - before)

    monkeypatch.setattr(calibration, "_wait", witnessed)
    errors = []
    for _ in range(5):
        waited.clear()
        job = _registry.Job(None, calibration.Work(np.arange(400)), {}, 1)  # type: ignore[arg-type]
        (timeline,), _ = drain(lambda job=job: getattr(calibration, strategy)(job))  # type: ignore[misc]
        errors.append(epoch_time(timeline) / sum(waited) - 1)
        assert sum(waited) >= _registry.find_variant("calibration", strategy).truth["epoch_time"]
    assert abs(statistics.median(errors)) < 0.01


def _trials(corpus: Corpus, strategy: str, count: int = 3) -> list[Record]:
    made = [run_trial(Trial("calibration", strategy, {}, str(corpus.root), 1), corpus) for _ in range(count)]
    assert [each.status for each in made] == ["ok"] * count, made[0].message
    assert "TensorFlow" not in made[0].environment.threads
    return made


@pytest.mark.parametrize(
    "strategy", ["array_256_kept", "array_256_freed", "child_process", "two_bodies", "file_of_1_mib", "freed_and_held"]
)
def test_known_sizes_are_read_within_one_percent(corpus: Corpus, strategy: str) -> None:
    if sys.platform != "linux":
        pytest.skip("elsewhere peaks are sampled, and malloc is not asked")
    made = _trials(corpus, strategy)
    for metric, truth in _registry.find_variant("calibration", strategy).truth.items():
        read = statistics.median(getattr(each.metrics, metric) for each in made)
        assert read == pytest.approx(truth, rel=0.01, abs=MIB / 16), metric


@pytest.mark.parametrize(
    ("strategy", "verdict"),
    [
        ("leak_objects", "growing, in use"),
        ("leak_malloc", "growing, in use"),
        ("warm_up", "plateau"),
        ("steady", "flat"),
    ],
)
def test_planted_leaks_are_found_with_their_slope_and_controls_are_not(
    corpus: Corpus, strategy: str, verdict: str
) -> None:
    (made,) = _trials(corpus, strategy, 1)
    growth = made.metrics.memory_growth
    assert growth is not None
    assert growth.verdict == verdict
    truth = _registry.find_variant("calibration", strategy).truth["memory_growth"]
    assert growth.slope == pytest.approx(truth, rel=0.15, abs=4096)
