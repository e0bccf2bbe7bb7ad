"""The README's opening: a table and a picture of the published results, generated, never typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loaders import _durable, _registry, _words
from loaders._errors import InputError
from loaders._report import charts, findings, sets
from loaders._rows import Comparison, Row

PUBLISHED = "reference"
"""The machine whose results are committed."""

BEGIN, END = "<!-- findings: begin (made by `make readme`) -->", "<!-- findings: end -->"
README, PICTURE = Path("README.md"), Path("docs/selection-memory.svg")
PICTURED = "selection"


def renew(root: Path, *, write: bool) -> list[str]:
    """Bring the README and its picture up to date; return the names of the files that were not.

    Raises
    ------
    InputError
        Without published results, or for a README that has lost the markers.
    """
    published = [
        each
        for each in sets.collect(root / "results")
        if each.origin.machine == PUBLISHED and each.origin.size == "full"
    ]
    if not published:
        raise InputError(f"no full results of the machine {PUBLISHED!r} under {root / 'results'}")
    comparisons = published[0].comparisons
    pictured = next(each for each in comparisons if each.question == PICTURED)
    made = {README: _with_findings((root / README).read_text("utf-8"), published[0]), PICTURE: _picture(pictured)}
    stale = []
    for path, text in made.items():
        if not (root / path).exists() or (root / path).read_text("utf-8") != text:
            stale.append(str(path))
            if write:
                _durable.write(root / path, text)
    return stale


def _with_findings(readme: str, published: sets.ResultSet) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{README} has lost its markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{_findings(published)}\n{END}{after}"


def _findings(published: sets.ResultSet) -> str:
    """Return Markdown: of each question's default case the extremes, and where the figures come from."""
    comparisons = published.comparisons
    sentences: list[str] = []
    lines = [
        "| question | strategy | | time | against the baseline | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for comparison in comparisons:
        if _registry.find_question(comparison.question).calibrates:
            continue
        case, rows = comparison.cases[0]
        name = " ".join(filter(None, [comparison.question, _words.case_in_words(case)]))
        sentences.append(f"* **{name}**: {findings.of(rows)}")
        for other, in_other in comparison.cases:
            if growth := findings.of_growth(in_other):
                sentences.append(f"* **{comparison.question} {_words.case_in_words(other)}**: {growth}.")
        for row, why in _extremes(rows):
            several = len({each.tier for each in rows}) > 1
            quality = "" if row.psnr is None else f"; {row.tier}, {row.psnr:.0f} dB" if several else ""
            lines.append(
                f"| {name} | `{row.strategy}` | {why}{quality} | {_words.estimated(row.time, _words.duration)} | "
                f"{_words.ABSENT if row.is_baseline else _words.times(row.ratio)} | "
                f"{_words.estimated(row.peak, _words.amount)} |"
            )
            name = ""
        for row in (row for row in rows if row.pair):
            lines.append(
                f"| | `{row.strategy}` | same output as `{row.matches}` | "
                f"{_words.estimated(row.time, _words.duration)} | {_words.times(row.pair)} than that | "
                f"{_words.estimated(row.peak, _words.amount)} |"
            )
    if published.calibration:
        sentences.append(f"* **instruments**: {findings.of_calibration(published.calibration)}.")
    made = [f"{each.question}: {_words.rounds(each)}, commit {each.environment.commit}" for each in comparisons]
    return "\n".join(
        [
            *sentences,
            "",
            f"![Peak memory of every selection strategy]({PICTURE.as_posix()})",
            "",
            *lines,
            "",
            f"Means over trials, each in a fresh process, with 95 % intervals ({'; '.join(made)}); memory above a "
            f"baseline that is read after imports and inputs; dB: likeness to an anti-aliased resize. "
            f"{_words.machine_in_words(published.environment)}.",
        ]
    )


def _extremes(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Return the baseline and the fastest, slowest, leanest and fattest strategy, with what each is."""
    good = [row for row in rows if row.time and row.peak]
    why: dict[str, list[str]] = {}
    by_time = sorted(good, key=lambda row: row.time.value if row.time else 0.0)
    by_peak = sorted(good, key=lambda row: row.peak.value if row.peak else 0.0)
    for row, word in (
        *((row, "baseline") for row in good if row.is_baseline),
        *((row, "fastest") for row in by_time[:1]),
        *((row, "leanest") for row in by_peak[:1]),
        *((row, "slowest") for row in by_time[-1:]),
        *((row, "fattest") for row in by_peak[-1:]),
    ):
        why.setdefault(row.strategy, []).append(word)
    return [(row, ", ".join(why[row.strategy])) for row in by_time if row.strategy in why]


def _picture(comparison: Comparison) -> str:
    _, rows = comparison.cases[0]
    return charts.memory_picture(rows) + "\n"
