from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job, Meter
from loaders._trial import Record
from tests.conftest import Measure

QUESTION = _registry.find_question("python_map")
DECODE, SCALAR, ARRAY = {"work": "decode"}, {"work": "scalar"}, {"work": "array"}


def _trial(measure: Measure, corpus: Corpus, strategy: str, case: dict[str, str], **more: Any) -> Record:
    return measure(_compare.plan("python_map", corpus, **more), strategy, case)


def _job(corpus: Corpus, case: dict[str, str]) -> Job[Any]:
    return Job(corpus, QUESTION.prepare(corpus, case, 1), case, 1)


PLANTED = '''
from loaders import variant
@variant(question="python_map")
def planted(job):
    """Planted by a test."""
    import numpy as np
    import tensorflow as tf
    def body(place):
        {body}
    def mapped(place):
        return tf.numpy_function(body, [place], tf.float32), place[tf.newaxis]
    return tf.data.Dataset.range(job.inputs.count).map(mapped, num_parallel_calls=1)
'''


def _planted(measure: Measure, corpus: Corpus, tmp_path: Path, body: str) -> Record:
    file = tmp_path / "planted.py"
    file.write_text(PLANTED.format(body=body))
    _registry.load_files([file])
    return _trial(measure, corpus, "planted", {"work": "gil"}, outside=(str(file),), deadline=200.0)


@pytest.mark.python
def test_a_body_that_raises_is_named_with_its_own_line(
    corpus: Corpus, measure: Measure, tmp_path: Path, forget: None
) -> None:
    record = _planted(measure, corpus, tmp_path, "return np.full(1, 1 / (int(place) - 5), np.float32)")
    assert record.status == "failed"
    assert "ZeroDivisionError: " in record.message
    assert "(planted.py, line 9, in body), raised in a body that TensorFlow called" in record.message


@pytest.mark.parametrize("body", ["return np.zeros((2,), np.float32)", "return np.zeros((1,), np.float64)"])
def test_a_body_with_another_shape_or_dtype_is_no_result(
    corpus: Corpus,
    measure: Measure,
    tmp_path: Path,
    body: str,
    forget: None,
) -> None:
    record = _planted(measure, corpus, tmp_path, body)
    assert record.status in ("wrong_output", "failed"), record.message


@pytest.mark.slow
def test_bodies_in_flight_are_counted_not_assumed(corpus: Corpus, measure: Measure) -> None:
    one, eight = (
        _trial(measure, corpus, name, ARRAY, epochs=1).metrics
        for name in ("py_function_1", "py_function_8_private_threads")
    )
    assert one.bodies_in_flight == 1
    assert eight.bodies_in_flight
    assert 1 < eight.bodies_in_flight <= 8


@pytest.mark.slow
def test_a_slow_consumer_lets_elements_wait(corpus: Corpus, measure: Measure) -> None:
    for _ in range(3):  # a busy machine keeps the bodies from filling the buffer: it only lowers what waits at most
        metrics = _trial(measure, corpus, "py_function_4_prefetch_8", ARRAY).metrics
        if metrics.waiting and metrics.waiting >= 8:
            break
    assert metrics.waiting
    assert metrics.waiting >= 8
    assert metrics.waiting_bytes == pytest.approx(metrics.waiting * 40 * 2**20, rel=0.01)
    assert metrics.epoch_time
    assert metrics.epoch_time > 24 * 0.1


def test_the_meter_counts_concurrency_of_known_size() -> None:
    meter = Meter()
    for running in range(5):
        with meter:
            pass
        assert meter.most_running == 1
        assert meter.most_waiting == running + 1
    meter.take(5)
    with meter, meter, meter:
        pass
    assert meter.most_running == 3
    assert meter.most_waiting == 5


@pytest.mark.parametrize("fault", ["twice", "missing", "another value", "wrong dtype"])
def test_a_wrong_element_is_caught(corpus: Corpus, fault: str) -> None:
    job, variant = _job(corpus, SCALAR), _registry.find_variant("python_map", "py_function_1")
    right: list[Any] = [(np.array([place], np.float32), np.array([place])) for place in range(job.inputs.count)]
    QUESTION.check(job, variant, right)
    faulty = {
        "twice": [*right, right[3]],
        "missing": right[1:],
        "another value": [(right[0][0] + 1, right[0][1]), *right[1:]],
        "wrong dtype": [(right[0][0].astype(np.float64), right[0][1]), *right[1:]],
    }[fault]
    with pytest.raises(WrongOutputError):
        QUESTION.check(job, variant, faulty)


def test_rewriting_is_off_in_the_sweep_and_on_as_users_run_it(corpus: Corpus) -> None:
    def options(strategy: str) -> Any:
        job = _job(corpus, DECODE)
        built: Any = _registry.find_variant("python_map", strategy).build(job)
        return built.options().experimental_optimization

    assert options("native_4").map_parallelization is False
    assert options("native_4").inject_prefetch is False
    assert options("native_default").map_parallelization is None
