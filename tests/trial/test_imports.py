from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Strategy

MIB = 2**20


def test_a_spike_before_an_import_is_the_whole_peak(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import is found by running, at whatever depth, and done beforehand the next time; the spike stays."""
    (tmp_path / "shallow.py").write_text("import deeper")
    (tmp_path / "deeper.py").write_text("import skimage.transform\nimport time\ntime.sleep(0.7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    body = "spike = np.ones(256 * 2**17)\ndel spike\n__import__('shallow')\nreturn right"
    record = strategy(body)
    assert record.status == "ok", record.message
    assert record.metrics.peak_memory == pytest.approx(256 * MIB, rel=0.01)
    assert record.metrics.retained_memory == pytest.approx(0, abs=MIB)
    assert record.metrics.epoch_time is not None
    assert record.metrics.epoch_time < 0.7
    again = strategy(body)  # remembered: the first run is good at once
    assert again.seconds < record.seconds


def test_an_import_that_cannot_come_first_is_no_measurement(strategy: Strategy, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "unforeseen.py").touch()
    record = strategy(f"sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\nimport unforeseen\nreturn right")
    assert record.status == "failed"
    assert record.message.startswith("still imports unforeseen while it is measured")
