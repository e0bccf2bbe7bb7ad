from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job
from loaders._trial import Record
from tests.conftest import Measure

QUESTION = _registry.find_question("record_format")
WARM, COLD = {"page_cache": "warm", "data": "x16"}, {"page_cache": "cold", "data": "x16"}


def _job(corpus: Corpus, converted: Path) -> Job[Any]:
    converted.mkdir()
    return Job(corpus, QUESTION.prepare(corpus, WARM, 1), WARM, 1, directory=converted)


def _trial(measure: Measure, corpus: Corpus, strategy: str, case: dict[str, str], **more: Any) -> Record:
    return measure(_compare.plan("record_format", corpus, **more), strategy, case)


def test_a_wrong_box_is_caught(corpus: Corpus, tmp_path: Path) -> None:
    variant = _registry.find_variant("record_format", "separate_files")
    job = _job(corpus, tmp_path / "converted")
    batches = [tuple(each.numpy() for each in batch) for batch in variant.build(job)]
    QUESTION.check(job, variant, batches)
    batches[5][2][0, 0, 0] += 0.01
    with pytest.raises(WrongOutputError, match="sample 5"):
        QUESTION.check(job, variant, batches)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the page cache is asked on Linux only")
@pytest.mark.parametrize("case", [WARM, COLD])
def test_a_trial_measures_conversion_and_reading_apart(corpus: Corpus, measure: Measure, case: dict[str, str]) -> None:
    record = _trial(measure, corpus, "serialize_tensor", case)
    if record.status == "skipped":
        pytest.skip(record.message)
    metrics = record.metrics
    assert record.status == "ok", record.message
    assert metrics.convert_time
    assert metrics.convert_memory is not None
    assert metrics.disk_bytes
    assert metrics.disk_bytes > 10 * sum(Path(path).stat().st_size for path in corpus.image_paths)
    share = record.environment.page_cache
    assert share is not None
    assert share <= 0.02 if case == COLD else share >= 0.98


def test_separate_files_convert_nothing(corpus: Corpus, measure: Measure) -> None:
    metrics = _trial(measure, corpus, "separate_files", WARM).metrics
    assert metrics.convert_time is None
    assert metrics.disk_bytes == sum(Path(path).stat().st_size for path in corpus.image_paths)


PLANTED = '''
from loaders import variant
def convert(job):
    {body}
@variant(question="record_format", convert=convert)
def planted(job):
    """Planted by a test."""
    return []
'''


def test_a_conversion_that_fails_says_why(corpus: Corpus, measure: Measure, tmp_path: Path, forget: None) -> None:
    file = tmp_path / "planted.py"
    file.write_text(PLANTED.format(body='raise OSError("no room left")'))
    _registry.load_files([file])
    record = _trial(measure, corpus, "planted", WARM, outside=(str(file),))
    assert record.status == "failed"
    assert "the conversion failed: OSError: no room left (planted.py, line 4, in convert)" in record.message
