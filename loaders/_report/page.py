"""The comparison page: trial records to comparisons to one self-contained HTML text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2
import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup

from loaders import _registry, _words
from loaders._report import charts, claims, findings
from loaders._rows import Comparison, Row, comparison
from loaders._trial import Record, log


class ResultSet(msgspec.Struct, frozen=True):
    """The newest comparisons of one machine on one corpus, one for each question."""

    machine: str
    size: str
    data: str
    started: str
    comparisons: list[Comparison]

    @property
    def title(self) -> str:
        """What a heading says: the machine, the size and the data, with the first digits of its digest."""
        origin, count, key = self.data.rsplit(", ", 2) if self.data.count(", ") >= 2 else (self.data, "", "")
        return ", ".join(filter(None, [self.machine, self.size, origin, f"{count} ({key[:4]})" if key else ""]))

    @property
    def id(self) -> str:
        """An anchor."""
        return "-".join([*_slug(self.machine), self.size, *_slug(self.data.rpartition(", ")[2])])


def collect(root: Path, say: Callable[[str], None] = lambda _: None) -> list[ResultSet]:
    """Return what the trial logs below ``root`` hold, the newest result set first.

    Of each question and case the newest run that finished a whole round is taken, else the newest.
    """
    known = _registry.questions()
    sets: defaultdict[tuple[str, str, str], dict[str, list[Record]]] = defaultdict(dict)
    by_run: defaultdict[str, list[Record]] = defaultdict(list)
    for record in log.read_all(root, say):
        if not record.run:
            continue  # a single trial, run by hand
        if record.question not in known:
            say(f"left out a trial of {record.question!r}, a question that this version does not have")
            continue
        by_run[record.run].append(record)
    for records in sorted(by_run.values(), key=lambda each: each[0].started):
        first = records[0]
        place = sets[(first.environment.machine or "unknown", first.size, first.data)]
        older = place.get(first.question, [])
        if not older or _whole(records):
            again = [record.case for record in records]
            # Of an older run those cases stay that the question still has and that were not run again.
            kept = [case for case in known[first.question].cases if case not in again]
            place[first.question] = [each for each in older if each.case in kept] + records
        elif not any(_whole([each for each in older if each.run == run]) for run in {each.run for each in older}):
            place[first.question] = records
    found = [
        ResultSet(
            machine,
            size,
            data,
            max(records[0].started for records in runs.values()),
            [comparison(runs[name]) for name in known if name in runs],
        )
        for (machine, size, data), runs in sets.items()
    ]
    return sorted(found, key=lambda each: each.started, reverse=True)


def _whole(records: Sequence[Record]) -> bool:
    """Whether a run has finished its first round."""
    return any(record.round > 0 for record in records) or len(records) >= records[0].planned


def render(results: Sequence[ResultSet], home: str | None = None, data: str | None = None) -> str:
    """Return the page; ``home`` is the address of asv's own index and ``data`` of the CSV, where there are such."""
    loader = jinja2.PackageLoader("loaders._report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        duration=lambda each: _stacked(_words.estimated(each, _words.duration)),
        small_amount=lambda each: _stacked(_words.estimated(each, _words.small_amount)),
        amount=lambda each: _stacked(_words.estimated(each, _words.amount)),
        rate=_words.rate,
        finding=findings.of,
        times=lambda each: _stacked(_words.times(each)),
        fatter=lambda each: _stacked(_words.times(each, "leaner", "fatter")),
        machine=_words.machine_in_words,
        case=_words.case_in_words,
        growth_finding=findings.of_growth,
        cures=findings.cures_of,
        multiple=lambda each: _stacked(_words.multiple(each)),
        ceiling_finding=findings.of_ceiling,
        scaling_finding=findings.of_scaling,
        cached=lambda rows: _words.cached(row.page_cache for row in rows),
        prose=_prose,
        line=_line,
    )
    environment.globals.update(
        time_chart=lambda comparison, rows: Markup(charts.time_chart(comparison, rows)),  # noqa: S704 - Vega escapes
        steps_chart=lambda rows: Markup(charts.steps_chart(rows)),  # noqa: S704
        order_picture=lambda rows: Markup(charts.order_picture(rows)),  # noqa: S704 - escaped there
        level=_words.level,
        pays_off=_words.pays_off,
        most=_words.most,
        waiting=_words.waiting,
        sweep_chart=lambda comparison, rows: Markup(  # noqa: S704
            charts.sweep_chart(
                rows,
                _registry.find_question(comparison.question).sweeps,
                f"{charts.TIME_METRICS[comparison.ranked_by]} in ms",
            )
        ),
        scaling_chart=lambda comparison: Markup(charts.scaling_chart(comparison)),  # noqa: S704
        judged=claims.judged,
        ordered=_words.ordered,
        tradeoff_chart=lambda rows: Markup(charts.tradeoff_chart(rows)),  # noqa: S704
        strategies=_registry.variants,
        command=command,
        memory_chart=lambda rows: Markup(charts.memory_chart(rows)),  # noqa: S704
        by_case=by_case,
        question=lambda name: _registry.questions()[name],
        time_metrics=charts.TIME_METRICS,
    )
    return environment.get_template("page.html.j2").render(results=results, home=home, data=data)


def command(question: str, strategy: str, size: str) -> str:
    """Return the command that runs one strategy once, as a comparison ran it."""
    return f"python -m loaders trial {question} {strategy} --size {size}"


def by_case(comparison: Comparison) -> list[tuple[dict[str, str], list[Row]]]:
    """Group the rows by case, in the order of the question's axes."""
    grouped: defaultdict[str, list[Row]] = defaultdict(list)
    for row in comparison.rows:
        grouped[repr(sorted(row.case.items()))].append(row)
    order = [repr(sorted(case.items())) for case in _registry.find_question(comparison.question).cases]
    keys = sorted(grouped, key=lambda key: order.index(key) if key in order else len(order))
    return [(grouped[key][0].case, grouped[key]) for key in keys]


def _prose(text: str) -> Markup:
    """Render a docstring as Markdown; HTML in it shows as text."""
    return Markup(MarkdownIt("commonmark", {"html": False}).render(text))  # noqa: S704 - html is off


def _line(text: str) -> Markup:
    """Render one line of Markdown, without a paragraph around it."""
    return Markup(MarkdownIt("commonmark", {"html": False}).renderInline(text))  # noqa: S704 - html is off


def _stacked(figure: str) -> Markup:
    """Put the bracketed interval of a figure under it."""
    value, bracket, rest = figure.partition(" (")
    return Markup('{}<span class="interval">{}</span>').format(value, bracket.strip() + rest)


def _slug(text: str) -> list[str]:
    return ["".join(letter if letter.isalnum() else "-" for letter in text)]
