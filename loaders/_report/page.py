"""The comparison page: renders result sets as one self-contained HTML text."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup

from loaders import _claims, _evidence, _faults, _words
from loaders._advise.choose import CLOSES_WITHIN, WORTH
from loaders._check import equivalence, selftest
from loaders._compare.plans import LEAST_ROUNDS
from loaders._contract import TIERS
from loaders._corpus import SIZES
from loaders._judge import MEMORY_SHARE, MOST_ROUNDS, RESOLUTION, TIME_MARGIN
from loaders._report import charts, chooser, columns, export, findings, instruments, opening, readme
from loaders._report.asv_files import AsvResult
from loaders._report.sets import ResultSet
from loaders._resolution import Calibration
from loaders._rows import EPOCHS, Comparison, Row
from loaders._stats import quantile
from loaders._trial.machine import machine_name

MOST = 2_900_000
"""Maximum characters of the page. Sets that do not fit have fewer charts or, failing that, are only named."""


class Room(NamedTuple):
    """What of a set is shown.

    Attributes
    ----------
    cases
        Charts of so many cases of each question.
    charts
        So many of a case.
    brief
        Whether only the main figures are shown.
    replaced
        Whether questions are shown that another of the project's machines answers.
    """

    cases: int
    charts: int
    brief: bool
    replaced: bool = True


EVERY = 100
ROOMS = (
    Room(EVERY, EVERY, brief=False),
    Room(3, EVERY, brief=False),
    Room(1, EVERY, brief=False),
    Room(1, 1, brief=False),
    Room(1, 1, brief=True),
    Room(0, 0, brief=True),
    Room(0, 0, brief=True, replaced=False),
)
"""From the largest to the smallest. The largest for which there is room is taken."""

MOST_MISSING = 3
"""Strategies of a table that are not measured yet, each with a row of its own; more of them share one."""

_MARKDOWN = MarkdownIt("commonmark", {"html": False})

ROUNDS = 64
"""Student's t is embedded for up to this many samples; with more rounds the last value is close enough."""

STUDENTS = 256
"""Steps in the table of Student's t over fractional degrees of freedom."""


def render(
    results: Sequence[ResultSet],
    held: Sequence[AsvResult] = (),
    *,
    home: str | None = None,
    files: Mapping[str, str] | None = None,
    only: str | None = None,
    pages: Mapping[str, str] | None = None,
) -> str:
    """Return the page.

    ``held`` is asv's own results; ``home`` is the address of its index page, if it exists, and ``files`` says by
    address what lies beside the page. ``only`` names the machine whose results are shown, by default those of all;
    ``pages`` holds the addresses of further pages by machine, that of the page of all machines under ``ALL``.
    """
    environment = templates()
    environment.globals["both_instruments"] = lambda comparison: instruments.held_against(comparison, held)
    reference = readme.published(results)
    own = machine_name()
    # One's own results first, then the published ones, then what the README quotes besides: they have room before
    # whatever else is newest, which may be anybody's.
    quoted = readme.most_measured(results) if reference else []
    places = set(map(id, quoted))
    homes = {id(each): found for found in results for each in found.comparisons}
    results = sorted(
        results,
        key=lambda found: (
            found.origin.machine != own,
            found is not reference,
            places.isdisjoint(map(id, found.comparisons)),
        ),
    )
    everything, results = results, [found for found in results if only in (None, found.origin.machine)]
    environment.globals.update(
        reference=reference, published=_verdicts(reference, quoted) if reference else {}, pages=pages or {}
    )
    template = environment.get_template("set.html.j2")
    codes = Markup(environment.get_template("code.html.j2").render(_codes(results)))  # noqa: S704 - it escapes
    sections: list[Markup] = []
    left_out: list[ResultSet] = []
    said = readme.advised(quoted, everything) if only is None else []

    def filled(found: ResultSet, room: Room) -> Markup:
        whole = room.replaced or found.origin.machine == own or found is reference
        part = found if whole else _answering(found, places)
        replaced = sorted({each.question for each in found.comparisons} - {each.question for each in part.comparisons})
        # The published set begins with what the README says, whoever has measured it.
        answering = quoted if found is reference and only is None else part.comparisons
        measured = {each.question: homes[id(each)] for each in answering}
        choices = [each for name, place in measured.items() for each in place.choices if each.question == name]
        origins = {each.question: _words.elsewhere(each.environment, found.origin.machine) for each in answering}
        told = said if answering is quoted else opening.advice(answering) if found.answers else []
        values = {"set": part, "answering": answering, "measured": measured, "origins": origins, "choices": choices}
        values["told"] = told
        section = template.render(**values, replaced=replaced, room=room, home=home, only=only)
        return Markup(section)  # noqa: S704 - the template escapes

    # Charts of one set must not keep out another that answers too.
    least = {id(found): filled(found, ROOMS[-1]) for found in results[1:] if found.answers}
    reserved = {place: len(section) for place, section in least.items()}
    for found in results:
        reserved.pop(id(found), None)
        free = MOST - len(codes) - sum(map(len, sections))
        shown = least.get(id(found)) or filled(found, ROOMS[-1])
        if len(shown) > free:
            left_out.append(found)
            continue
        # From the smallest, so that few charts are drawn that are not shown.
        for room in reversed(ROOMS[:-1]) if found.answers else ():
            section = filled(found, room)
            if len(section) > free - sum(reserved.values()):
                break
            shown = section
        sections.append(shown)
    first, script, style = (part(name) for name in ("first.js", "page.js", "page.css"))
    return environment.get_template("page.html.j2").render(
        results=results,
        sections=sections,
        codes=codes,
        left_out=left_out,
        home=home,
        files=files or {},
        only=only,
        all_machines=ALL,
        first=Markup(first),  # noqa: S704 - our own
        script=Markup(script),  # noqa: S704 - our own
        style=Markup(style),  # noqa: S704 - our own
        hashes={"first": _hash(first), "script": _hash(script), "style": _hash(style)},
        constants=constants(),
    )


def _answering(found: ResultSet, places: Collection[int]) -> ResultSet:
    """Return a set without the questions that another of the project's machines answers; if that is all, as it is."""
    kept = [each for each in found.comparisons if id(each) in places or each.about.calibrates]
    if all(each.about.calibrates for each in kept):
        return found
    return msgspec.structs.replace(found, comparisons=kept)


ALL = ""
"""The key of the page of all machines."""


def rendered(
    results: Sequence[ResultSet], held: Sequence[AsvResult], name: str, *, home: str | None, files: Mapping[str, str]
) -> dict[str, str]:
    """Return the page of all machines and one of each machine, by the names of their files; the first has ``name``.

    On the first page machines share the room; on its own page each has all of it.
    """
    machines = dict.fromkeys(found.origin.machine for found in results)
    named = {each: f"{Path(name).stem}-{each}.html" for each in machines if export.PLAIN.fullmatch(each)}
    pages = {ALL: name, **(named if len(machines) > 1 else {})}
    return {
        address: render(results, held, home=home, files=files, only=machine or None, pages=pages)
        for machine, address in pages.items()
    }


APART = "\n\n\n"
"""What stands between the functions of a strategy's code. Many are shared, and the page has each of them once."""


def _codes(results: Sequence[ResultSet]) -> dict[str, object]:
    """Return the parts of all code that is shown, and by question and strategy the places of its parts among them."""
    parts: dict[str, int] = {}
    listed: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
    for comparison in (each for found in results if not found.is_older for each in found.comparisons):
        for row in comparison.rows:
            if row.source and row.strategy not in listed[row.question]:
                places = [parts.setdefault(part, len(parts)) for part in row.source.split(APART)]
                listed[row.question][row.strategy] = places
    return {"parts": list(parts), "listed": listed}


def _named(part: str) -> str:
    """Return what a part of a strategy's code defines."""
    found = re.search(r"^(?:def|class) (\w+)", part, re.MULTILINE)
    return found[1] if found else "more"


def _verdicts(found: ResultSet, comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Return the published verdict on each claim, with its machine and date: ``on reference-amd, 2026-11-22: holds``.

    It is that of whoever has measured most of its question, as in the README.
    """
    of = {each.question: f"on {each.environment.machine}, {each.started[:10]}" for each in comparisons}
    otherwise = f"on {found.origin.machine}, {found.started[:10]}"
    return {
        each.claim.id: f"{of.get(each.claim.question, otherwise)}: {each.verdict.removesuffix(' here')}"
        for each in _claims.judged(comparisons)
    }


def constants() -> dict[str, object]:
    """Return the numbers that the page's script shares with Python."""
    return {
        "resolution": RESOLUTION,
        "margin": TIME_MARGIN,
        "share": MEMORY_SHARE,
        "most_rounds": MOST_ROUNDS,
        "worth": WORTH,
        "closes_within": CLOSES_WITHIN,
        "students": {str(confidence): _students(confidence) for confidence in (0.95, 0.90)},
        "quantiles": [quantile(count) for count in range(2, ROUNDS + 1)],
    }


def templates() -> jinja2.Environment:
    """Return what renders the templates."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("loaders._report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters.update(
        duration=lambda each: columns.stacked(_words.estimated(each, _words.duration)),
        reading=lambda each: columns.stacked(_words.estimated(each.estimate, _words.duration)),
        bytes=_words.amount,
        small_amount=lambda each: columns.stacked(_words.estimated(each, _words.small_amount)),
        amount=lambda each: columns.stacked(_words.estimated(each, _words.amount)),
        times=lambda each: columns.stacked(_words.times(each)),
        over_steps=_words.over_steps,
        hardware=_words.hardware_in_words,
        machine=_words.machine_in_words,
        case=_words.case_in_words,
        disturbed=_words.disturbed,
        roles=_words.roles,
        of_times=_words.of_times,
        rounds=_words.rounds,
        growth_finding=findings.of_growth,
        level_finding=findings.of_level,
        short=_short,
        named=_named,
        cures=findings.cures_of,
        multiple=lambda each: columns.stacked(_words.multiple(each)),
        calibration_finding=findings.of_calibration,
        stacked=columns.stacked,
        ceiling_finding=findings.of_ceiling,
        laws_finding=findings.of_laws,
        threads_findings=findings.of_threads,
        scale_findings=findings.of_scale,
        processes_findings=findings.of_processes,
        cached=lambda rows: _words.cached(row.page_cache for row in rows),
        tiers=_tiers,
        resolutions=_resolutions,
        prose=_prose,
        line=_line,
        embedded=chooser.embedded,
        tally=selftest.line,
        fault_line=_faults.line,
    )
    environment.globals.update(
        charts=charts.of_case,
        columns_of=columns.of_table,
        most_missing=MOST_MISSING,
        laws_chart=charts.laws_chart,
        workers_chart=charts.workers_chart,
        epochs=EPOCHS,
        uncorrected=_words.UNCORRECTED,
        older=_words.OLDER,
        not_closed=_words.NOT_CLOSED,
        findings_of=findings.sentences,
        advice=opening.advice,
        matters=opening.matters,
        corrected=opening.CORRECTED,
        classes=_classes,
        bars=columns.bars,
        command=command,
        repeat=repeat,
        measure_on=_words.measure_on,
        to_measure=_words.to_measure,
        processes=_words.processes,
        of_memory=_words.of_memory,
        without_start=_words.without_start,
        judged=_claims.judged,
        counted=_claims.counted,
        calibrated_cells=_words.calibrated_cells,
        tally_headings=selftest.HEADINGS,
        tally_sentences=selftest.sentences,
        equivalence=equivalence,
        faults=_faults,
        evidence=_evidence,
        worth=WORTH,
        chooser_options=chooser.options,
        chooser_values=chooser.VALUES,
        chooser_kinds={letter: kind for kind, letter in chooser.LETTERS.items()},
    )
    return environment


def _short(found: Any) -> Any:
    """Return a number, or what holds numbers, with six digits: a page has tens of thousands, and shows three."""
    if isinstance(found, float):
        shown = float(f"{found:.6g}")
        return int(shown) if shown.is_integer() else shown
    if isinstance(found, Mapping):
        return {key: _short(each) for key, each in found.items()}
    return [_short(each) for each in found] if isinstance(found, list | tuple) else found


def _classes(*names: str | None) -> Markup:
    """Return a class attribute, or nothing."""
    there = " ".join(filter(None, names))
    return Markup(' class="{}"').format(there) if there else Markup("")


def command(comparison: Comparison, row: Row) -> str:
    """Return the command that runs one strategy once in one case, as the comparison ran it."""
    words = ["python", "-m", "loaders", "trial", row.question, row.strategy, *_words.conditions(comparison)]
    for axis, value in row.case.items():
        words += ["--case", f"{axis}={value}"]
    if row.is_outside:
        words += ["--with", "FILE"]
    return shlex.join(words)


def repeat(comparison: Comparison) -> str:
    """Return the command that repeats a comparison."""
    words = ["python", "-m", "loaders", "compare", comparison.question, *_words.conditions(comparison)]
    went_on = _words.fewest_rounds([comparison]) < comparison.rounds  # with what was still open
    words += ["--until", "5%"] if went_on and comparison.rounds > LEAST_ROUNDS else ["--rounds", str(comparison.rounds)]
    return shlex.join([*words, *_cases_of(comparison)])


def _cases_of(comparison: Comparison) -> list[str]:
    """Return the options that have its cases measured, of those that a comparison of this size would measure."""
    about, cases = comparison.about, [case for case, _ in comparison.cases]
    usual = [about.is_default(case) for case in cases]
    if all(usual):
        size = SIZES.get(comparison.size)
        return ["--default-case"] if size and size.all_cases and about.axes.keys() - {about.size_axis} else []
    if any(usual):
        return ["--all-cases"]
    shared = set.intersection(*(set(case.items()) for case in cases)) - about.default_case.items()
    return [word for axis, value in sorted(shared) for word in ("--case", f"{axis}={value}")] or ["--all-cases"]


def _tiers(rows: Sequence[Row]) -> list[str]:
    """Return the tiers that occur, the baseline's first."""
    first = next((row.tier for row in rows if row.is_baseline), TIERS[0])
    found = {row.tier for row in rows}
    return [tier for tier in sorted(TIERS, key=lambda tier: tier != first) if tier in found]


def _resolutions(comparison: Comparison, calibration: Calibration | None) -> dict[int, dict[str, object]]:
    """Return the instruments' resolution by number of trials: known truths and the limit at each."""
    metrics = {"time": comparison.ranked_by, "memory": "peak_memory", "tree": "peak_memory_tree"}
    found: dict[int, dict[str, object]] = {}
    for count in {row.samples for row in comparison.rows if row.samples} if calibration else ():
        curves = {name: calibration and calibration.resolution(metric, count) for name, metric in metrics.items()}
        found[count] = {name: curve.points for name, curve in curves.items() if curve}
    return found


def _students(confidence: float) -> list[float]:
    """Return Student's t at even steps of 1 / degrees of freedom, 0 to 1; the page interpolates between them."""
    from scipy.special import stdtrit

    places = [place / STUDENTS for place in range(STUDENTS + 1)]
    return [float(stdtrit(1 / place if place else 1e12, 0.5 + confidence / 2)) for place in places]


def part(name: str) -> str:
    """Return a file that is embedded in the page unchanged."""
    return (Path(__file__).parent / "templates" / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _prose(text: str) -> Markup:
    """Render a docstring as Markdown; HTML in it shows as text."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - html is off


def _line(text: str) -> Markup:
    """Render one line of Markdown, without a paragraph around it."""
    return Markup(_MARKDOWN.renderInline(text))  # noqa: S704 - html is off
