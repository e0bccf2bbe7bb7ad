from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from loaders import _registry
from loaders._errors import InputError
from loaders._report import opening, readme
from loaders._rows import comparison
from loaders._rows.values import About
from loaders._trial import Metrics, log
from loaders._trial.log import PUBLISHED
from tests.conftest import ROOT
from tests.test_rows import record


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / readme.CURES).parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text(f"# Title\n\n{readme.BEGIN}\nold\n{readme.END}\n\nThe rest.\n")
    for name, question, case, seconds in [
        ("numpy_to_numpy", "selection", {"images": "500"}, 0.3),
        ("numpy_to_list", "selection", {"images": "500"}, 1.2),
        ("range_indexed", "read_order", {}, 0.5),
    ]:
        each = record(name, 0, time=seconds, peak=24, question=question, case=case, size="full", run=question)
        environment = msgspec.structs.replace(each.environment, machine=PUBLISHED)
        path = tmp_path / "results" / PUBLISHED / log.NAME
        log.append(path, msgspec.structs.replace(each, environment=environment))
    return tmp_path


def test_findings_come_from_the_published_results_and_touch_nothing_else(checkout: Path) -> None:
    made = ["README.md", *map(str, (readme.RESULTS, readme.CURES, readme.PICTURE))]
    assert readme.renew(checkout, write=False) == made
    assert "old" in (checkout / "README.md").read_text()
    readme.renew(checkout, write=True)
    text = (checkout / "README.md").read_text("utf-8")
    assert text.startswith("# Title\n\n")
    assert text.endswith("\n\nThe rest.\n")
    assert "\nold\n" not in text
    assert "| draw images at random from an array in memory | " in text
    text = (checkout / readme.RESULTS).read_text("utf-8")
    assert "| `numpy_to_numpy` | 300 ms (single sample) | the fastest | baseline | 24.0 MiB (single sample) |" in text
    assert "| `numpy_to_list` | 1.20 s (single sample) | 4.00× slower (single sample)" in text
    assert "overlapping crops, of 500x375 pixels, of 9 that ship" in text
    assert "not corrected for multiple comparisons" in text
    assert "was not recorded for any trial" in text
    assert readme.renew(checkout, write=False) == []


def test_new_results_make_it_stale(checkout: Path) -> None:
    readme.renew(checkout, write=True)
    path = checkout / "results" / PUBLISHED / log.NAME
    records = log.read(path)
    for each in records[:2]:
        log.append(
            path,
            msgspec.structs.replace(
                each,
                run="newer",
                started="2027-01-01T00:00:00+00:00",
                metrics=msgspec.structs.replace(each.metrics, epoch_time=7.0),
            ),
        )
    assert "README.md" in readme.renew(checkout, write=False)


@pytest.mark.parametrize(
    ("name", "every", "rounds", "before", "wins"),
    [
        ("reference-x", True, 1, 1, True),
        ("reference-x", True, 1, 2, True),  # ten strategies once, and two of them twice
        ("reference-x", True, 1, 8, False),
        ("reference-x", False, 2, 1, True),
        ("reference-x", False, 1, 1, False),
        ("reference-x", False, 1, 2, False),
        ("reference-x", False, 9, 8, False),  # rounds that not every strategy gets
        ("mine", True, 2, 1, False),
    ],
)
def test_a_question_comes_from_the_machine_that_has_measured_more_of_it(
    checkout: Path, name: str, *, every: bool, rounds: int, before: int, wins: bool
) -> None:
    """In strategies times rounds: of the project's machines, and the text says which."""
    path = checkout / "results" / PUBLISHED / log.NAME
    known = [each for each in log.read(path) if each.question == "selection"]
    for index in range(1, before):
        for each in known:
            log.append(path, msgspec.structs.replace(each, round=index))
    for strategy in _registry.variants("selection") if every else [each.strategy for each in known]:
        for index in range(rounds):
            each = record(
                strategy, index, time=0.2, peak=24, question="selection", case={"images": "500"}, size="full", run="x"
            )
            environment = msgspec.structs.replace(each.environment, machine=name, cpu="Another")
            there = checkout / "results" / name / log.NAME
            log.append(there, msgspec.structs.replace(each, environment=environment))
    readme.renew(checkout, write=True)
    text = (checkout / "README.md").read_text("utf-8")
    results = (checkout / readme.RESULTS).read_text("utf-8")
    assert (f"(on {name}) |" in text) == wins
    assert (f"{name}: Another" in text) == wins
    assert (f"## selection images 500 (on {name})" in results) == wins
    assert "## read_order" in results
    assert (f"* {name}: not held against known values.\n" in results) == wins
    assert f"* {PUBLISHED}: not held against known values.\n" in results
    assert f"{PUBLISHED}: " in text


@pytest.mark.parametrize("closing", [None, 0.0])
def test_a_comparison_knows_whether_its_epochs_end_with_their_iterators(closing: float | None) -> None:
    metrics = Metrics(epoch_time=1.0, steady_time=1.0, closing_time=closing)
    case = _registry.find_question("batching").default_case
    each = record("path_generator", 0, question="batching", case=case, metrics=metrics)
    assert readme._coverage(comparison([each])).is_closed == (closing is not None)


def test_of_many_lines_those_decided_are_shown_and_every_question_has_room_before_another_line_of_one() -> None:
    decided = [opening.Advice("a", str(index), "do", "why", "strategy") for index in range(4)]
    decided += [opening.Advice(question, "", "do", "why", "strategy") for question in "cdefghi"]
    lines = [*decided[:4], opening.Advice("b", "", opening.UNDECIDED, "why"), *decided[4:]]
    assert readme._first(lines) == [*decided[:3], *decided[4:]]
    assert readme._first(lines[:6]) == lines[:6], "where there is room, what is undecided is shown too"


def test_other_machines_results_are_not_published(checkout: Path) -> None:
    path = checkout / "results" / PUBLISHED / log.NAME
    records = log.read(path)
    path.unlink()
    for each in records:
        environment = msgspec.structs.replace(each.environment, machine="mine")
        log.append(path, msgspec.structs.replace(each, environment=environment))
    with pytest.raises(InputError, match=f"no full results of the machine '{PUBLISHED}'"):
        readme.renew(checkout, write=True)


def test_results_on_ones_own_folder_are_not_published(checkout: Path) -> None:
    """Nor do they answer for a stranger: README and page say that all photographs ship with scikit-image."""
    path = checkout / "results" / PUBLISHED / log.NAME
    records = log.read(path)
    path.unlink()
    log.append(path, *(msgspec.structs.replace(each, data="own folder, 9 images, key") for each in records))
    with pytest.raises(InputError, match=f"no full results of the machine '{PUBLISHED}'"):
        readme.renew(checkout, write=True)


def test_a_readme_without_markers_is_a_clear_error(checkout: Path) -> None:
    (checkout / "README.md").write_text("# Title\n")
    with pytest.raises(InputError, match="lost its markers"):
        readme.renew(checkout, write=True)


def test_the_committed_readme_is_not_stale() -> None:
    assert any((ROOT / "results").glob(f"*/{log.NAME}")), "the published results are missing"
    assert readme.renew(ROOT, write=False) == []


def test_the_readmes_first_screen_says_what_it_is_what_it_found_and_what_to_type() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    folded = re.compile(r"\n<details>.*?</details>\n*", flags=re.DOTALL)
    first = folded.sub("", text).splitlines()[:28]
    advice = [line for line in first if line.startswith("| ") and not line.startswith("| if you")]
    assert 6 <= len(advice) <= 10
    commands = [line for line in first if line.startswith(("make ", "LOADERS_DATA=", "python -m loaders "))]
    assert re.search(r"AMD EPYC, family \d+, model \d+, 2 cores", "\n".join(first)), "no figure without its machine"
    assert any(" advise " in each for each in commands)
    assert any(" probe " in each for each in commands)
    linked = set(re.findall(r"\]\((docs/[a-z]+\.md)\)", "\n".join(first)))
    assert linked == {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("path", [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_every_link_in_the_documents_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_what_a_question_leaves_out_is_said_with_its_figures() -> None:
    doc = "Title.\n\n*Asked.* Which one\nis it?\n\n*Not measured.* The rest."
    found = msgspec.structs.replace(comparison([record("mixed_copy", 0, 1.0, 24)]), about=About(doc=doc))
    assert readme._asked(found) == ["*Asked.* Which one is it?", "", "*Not measured.* The rest.", ""]
