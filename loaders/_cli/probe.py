"""``probe``: the same instruments on anybody's own pipeline."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loaders._cli import options
from loaders._cli.output import Stopped, checked, finish, print_json, write
from loaders._errors import InputError

if TYPE_CHECKING:
    from loaders._probe.asked import Asked
    from loaders._probe.gates import Limits
    from loaders._trial import Record

FORBIDDEN = ("growing", "bottleneck", "uneven")


@click.command("probe")
@click.argument("targets", nargs=-1, required=True, metavar="FILE.py:FUNCTION [FILE.py:FUNCTION]")
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="An argument of the function.")
@click.option("--step", metavar="50ms", help="Duration of a training step, to see whether loading holds it up.")
@click.option("--steps", type=click.IntRange(min=1), help="Batches of an epoch, for a pipeline that never ends.")
@click.option("--epochs", type=click.IntRange(min=2), help="Epochs of a trial. [default: 4]")
@click.option("--trials", type=click.IntRange(min=1), help="Trials of a pipeline. [default: 3]")
@options.minutes("How long two pipelines are compared for at most.")
@click.option(
    "--memory-limit",
    type=options.amount_of_memory,
    metavar="2GiB",
    help="End a trial that holds more, imports included. [default: 80 % of what is available]",
)
@click.option(
    "--deadline",
    type=options.above_zero,
    default=600.0,
    show_default=True,
    help="End a trial after this many seconds, its imports included.",
)
@click.option("--fail-on", "forbidden", multiple=True, type=click.Choice(FORBIDDEN), help="Exit with 1 if so.")
@click.option(
    "--max-peak", type=options.amount_of_memory, metavar="2GiB", help="Exit with 1 if it holds more above imports."
)
@click.option("--min-rate", type=options.above_zero, help="Least samples a second, else exit 1.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write a summary for a pull request.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write one page to be sent on.")
@options.as_json
def command(
    targets: Sequence[str],
    arguments: tuple[str, ...],
    step: str | None,
    steps: int | None,
    epochs: int | None,
    trials: int | None,
    minutes: float,
    memory_limit: int | None,
    deadline: float,
    forbidden: tuple[Any, ...],
    max_peak: int | None,
    min_rate: float | None,
    markdown: Path | None,
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    """Measure the pipeline that a function of yours makes: its speed, its waits, its memory over the steps.

    The function returns a tf.data pipeline, a generator, a Keras PyDataset, a torch DataLoader, or any other iterable
    of batches. Its file is imported, not changed and not run as a script.

    Of two pipelines, say whether the second is slower or fatter than the first, and delivers the same samples.

    The exit code is 1 if a limit is broken, a pipeline raises, or the second of two is slower or fatter beyond doubt;
    3 if a limit cannot be decided; 2 for bad input.
    """
    from loaders._advise.command import seconds
    from loaders._probe import asked as asking
    from loaders._probe import target
    from loaders._probe.gates import Limits

    if len(targets) > 2:
        raise click.UsageError("one pipeline, or two to compare")
    seconds_of_step = None if step is None else seconds(step) or None
    plans = [
        asking.Asked(
            target.parse(each, arguments),
            step=seconds_of_step,
            steps=steps,
            epochs=epochs or asking.EPOCHS,
            memory_limit=memory_limit,
            deadline=deadline,
        )
        for each in targets
    ]
    if "bottleneck" in forbidden and seconds_of_step is None:
        raise click.UsageError("--fail-on bottleneck needs the duration of a training step: --step 50ms")
    limits = Limits(forbidden, max_peak, min_rate)
    if len(plans) == 2:
        if limits != Limits() or report or trials:
            raise click.UsageError("limits, the report and --trials are for one pipeline")
        _compare(plans, minutes, markdown, as_json=as_json)
    else:
        _probe(plans[0], trials or asking.TRIALS, limits, markdown, report, as_json=as_json)


def _probe(
    plan: Asked, trials: int, limits: Limits, markdown: Path | None, report: Path | None, *, as_json: bool
) -> None:
    from loaders import _terminal
    from loaders._probe import asked, gates, words
    from loaders._probe.found import found

    if report:  # what it needs may be missing: that is said before anything is measured
        from loaders._report import probe as page

    records: list[Record] = []
    stopped: Stopped = None
    with _terminal.progress(trials, None) as bar:

        def told(record: Record) -> None:
            records.append(record)
            bar.done(record)

        try:
            for _ in asked.rounds(plan, trials, told):
                pass
        except (KeyboardInterrupt, InputError) as ended:
            stopped = ended
    if stopped and not records:
        raise stopped
    result = found(plan, records)
    judged = gates.gates(result, limits)
    if as_json:  # shown even where it cannot be written
        print_json({"found": result, "gates": judged, "answer": words.answer(result)})
    else:
        _terminal.show_probe(result, judged)
    line = f"python -m loaders {shlex.join(sys.argv[1:])}"
    if markdown:
        write(markdown, words.markdown(result, judged, line))
    if report:
        write(report, page.render(result, judged, line))
    finish(gates.exit_code(result, judged), stopped)


def _compare(plans: Sequence[Asked], minutes: float, markdown: Path | None, *, as_json: bool) -> None:
    from loaders import _terminal
    from loaders._check import show
    from loaders._probe.pair import Pair

    pair = Pair(*plans)
    outcomes, stopped = checked(minutes * 60, lambda told: [pair.run(minutes * 60, told)])
    if stopped and not any(each.judgements or each.failures.a + each.failures.b for each in outcomes):
        raise stopped
    same = pair.same_samples()
    if as_json:  # shown even where it cannot be written
        print_json({"outcome": outcomes[0], "samples": same})
    else:
        _terminal.show_check(outcomes)
        if same:
            click.echo(same)
    if markdown:
        write(markdown, f"{show.markdown(outcomes, pair.name)}\n{same}\n")
    failed = outcomes[0].failures
    finish(int(outcomes[0].is_regression or failed.a + failed.b > 0), stopped)
