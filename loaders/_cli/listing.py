"""``list``: the questions and their strategies."""

from __future__ import annotations

from collections.abc import Sequence

import click

from loaders import _registry
from loaders._cli import options
from loaders._cli.output import print_json
from loaders._figures import ASV_UNITS, declared
from loaders._trial.metrics import Metrics
from loaders._words import case_in_words


@click.command("list")
@options.outside
@options.as_json
def command(outside: Sequence[str], *, as_json: bool) -> None:
    """List the questions and their strategies."""
    options.register(outside)
    found = [(question, list(_registry.variants(name).values())) for name, question in _registry.questions().items()]
    if as_json:
        print_json({question.name: _document(question, strategies) for question, strategies in found})
        return
    for question, strategies in found:
        axes = "".join(f"   {axis}: {', '.join(values)}" for axis, values in question.axes.items())
        click.echo(f"{click.style(question.name, bold=True)}  {question.title}{axes}")
        width = max(len(each.name) for each in strategies)
        for each in strategies:
            mark = "*" if each.baseline else " "
            click.echo(f"  {mark} {each.name:<{width}}  {each.label}")
    click.echo("\n* the baseline, with which the others are compared")


def _document(question: _registry.Question, strategies: Sequence[_registry.Variant]) -> dict[str, object]:
    figures = declared(Metrics)
    always = [name for name, figure in figures.items() if figure.tracked]
    tracked = {name: figures[name] for name in (*always, *question.tracks)}
    facts = ("name", "label", "tier", "matches", "baseline", "engine")
    return {
        "title": question.title,
        "cases": {case_in_words(case): case for case in question.cases},
        "tracked": {name: ASV_UNITS[each.unit] for name, each in tracked.items()},
        "fresh_only": [name for name, each in tracked.items() if each.fresh_only],
        "strategies": [{fact: getattr(each, fact) for fact in facts} for each in strategies],
    }
