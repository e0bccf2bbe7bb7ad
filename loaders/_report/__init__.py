"""From results to the comparison page, and into asv's site.

===============  ===========================================================================
``sets``         collects result sets
``page``         renders them, with the ``templates``
``opening``      the first view: the answer and what it rests on
``findings``     the sentences of a question
``columns``      which figures a ranking shows, in their order
``charts``       draws every chart
``vega``         pieces that charts share; pure
``svg``          charts to pictures; pure
``chooser``      the decisions for every setting that the page offers
``asv_files``    reads asv's own results
``instruments``  holds them beside the trial log
``export``       writes the figures for machines
``readme``       renews the README and ``docs/results.md``
``folder``       the advice for somebody's own folder, as one page
``probe``        what was found about somebody's own pipeline, as one page
===============  ===========================================================================

This module is the asv plugin: asv loads it because ``asv.conf.json`` names ``.loaders._report``, and calls every
``OutputPublisher`` it finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

from loaders import _durable, _registry
from loaders._errors import InputError
from loaders._report import asv_files, export, page, sets

PAGE = "comparison.html"

ANCHOR = '<li id="nav-li-regressions"><a href="#/regressions">Regressions</a></li>'
"""The last entry of asv's navigation (0.6.5 and 0.6.6). Plugins cannot add entries, so ours is inserted after it."""


class ComparisonPage(OutputPublisher):  # type: ignore[misc] # asv ships without types
    """Writes the comparison page into asv's site and links it in the navigation."""

    name = "comparison"
    button_label = "Comparison"
    description = "Every strategy side by side"

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:  # noqa: ARG003
        """Write the page; called by ``asv publish``."""
        site = Path(conf.html_dir)
        try:
            _registry.load_files(_registry.outside_files())
        except InputError as error:  # raising here would leave asv's site without an index
            log.error(str(error))
        results = Path(conf.results_dir)
        comparisons, held = sets.collect(results, log.warning), asv_files.read(results, log.warning)
        files = export.write_beside(site / PAGE, comparisons, results)
        for name, text in page.rendered(comparisons, held, PAGE, home="index.html", files=files).items():
            _durable.write(site / name, text)
        index = site / "index.html"
        _durable.write(index, linked(index.read_text(encoding="utf-8")))
        log.info(f"the comparison page: {(site / PAGE).absolute().as_uri()}")


def linked(index: str) -> str:
    """Return asv's ``index.html`` with a link to the page in its navigation.

    Raises
    ------
    UserError
        If the navigation does not look as expected; the message names the remedy.
    """
    if index.count(ANCHOR) != 1:
        raise UserError(
            f"cannot link {PAGE} in asv's navigation: index.html holds the expected entry {index.count(ANCHOR)} times, "
            f"not once. This asv is newer than the plugin: adapt ANCHOR in loaders/_report/__init__.py"
        )
    return index.replace(ANCHOR, f'{ANCHOR}\n\t<li id="nav-li-comparison"><a href="{PAGE}">Comparison</a></li>')
