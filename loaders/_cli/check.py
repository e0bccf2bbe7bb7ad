"""``check``: did a change make a strategy slower or fatter?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from loaders._cli import options
from loaders._cli.output import Stopped, checked, finish, print_json, say, write

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".asv" / "check"
"""Where sides are laid out and log their trials."""


@click.command("check")
@click.argument("base")
@click.argument("head", required=False)
@click.option(
    "--only",
    multiple=True,
    metavar="QUESTION[.STRATEGY]",
    help="What to measure. [default: what the change can affect]",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Every strategy, whether or not the change can affect it; what --only names is measured anyway.",
)
@options.minutes(
    "Keep measuring undecided strategies for this long (LOADERS_CHECK_MINUTES).", envvar="LOADERS_CHECK_MINUTES"
)
@options.size
@click.option("--fresh", is_flag=True, help="Start each trial in a fresh process, none in a fork of a server.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write a summary for a pull request.")
@options.as_json
def command(
    base: str,
    head: str | None,
    only: Sequence[str],
    minutes: float,
    size: str,
    markdown: Path | None,
    *,
    every: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Say whether HEAD (default: the working tree) is slower or fatter than the commit BASE.

    Trials are forked from a server that has done the imports where both commits can do so and the strategy allows it.

    The exit code is 1 if a regression beyond the margin is confirmed, or that a strategy fails more often. Undecided
    strategies are listed, but do not count as regressions. An interruption (130), or an error (2), shows what was
    measured until then.
    """
    from loaders import _terminal
    from loaders._check import plan, run, show, sides
    from loaders._check import trials as running
    from loaders._trial import log, machine

    outcomes: list[run.Outcome] = []
    stopped: Stopped = None
    notes: list[str] = []

    def noted(message: str) -> None:
        say(message)
        notes.append(message)

    with log.exclusive(machine.machine_name()):  # to lay out a side may take an installation, which disturbs others
        a, b = (sides.side(each, ROOT, PLACE) for each in (base, head))
        sides.begin_log(PLACE)
        chosen, left_out = plan.chosen(a, b, only, noted, every=every)
        title = f"{b.name} against {a.name}"
        if chosen:
            with running.trials((a, b), chosen, size, noted, fresh=fresh) as trials:
                subjects = plan.subjects(chosen, trials, sides.differing(a, b))
                say(f"{title}: {', '.join(each.name for each in subjects)}, for at most {minutes:g} minutes")
                begin = sides.unchanged((a, b), trials.begin)
                for each in subjects[:1]:  # builds the data, and compiles what is imported, outside of what is measured
                    each.a(0)
                    each.b(0)
                outcomes, stopped = checked(
                    minutes * 60, lambda told: run.run(subjects, minutes * 60, begin=begin, told=told)
                )
        else:
            noted("the change affects no strategy; use --only QUESTION to measure one anyway")
    if stopped:
        notes.append(f"it ended before its time: {str(stopped) or 'interrupted'}")
    outcomes += [run.Outcome(name, None, None, skipped=run.LEFT_OUT) for name in left_out]
    if as_json:  # shown even where it cannot be written
        print_json(outcomes)
    else:
        _terminal.show_check(outcomes)
    if markdown:
        write(markdown, show.markdown(outcomes, title, notes))
    finish(int(any(each.is_regression for each in outcomes)), stopped)
