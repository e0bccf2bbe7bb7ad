"""The README's opening: a table and a picture of the published results, generated, never hand-written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loaders import _durable, _words
from loaders._corpus._sources import PHOTOGRAPHS
from loaders._errors import InputError
from loaders._report import charts, findings, sets
from loaders._rows import EPOCHS, Comparison, Row

PUBLISHED = "reference-amd"
"""The machine whose results are committed and answer the questions. A machine name belongs to one processor."""

CORPUS = (
    f"The 1500 photographs are overlapping crops of {len(PHOTOGRAPHS)} that ship with scikit-image; `resize` uses "
    f"four of these. Results that depend on the pictures themselves, such as the size of a JPEG file, may not carry "
    f"over to others."
)

BEGIN, END = "<!-- findings: begin (made by `make readme`) -->", "<!-- findings: end -->"
README, PICTURE = Path("README.md"), Path("docs/selection-memory.svg")
PICTURED = "selection"


def published(results: Sequence[sets.ResultSet]) -> sets.ResultSet | None:
    """Return the published set, whose results answer the questions; ``None`` if it is not among the results."""
    return next(
        (each for each in results if each.origin.machine == PUBLISHED and each.origin.size == "full" and each.answers),
        None,
    )


def renew(root: Path, *, write: bool) -> list[str]:
    """Bring the README and its picture up to date; return the names of the files that were out of date.

    Raises
    ------
    InputError
        If there are no published results, or the README has lost its markers.
    """
    found = published(sets.collect(root / "results"))
    if found is None:
        raise InputError(f"no full results of the machine {PUBLISHED!r} under {root / 'results'}")
    comparisons = found.comparisons
    made = {README: _with_findings((root / README).read_text("utf-8"), found)}
    pictured = next((each for each in comparisons if each.question == PICTURED), None)
    if pictured:
        made[PICTURE] = _picture(pictured)
    stale = []
    for path, text in made.items():
        if not (root / path).exists() or (root / path).read_text("utf-8") != text:
            stale.append(str(path))
            if write:
                _durable.write(root / path, text)
    return stale


def _with_findings(readme: str, found: sets.ResultSet) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{README} has lost its markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{_findings(found)}\n{END}{after}"


def _findings(found: sets.ResultSet) -> str:
    """Return Markdown: findings and a ranking for each question's default case, and what they rest on."""
    comparisons = [each for each in found.comparisons if not each.about.calibrates]
    sentences: list[str] = []
    tables: list[str] = []
    for comparison in comparisons:
        case, rows = comparison.cases[0]
        name = " ".join(filter(None, [comparison.question, _words.case_in_words(case)]))
        laws = next((each.laws for each in comparison.laws if each.case.items() <= case.items()), {})
        sentences.append(f"* **{name}**: {findings.of(rows, laws, comparison.missing(case))}")
        for other, in_other in comparison.cases:
            if growth := findings.of_growth(in_other):
                sentences.append(f"* **{comparison.question} {_words.case_in_words(other)}**: {growth}.")
        tables += ["", *_ranking(name, comparison, rows)]
    if found.unanswered:
        names = ", ".join(found.unanswered)
        sentences.append(
            f"* **{names}**: not measured on this machine yet; the page shows the results of the previous machine."
        )
    if found.calibration:
        sentences.append(f"* **instruments**: {findings.of_calibration(found.calibration)}.")
    picture = [f"![Peak memory of every {PICTURED} strategy]({PICTURE.as_posix()})", ""]
    has_picture = any(each.question == PICTURED for each in comparisons)
    return "\n".join(
        [
            *sentences,
            "",
            *(picture if has_picture else []),
            CORPUS,
            *tables,
            "",
            f"Figures are means over trials, each {_words.processes(comparisons)}, with 95 % intervals. "
            f"*Start* is how much longer the first batch takes than a steady one. "
            f"*{EPOCHS} epochs* is their total time, including conversion. "
            f"Memory is measured above a baseline that is read after imports and inputs; *needed* is the part that the "
            f"system cannot reclaim, with a fast or a slow consumer. dB is the similarity to an anti-aliased resize. "
            f"{_words.UNCORRECTED} {_words.hardware_in_words(found.environment)}.",
        ]
    )


def _ranking(name: str, comparison: Comparison, rows: Sequence[Row]) -> list[str]:
    """Return Markdown: a table of a case's strategies, fastest first, and where the figures come from."""
    several = len({each.tier for each in rows}) > 1
    pairs = any(row.pair for row in rows)
    totals, starts, needs = (any(row[each] for row in rows) for each in ("total", "start", "needed"))
    headings = [
        name,
        charts.time_name(rows).removeprefix("time of "),
        *(["start"] if starts else []),
        *([f"{EPOCHS} epochs"] if totals else []),
        "against the fastest",
        "against the baseline",
        *(["against its pair"] if pairs else []),
        "needed memory" if needs else "peak memory",
    ]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for row in rows:
        marks = [row.tier] if several else []
        marks += [word for word, holds in (("historic", row.historic), ("ceiling", row.ceiling)) if holds]
        marks += [f"{row.psnr:.0f} dB"] if several and row.psnr is not None and row.psnr < _words.EXACT else []
        cells = [
            ", ".join([f"`{row.strategy}`", *marks]),
            _words.estimated(row["time"], _words.duration) if row["time"] else row.status.partition(":")[0],
            *([_words.estimated(row["start"], _words.duration)] if starts else []),
            *([_words.estimated(row["total"], _words.duration)] if totals else []),
            _words.to_fastest(row),
            "baseline" if row.is_baseline else _words.times(row.ratio),
            *([f"{_words.times(row.pair)}: `{row.matches}`" if row.pair else _words.ABSENT] if pairs else []),
            _words.estimated(row["needed"] if needs else row["peak"], _words.amount),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    ran = f"{_words.rounds(comparison)}; {_words.software_in_words(comparison.environment)}"
    disturbed = _words.disturbed(comparison.disturbed)
    return [*lines, "", f"*{' '.join(filter(None, [f'{ran}.', disturbed]))}*"]


def _picture(comparison: Comparison) -> str:
    _, rows = comparison.cases[0]
    return charts.memory_picture(rows) + "\n"
