"""The advice for somebody's own folder, as one page to be sent on."""

from __future__ import annotations

from markupsafe import Markup

from loaders._advise.command import HEADINGS, lines, source_in_words
from loaders._folder import words
from loaders._folder.advice import Advice
from loaders._report import charts
from loaders._report.charts import Chart
from loaders._report.page import part, templates
from loaders._stats import Estimate
from loaders._words import amount, duration, estimated


def render(found: Advice, command: str) -> str:
    """Return the page."""
    return (
        templates()
        .get_template("folder.html.j2")
        .render(
            found=found,
            answers=words.answer(found),
            seen=[*words.seen(found.folder), words.whole(found)],
            usage=words.usage(found, found.folder.name) if found.module else "",
            headings=HEADINGS,
            lines=list(lines(found.answer)),
            charts=[each for each in (time_chart(found), memory_chart(found)) if each.picture],
            source=source_in_words(found.answer),
            command=command,
            style=Markup(part("page.css")),  # noqa: S704 - our own
        )
    )


def time_chart(found: Advice) -> Chart:
    """Return a chart of the time of all epochs, by loader."""
    totals = {each.name: each.total for each in found.answer.strategies if each.total and each.kind != "ceiling"}
    title = f"Time of {found.asked.epochs} epochs of {found.folder.images} images, training steps included"
    return charts.of_estimates(title, totals, lambda each: estimated(each, duration), 1.0, "s (log scale)")


def memory_chart(found: Advice) -> Chart:
    """Return a chart of the memory that all images need, by loader."""
    needed: dict[str, Estimate | None] = {
        each.name: each.memory for each in found.answer.strategies if each.kind != "ceiling"
    }
    title = f"Memory that {found.folder.images} images need"
    return charts.of_estimates(title, needed, lambda each: estimated(each, amount), 2.0**-20, "MiB (log scale)")
