"""How many places a change touches: each test adds one thing to a copy, and looks for it everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SHOWN = """
import sys
from pathlib import Path

from benchmarks import selection
from loaders import _rows, _terminal
from loaders._report import export, page, sets
from tests.report.runs import run_of, write_log
from tests.test_rows import record

records = [*run_of("a"), *(record("planted", index, time=0.5, peak=30, run="a") for index in range(2))]
write_log(Path(sys.argv[1]), records)
found = sets.collect(Path(sys.argv[1]))
place = Path(sys.argv[2])
(place / "page").write_text(page.render(found), "utf-8")
(place / "csv").write_text(export.tidy(found), "utf-8")
(place / "asv").write_text(str(selection.Comparison.params), "utf-8")
_terminal.show_comparison(_rows.comparison(records))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the suite is made of."""
    root = tmp_path / "copy"
    for room in ("loaders", "benchmarks", "tests"):
        shutil.copytree(ROOT / room, root / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def _add(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text('utf-8')}\n\n{text}", "utf-8")


def _run(copy: Path, *arguments: str) -> str:
    variables = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _shown(copy: Path) -> dict[str, str]:
    """Return what is shown of a run in which a strategy ``planted`` took part."""
    place = copy / "shown"
    place.mkdir()
    terminal = _run(copy, "-c", SHOWN, str(copy / "results"), str(place))
    return {"terminal": terminal, **{path.name: path.read_text("utf-8") for path in place.iterdir()}}


def test_a_strategy_is_added_in_one_place(copy: Path) -> None:
    _add(
        copy / "loaders" / "questions" / "selection.py",
        '@variant\ndef planted(job: Job[Source]) -> Iterable[Batch]:\n    """Put here by a test."""\n    return []\n',
    )
    shown = _shown(copy)
    assert all("planted" in text for text in shown.values()), [name for name in shown if "planted" not in shown[name]]
    assert "Put here by a test." in shown["page"]
    assert "planted Put here by a test." in " ".join(_run(copy, "-m", "loaders", "list").split())
    assert "selection-planted" in _run(copy, "-m", "pytest", "--collect-only", "-q", "tests/test_contract.py")


def test_a_module_of_strategies_is_added_in_one_place(copy: Path) -> None:
    before = _batching(copy)
    (copy / "loaders" / "questions" / "batching" / "an_engine.py").write_text(
        "from collections.abc import Iterable\n\n"
        "from loaders._registry import Batch, Job, variant\n"
        "from loaders.questions.batching import Files, _batch\n\n\n"
        '@variant\ndef planted(job: Job[Files]) -> Iterable[Batch]:\n    """Put here by a test."""\n'
        "    return [_batch(job.inputs, [0])]\n",
        "utf-8",
    )
    assert [each["name"] for each in _batching(copy)] == [*(each["name"] for each in before), "planted"]
    assert "batching-planted" in _run(copy, "-m", "pytest", "--collect-only", "-q", "tests/test_contract.py")


def _batching(copy: Path) -> list[dict[str, str]]:
    """Return the strategies of ``batching`` as they are listed."""
    strategies: list[dict[str, str]] = json.loads(_run(copy, "-m", "loaders", "list", "--json"))["batching"][
        "strategies"
    ]
    return strategies


def test_a_claim_is_added_in_one_place(copy: Path) -> None:
    _add(
        copy / "loaders" / "_claims" / "selection.py",
        '@claim("C9", "Planted by a test.")\ndef planted(figures: Figures) -> Found:\n    """Rule of a test."""\n'
        '    return joined([ratio(figures, "selection", "numpy_to_list", "numpy_to_numpy", "peaks", below(0.5))])\n',
    )
    shown = _shown(copy)["page"]
    for words in ("C9", "Planted by a test.", "rule of a test"):
        assert words in shown, words


def test_a_chart_is_added_in_one_place(copy: Path) -> None:
    _add(
        copy / "loaders" / "_report" / "charts.py",
        "def planted_chart(_: Comparison, rows: Sequence[Row]) -> Chart | None:\n"
        '    return Chart(f"A chart of {len(rows)} strategies, planted") if rows else None\n\n\n'
        "CHARTS.append(planted_chart)\n",
    )
    assert "A chart of 3 strategies, planted" in _shown(copy)["page"]
