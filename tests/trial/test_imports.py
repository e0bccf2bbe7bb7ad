from __future__ import annotations

from pathlib import Path

import pytest

from loaders._trial import Trial, imports
from loaders._trial.watch import ATTEMPTS
from tests.conftest import Strategy

MIB = 2**20


@pytest.mark.slow
def test_a_spike_before_an_import_is_the_whole_peak(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import is found by running, at whatever depth, and done beforehand the next time; the spike stays."""
    (tmp_path / "shallow.py").write_text("import deeper")
    (tmp_path / "deeper.py").write_text("import skimage.transform\nimport time\ntime.sleep(4)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    body = "spike = np.ones(256 * 2**17)\ndel spike\n__import__('shallow')\nreturn right"
    record = strategy(body)
    assert record.status == "ok", record.message
    assert record.metrics.peak_memory == pytest.approx(256 * MIB, rel=0.01)
    assert record.metrics.retained_memory == pytest.approx(0, abs=MIB)
    assert record.metrics.epoch_time is not None
    assert record.metrics.epoch_time < 4
    again = strategy(body)  # remembered: the first run is good at once
    assert again.seconds < record.seconds


def test_no_further_epoch_is_run_once_an_import_has_made_all_void(strategy: Strategy, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "unforeseen.py").touch()
    epochs = tmp_path / "epochs"
    record = strategy(
        f"with open({str(epochs)!r}, 'a') as file:\n    file.write('.')\n"
        f"sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\nimport unforeseen\nreturn iter(right)",
        epochs=3,
    )
    assert record.message.startswith("still imports unforeseen while it is measured")
    assert len(epochs.read_text()) == ATTEMPTS


@pytest.mark.python
def test_an_import_that_cannot_come_first_is_no_measurement(strategy: Strategy, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "unforeseen.py").touch()
    record = strategy(f"sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\nimport unforeseen\nreturn right")
    assert record.status == "failed"
    assert record.message.startswith("still imports unforeseen while it is measured")


@pytest.mark.parametrize("module", ["selection.py", "batching/__init__.py", "batching/pool.py", "batching/new.py"])
def test_what_was_seen_to_be_imported_is_forgotten_when_the_code_of_the_question_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setattr(imports, "__file__", str(tmp_path / "_trial" / "imports.py"))
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
    (tmp_path / "questions" / "batching").mkdir(parents=True)
    for name in ("selection.py", "batching/__init__.py", "batching/pool.py"):
        (tmp_path / "questions" / name).write_text("before")
    question = module.partition("/")[0].removesuffix(".py")
    trial = Trial(question=question, strategy="any", case={}, corpus="", seed=1)
    imports.remember(trial, ["seen"])
    assert imports.known(trial) == ["seen"]
    (tmp_path / "questions" / module).write_text("after")
    assert imports.known(trial) == []
