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
    own = {"PYTHONPATH": str(copy), "LOADERS_RESULTS": str(copy / "results"), "LOADERS_MACHINE": "copy"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _shown(copy: Path) -> dict[str, str]:
    """Return what is shown of a run in which a strategy ``planted`` took part."""
    place = copy / "shown"
    place.mkdir()
    terminal = _run(copy, "-c", SHOWN, str(copy / "results"), str(place))
    return {"terminal": terminal, **{path.name: path.read_text("utf-8") for path in place.iterdir()}}


@pytest.mark.slow
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


@pytest.mark.slow
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
    listed = [each["name"] for each in _batching(copy)]
    assert [name for name in listed if name != "planted"] == [each["name"] for each in before]
    assert "batching-planted" in _run(copy, "-m", "pytest", "--collect-only", "-q", "tests/test_contract.py")


def _batching(copy: Path) -> list[dict[str, str]]:
    """Return the strategies of ``batching`` as they are listed."""
    strategies: list[dict[str, str]] = json.loads(_run(copy, "-m", "loaders", "list", "--json"))["batching"][
        "strategies"
    ]
    return strategies


@pytest.mark.slow
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


def _measured(copy: Path, question: str) -> dict[str, str]:
    """Compare a question for real, once, and return what is shown of it."""
    terminal = _run(copy, "-m", "loaders", "compare", question, "--size", "tiny", "--rounds", "1", "--quick")
    _run(copy, "-m", "loaders", "report", "--out", "shown.html")
    asv = _run(copy, "-c", f"from benchmarks.{question} import Comparison as it; print(it.params, sorted(vars(it)))")
    listed = _run(copy, "-m", "loaders", "list", "--json")
    page, figures = (copy / f"shown.{kind}" for kind in ("html", "csv"))
    return {
        "terminal": terminal,
        "page": page.read_text("utf-8"),
        "csv": figures.read_text("utf-8"),
        "asv": asv,
        "list": listed,
    }


@pytest.mark.slow
def test_a_figure_is_added_in_two_places(copy: Path) -> None:
    record, reading = copy / "loaders/_trial/metrics.py", copy / "loaders/_trial/assemble.py"
    field = (
        "    planted_time: Annotated[\n"
        '        Seconds | None, figure("s", "A test\'s.", name="planted", heading="planted words", tracked=True)\n'
        "    ] = None\n"
    )
    before, class_line, after = record.read_text("utf-8").partition("class Metrics(")
    first = after.index("    epoch_time:")
    record.write_text(before + class_line + after[:first] + field + after[first:], "utf-8")
    text = reading.read_text("utf-8")
    assert text.count("metrics=Metrics(") == 1
    reading.write_text(text.replace("metrics=Metrics(", "metrics=Metrics(planted_time=0.25,"), "utf-8")
    shown = _measured(copy, "selection")
    assert "track_planted_time" in shown["asv"]
    assert '"planted_time": "seconds"' in shown["list"]
    assert "planted words" in " ".join(shown["terminal"].split())
    assert "planted words</th>" in shown["page"]
    assert 'data-value="0.25">250 ms' in shown["page"]
    assert ",planted,s,0.25," in shown["csv"]


QUESTION = '''"""Planted: a question of a test.

*Asked.* Whether a question is added in three places.
"""

from collections.abc import Iterable

from loaders._contract import Quality, WrongOutputError
from loaders._registry import Batch, Job, Question, variant


def _check(job: Job[int], _variant: object, batches: Iterable[Batch]) -> Quality:
    if [list(batch) for batch in batches] != [[0], [1], [2]]:
        raise WrongOutputError("other batches")
    return Quality()


QUESTION = Question(prepare=lambda _corpus, _case, _seed: 3, check=_check)


@variant(baseline=True)
def planted_one(job: Job[int]) -> Iterable[Batch]:
    """Return a few numbers."""
    return [[number] for number in range(job.inputs)]


@variant
def planted_other(job: Job[int]) -> Iterable[Batch]:
    """Return them from a generator."""
    yield from planted_one(job)
'''

BENCHMARKS = "from benchmarks import _base\n\nComparison, Drain = _base.of('planted')\n"

TESTS = """from loaders import _registry


def test_it() -> None:
    assert _registry.find_question("planted").axes == {}
"""


@pytest.mark.slow
def test_a_question_is_added_in_three_places_one_of_them_three_lines(copy: Path) -> None:
    (copy / "loaders/questions/planted.py").write_text(QUESTION, "utf-8")
    (copy / "benchmarks/planted.py").write_text(BENCHMARKS, "utf-8")
    (copy / "tests/questions/test_planted.py").write_text(TESTS, "utf-8")
    shown = _measured(copy, "planted")
    missing = [name for name, text in shown.items() if "planted_other" not in text]
    assert not missing
    assert "Whether a question is added in three places." in shown["page"]
    _run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/questions/test_planted.py")
    collected = _run(copy, "-m", "pytest", "--collect-only", "-q", "tests/test_contract.py")
    assert "planted-planted_other" in collected
