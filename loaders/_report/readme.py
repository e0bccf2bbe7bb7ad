"""What the README and ``docs/results.md`` say of the published results: generated, never written by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loaders import _durable, _words
from loaders._advise import coverage
from loaders._check import equivalence
from loaders._corpus._sources import IMAGE_HEIGHT, IMAGE_WIDTH, PHOTOGRAPHS
from loaders._errors import InputError
from loaders._report import charts, findings, opening, sets
from loaders._rows import EPOCHS, Comparison, Row
from loaders._trial.log import PUBLISHED
from loaders._trial.record import Environment

PICTURES = (
    f"The 1500 photographs are overlapping crops, of {IMAGE_WIDTH}x{IMAGE_HEIGHT} pixels, of {len(PHOTOGRAPHS)} that "
    f"ship with scikit-image."
)
CORPUS = (
    f"{PICTURES} `resize` uses four of these. Results that depend on the pictures themselves, such as the size of a "
    f"JPEG file, may not carry over to others."
)

ORDER = (
    "Most of these loaders keep one order in all epochs. `advise PHOTOS` writes some that shuffle anew in each and "
    "need a quarter of the disk. The code of each is on the page and in `loaders/questions`."
)

BEGIN, END = "<!-- findings: begin (made by `make readme`) -->", "<!-- findings: end -->"
README, PICTURE, RESULTS = Path("README.md"), Path("docs/selection-memory.svg"), Path("docs/results.md")
FORKS = (
    f"Most trials are forks of a process that has done the imports. For which questions these are shown to measure the "
    f"same as fresh processes: [instruments]({RESULTS.as_posix()}#instruments)."
)

CURES = Path("loaders/_probe/cures.json")
"""What ``probe`` tries against memory that the allocator holds: a file, as an installed package has no results."""

PICTURED = "selection"

MOST_LINES = 10
"""Lines of advice that fit on the first screen beside what to type."""


def published(results: Sequence[sets.ResultSet]) -> sets.ResultSet | None:
    """Return the published set, whose results answer the questions; ``None`` if it is not among the results."""
    return next((each for each in _of_ours(results) if each.origin.machine == PUBLISHED), None)


def _of_ours(results: Iterable[sets.ResultSet]) -> Iterator[sets.ResultSet]:
    """Yield the sets of the project's machines that answer questions, at the size that is published."""
    for each in results:
        if each.answers and coverage.may_answer(each.origin.machine, each.origin.size, each.origin.data):
            yield each


def renew(root: Path, *, write: bool) -> list[str]:
    """Bring the README, its picture and the page of results up to date; return the names of the files that were not.

    Raises
    ------
    InputError
        If there are no published results, or the README has lost its markers.
    """
    results = sets.collect(root / "results")
    found = published(results)
    if found is None:
        raise InputError(f"no full results of the machine {PUBLISHED!r} under {root / 'results'}")
    comparisons = most_measured(results)
    lines = advised(comparisons, results)
    made = {
        README: _with((root / README).read_text("utf-8"), _advice(lines, found, comparisons)),
        RESULTS: _results(lines, found, comparisons, results),
        CURES: _cures(comparisons),
    }
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


def most_measured(results: Sequence[sets.ResultSet]) -> list[Comparison]:
    """Return a comparison for each question: that of the project's machine that has measured most of it.

    Each is of one machine as a whole, and nothing is compared between them.
    """
    by_question: defaultdict[str, list[Comparison]] = defaultdict(list)
    for result in _of_ours(results):
        for each in result.comparisons:
            by_question[each.question].append(each)
    best = {name: coverage.most(found, _coverage) for name, found in by_question.items()}
    return [found for name in sets.in_order(best) if (found := best[name])]


def advised(comparisons: Sequence[Comparison], results: Sequence[sets.ResultSet]) -> list[opening.Advice]:
    """Return the published advice, with how what it rests on came out on the project's other machines."""
    ours = [each for result in _of_ours(results) for each in result.comparisons]
    return opening.repeated(opening.advice(comparisons), comparisons, ours)


def _coverage(comparison: Comparison) -> coverage.Coverage:
    """Return how many of the strategies that run in the default case have a time there, and in how many rounds."""
    default = comparison.about.default_case
    running = comparison.about.running_in(default)
    timed = (row["time"] for row in comparison.rows if row.case == default and row.strategy in running)
    counts = [time.count for time in timed if time]
    return coverage.of(counts, comparison.environment, comparison.started, is_closed=not comparison.not_closed)


def _machines(found: sets.ResultSet, comparisons: Sequence[Comparison]) -> str:
    """Describe the published machine, and every other one that comparisons ran on."""
    return _hardware([found.environment, *(each.environment for each in comparisons)])


def _hardware(environments: Iterable[Environment]) -> str:
    by_name: dict[str, Environment] = {}
    for each in environments:
        by_name.setdefault(each.machine, each)
    return "; ".join(map(_words.hardware_in_words, by_name.values()))


def _cures(comparisons: Sequence[Comparison]) -> str:
    """Return what brought down the memory that an allocator held, at what cost, and where that was measured."""
    cases = [
        (comparison, case, said)
        for comparison in comparisons
        for case, rows in comparison.cases
        if findings.of_level(rows) and (said := findings.of_cures(rows))
    ]
    measured = {f"{comparison.question}, {_words.case_in_words(case)}": said for comparison, case, said in cases}
    machine = _hardware(comparison.environment for comparison, *_ in cases)
    return json.dumps({"cures": measured, "machine": machine}, indent=2, ensure_ascii=False) + "\n"


def _instruments(results: Sequence[sets.ResultSet], comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield, for each machine that comparisons ran on, how far its instruments were off, and if forks are alike."""
    for machine in dict.fromkeys(each.environment.machine for each in comparisons):
        own = [each for each in results if each.answers and each.origin.machine == machine]
        calibration = next(filter(None, (each.calibration for each in own)), None)
        said = findings.of_calibration(calibration) if calibration else "not held against known values"
        forked = [each.question for each in comparisons if each.environment.machine == machine and each.has_forks]
        alike = equivalence.standing(forked, [found for each in own for found in each.equivalences])
        yield f"* {machine}: {said[0].lower()}{said[1:]}.{f' {alike}' if alike else ''}"


def _with(readme: str, advice: str) -> str:
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{README} has lost its markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{advice}\n{END}{after}"


def _advice(lines: Sequence[opening.Advice], found: sets.ResultSet, comparisons: Sequence[Comparison]) -> str:
    """Return Markdown: the advice for which there is room, and how much more there is."""
    shown = _first(lines)
    named = [each for each in comparisons if any(line.question == each.question for line in shown)]
    over = _words.in_rounds(_words.fewest_rounds(named), max((each.rounds for each in named), default=0))
    rest = [line for line in lines if line not in shown]
    undecided = sum(not line.strategy for line in rest)
    more = f"Besides these, {len(rest) - undecided} decided and {undecided} undecided: [results]({RESULTS.as_posix()})."
    several = (
        f"; a range over {opening.OTHERS} is of their means"
        if any(opening.OTHERS in line.because for line in shown)
        else ""
    )
    measured = f"{_where(found, named)}; {_versions(named)}. Ratios have 95 % intervals over {over}{several}."
    against = _baselines(shown, comparisons)
    notes = [opening.ALIKE, ORDER, PICTURES, against, FORKS, more if rest else ""]
    visible = " ".join(filter(None, [opening.matters(comparisons), measured, _not_closed(named)]))
    return "\n".join(
        [
            *_table(shown, found, comparisons),
            "",
            f"*{visible}*",
            "",
            "<details><summary>What is compared, with what, and what is left out</summary>",
            "",
            *(f"* {note}" for note in notes if note),
            "",
            "</details>",
            "",
        ]
    )


def _versions(comparisons: Sequence[Comparison]) -> str:
    """Name the versions that figures depend on most, of all of the comparisons."""
    environments = [each.environment for each in comparisons]
    known = [{"Python": each.python, "TensorFlow": each.packages.get("tensorflow", "")} for each in environments]
    found = {name: sorted({each[name] for each in known if each[name]}) for name in ("Python", "TensorFlow")}
    return ", ".join(f"{name} {' and '.join(versions)}" for name, versions in found.items() if versions)


def _not_closed(comparisons: Iterable[Comparison]) -> str:
    """Say of which questions the times end too early; empty if of none."""
    named = ", ".join(f"`{each.question}`" for each in comparisons if each.not_closed)
    return f"Of {named}: {_words.NOT_CLOSED[0].lower()}{_words.NOT_CLOSED[1:]}" if named else ""


def _where(found: sets.ResultSet, comparisons: Sequence[Comparison]) -> str:
    """Say on which machine lines were measured, and describe it and the others."""
    return f"Measured on {found.origin.machine}, unless a line says otherwise. {_machines(found, comparisons)}"


def _baselines(lines: Sequence[opening.Advice], comparisons: Sequence[Comparison]) -> str:
    """Return Markdown that describes what the strategies that are advised are held against."""
    held = {
        row.strategy: row.label
        for each in comparisons
        for row in each.cases[0][1]
        if any(f"than `{row.strategy}`" in line.because for line in lines if line.question == each.question)
    }
    said = "; ".join(f"`{name}`: {label.rstrip('.')}" for name, label in held.items())
    return f"The baselines. {said}." if said else ""


def _first(lines: Sequence[opening.Advice]) -> list[opening.Advice]:
    """Return the lines for which there is room: of many, those decided, and each question's first before its others."""
    if len(lines) <= MOST_LINES:
        return list(lines)
    decided = [line for line in lines if line.strategy]
    firsts = {line.question: line for line in reversed(decided)}
    kept = sorted(decided, key=lambda line: line is not firsts[line.question])[:MOST_LINES]
    return [line for line in decided if line in kept]


def _table(lines: Sequence[opening.Advice], found: sets.ResultSet, comparisons: Sequence[Comparison]) -> list[str]:
    """Return Markdown: a line for each piece of advice, with where it was measured unless on the published machine."""
    where = {each.question: _words.elsewhere(each.environment, found.origin.machine) for each in comparisons}
    return [
        "| if you | do | because |",
        "|---|---|---|",
        *(f"| {line.when} | {line.do} | {line.because}{where[line.question]} |" for line in lines),
    ]


def _results(
    lines: Sequence[opening.Advice],
    found: sets.ResultSet,
    comparisons: Sequence[Comparison],
    results: Sequence[sets.ResultSet],
) -> str:
    """Return Markdown: all advice, findings and a ranking for each question's default case, and what they rest on."""
    comparisons = [each for each in comparisons if each.about.chooses]
    text = [
        "# Results",
        "",
        "Made by `make readme`. [What the words mean](reading.md). The comparison page (`make report`) has every case, "
        "and charts.",
        "",
        CORPUS,
        "",
        "## What to do",
        "",
        *_table(lines, found, comparisons),
        "",
        _baselines(lines, comparisons),
        "",
        f"{opening.matters(comparisons)} {opening.CORRECTED} {_where(found, comparisons)}.",
    ]
    for comparison in comparisons:
        case, rows = comparison.cases[0]
        name = " ".join(filter(None, [comparison.question, _words.case_in_words(case)]))
        laws = comparison.laws_of(case)
        text += [
            "",
            f"## {name}{_words.elsewhere(comparison.environment, found.origin.machine)}",
            "",
            *_asked(comparison),
            *(f"* {each}." for each in findings.sentences(rows, laws, comparison.missing(case))),
        ]
        for other, in_other in comparison.cases:
            if growth := findings.of_growth(in_other):
                text.append(f"* With {_words.case_in_words(other)}: {growth}.")
        text += ["", *_ranking(comparison, rows)]
    if unanswered := [name for name in found.unanswered if name not in {each.question for each in comparisons}]:
        names = ", ".join(unanswered)
        text += ["", f"**{names}**: not measured yet: `python -m loaders compare {' '.join(unanswered)} --size full`."]
    text += ["", "## Instruments", "", *_instruments([found, *results], comparisons)]
    text += [
        "",
        "## What the figures are",
        "",
        f"Figures are means over trials (geometric for times and ratios), each {_words.processes(comparisons)}, with "
        f"95 % intervals. *Start* is how much longer the first batch takes than a steady one, and zero if it does not; "
        f"only fresh processes tell it. "
        f"*{EPOCHS} epochs* is their total time, including conversion. "
        f"Memory is measured above a baseline that is read after imports and inputs; *needed* is the part that the "
        f"system cannot reclaim, with a fast consumer or, where the amount of data varies, a slow one. dB is the "
        f"likeness (PSNR) of what is delivered to what a question takes as the original: OpenCV's image, the stored "
        f"picture, or for `resize` an anti-aliased one. "
        f"{_words.UNCORRECTED}",
    ]
    return "\n".join(text) + "\n"


def _asked(comparison: Comparison) -> list[str]:
    """Return Markdown: what the question asks, holds fixed and leaves out, without which its figures mislead."""
    _, *paragraphs = comparison.about.doc.split("\n\n")
    return [line for each in paragraphs for line in (" ".join(each.split()), "")]


def _ranking(comparison: Comparison, rows: Sequence[Row]) -> list[str]:
    """Return Markdown: a table of a case's strategies, fastest first, and where the figures come from."""
    several = len({each.tier for each in rows}) > 1
    pairs = any(row.pair for row in rows)
    baseline = next((row for row in rows if row.is_baseline), None)
    is_fastest = baseline is not None and baseline.in_best and baseline.best is None
    totals, starts, needs, waits = (
        any(row[each] for row in rows) for each in ("total", "start", "needed", "step_wait")
    )
    headings = [
        "strategy",
        charts.time_name(rows).removeprefix("time of "),
        *(["start"] if starts else []),
        *([f"{EPOCHS} epochs"] if totals else []),
        *(["a step waits (median)"] if waits else []),
        "against the fastest",
        "against the baseline",
        *(["against its pair"] if pairs else []),
        "needed memory" if needs else "peak memory",
    ]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for row in rows:
        marks = [row.tier] if several else []
        marks += [*_words.roles(row), *_words.of_times(row)]
        marks += [f"{row.psnr:.0f} dB"] if several and row.psnr is not None and row.psnr < _words.EXACT else []
        cells = [
            ", ".join([f"`{row.strategy}`", *marks]),
            _words.estimated(row["time"], _words.duration) if row["time"] else row.status.partition(":")[0],
            *([_words.estimated(row["start"], _words.duration)] if starts else []),
            *([_words.estimated(row["total"], _words.duration)] if totals else []),
            *([_words.estimated(row["step_wait"], _words.duration)] if waits else []),
            _words.to_fastest(row),
            "baseline" if row.is_baseline else _words.to_fastest(row) if is_fastest else _words.times(row.ratio),
            *([f"{_words.times(row.pair)}: `{row.matches}`" if row.pair else _words.ABSENT] if pairs else []),
            _words.estimated(row["needed"] if needs else row["peak"], _words.amount),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    ran = f"{_words.rounds(rows)}; {_words.software_in_words(comparison.environment)}"
    disturbed = _words.disturbed(comparison.disturbed)
    disturbed = f"Of all cases: {disturbed}" if disturbed and len(comparison.cases) > 1 else disturbed
    not_closed = _words.NOT_CLOSED if comparison.not_closed else ""
    return [*lines, "", f"*{' '.join(filter(None, [f'{ran}.', disturbed, not_closed]))}*"]


def _picture(comparison: Comparison) -> str:
    _, rows = comparison.cases[0]
    return charts.memory_picture(rows) + "\n"
