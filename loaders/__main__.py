"""The command line: ``python -m loaders list | trial | compare | advise | check | selftest | evidence | report``."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loaders import _durable, _registry
from loaders._errors import InputError

if TYPE_CHECKING:
    from loaders._corpus import Corpus
    from loaders._rows import Comparison
    from loaders._trial import Record

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SIZES = ("tiny", "small", "full", "large")


def _bytes(value: str) -> int:
    """Return the number of bytes in ``2GiB``, ``512MiB`` or ``1.5G``; units are powers of 1024."""
    text = str(value).strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    try:
        amount = int(float(number) * UNITS[unit])
    except (ValueError, OverflowError, KeyError):
        amount = 0
    if amount <= 0:
        raise click.BadParameter(f"{value!r} is not an amount of memory; write 2GiB or 512MiB")
    return amount


class Group(click.Group):
    """Turns what the user can mend into one message and exit code 2, Ctrl-C into 130, and a fault of ours into 70.

    A reader that has had enough (``| head``) ends it quietly, with the 141 of what a shell shows for SIGPIPE.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("interrupted; every finished trial is kept, and the same command continues", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # What is still in the buffer must not fail again when the interpreter ends.
            # https://docs.python.org/3/library/signal.html#note-on-sigpipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:  # noqa: BLE001 - it must not look like exit code 1, "a strategy went wrong"
            traceback.print_exc()
            click.echo("this is a fault of the suite; please report it", err=True)
            ctx.exit(70)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Which way of loading data into TensorFlow is fastest, leanest, and safe from running out of memory?"""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # a shell's background job is started with it ignored


_with = click.option(
    "--with",
    "outside",
    multiple=True,
    metavar="FILE",
    help="Register the strategies of a file of yours (LOADERS_WITH).",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


def _shared(command: Any) -> Any:
    """Add the options that trial and comparison share."""
    for option in (
        click.option(
            "--data", metavar="DIR", envvar="LOADERS_DATA", help="Your own images, DIR/LABEL/x.jpg (LOADERS_DATA)."
        ),
        click.option("--strict", is_flag=True, help="An unreadable image is an error."),
        click.option("--size", type=click.Choice(SIZES), default="small", envvar="LOADERS_SIZE", show_default=True),
        click.option(
            "--memory-limit",
            type=_bytes,
            metavar="2GiB",
            help="End a trial whose process tree holds more, imports included. [default: 80 % of what is free]",
        ),
        click.option(
            "--deadline",
            type=click.FloatRange(min=0, min_open=True),
            default=600.0,
            show_default=True,
            help="End a trial after so many seconds.",
        ),
        click.option(
            "--epochs",
            type=click.IntRange(min=1),
            help="Epochs in all: the verdict on memory needs some hundred batches. [default: by question and size]",
        ),
        _with,
        _json,
    ):
        command = option(command)
    return command


@main.command("list")
@_with
@_json
def list_(outside: Sequence[str], *, as_json: bool) -> None:
    """List the questions and their strategies."""
    _registry.load_files(_registry.outside_files(outside))
    found = {name: (question, _registry.variants(name)) for name, question in _registry.questions().items()}
    if as_json:
        import json

        document = {
            name: {
                "title": question.title,
                "axes": {axis: list(values) for axis, values in question.axes.items()},
                "strategies": [
                    {
                        "name": each.name,
                        "label": each.label,
                        "tier": each.tier,
                        "matches": each.matches,
                        "baseline": each.baseline,
                    }
                    for each in strategies.values()
                ],
            }
            for name, (question, strategies) in found.items()
        }
        click.echo(json.dumps(document, indent=2))
        return
    for name, (question, strategies) in found.items():
        axes = "".join(f"   {axis}: {', '.join(values)}" for axis, values in question.axes.items())
        click.echo(f"{click.style(name, bold=True)}  {question.title}{axes}")
        width = max(len(each) for each in strategies)
        for each in strategies.values():
            mark = "*" if each.baseline else " "
            click.echo(f"  {mark} {each.name:<{width}}  {each.label}")
    click.echo("\n* the baseline, which ratios are taken to")


@main.command()
@click.argument("question")
@click.argument("strategy")
@click.option("--case", "cases", multiple=True, metavar="AXIS=VALUE", help="A value of one of the question's axes.")
@click.option("--seed", type=int, default=1, show_default=True)
@_shared
def trial(
    question: str,
    strategy: str,
    cases: Sequence[str],
    seed: int,
    *,
    data: str | None,
    strict: bool,
    size: str,
    memory_limit: int | None,
    deadline: float,
    epochs: int | None,
    outside: Sequence[str],
    as_json: bool,
) -> None:
    """Run one strategy once, in a fresh process, and show everything that was measured."""
    files = _registry.outside_files(outside)
    _registry.load_files(files)
    asked = _registry.find_question(question)
    _registry.find_variant(question, strategy)
    case = _case(asked, cases)
    corpus = _open(size, data, strict=strict)

    from loaders import _compare, _terminal
    from loaders._trial import log, machine, run_trial

    planned = _compare.plan(
        question, corpus, memory_limit=memory_limit, deadline=deadline, outside=tuple(files), epochs=epochs
    )
    log.refuse_other_processor(log.log_path(machine.machine_name()), machine.processor())
    record = run_trial(planned.trial(strategy, case, seed), corpus)
    try:
        log.append(log.log_path(machine.machine_name()), record)
    finally:  # shown even where it cannot be kept
        if as_json:
            _print_json(record)
        else:
            _terminal.show_trial(record)
    sys.exit(0 if record.status in ("ok", "skipped") else 1)


@main.command()
@click.argument("questions", nargs=-1)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    envvar="LOADERS_ROUNDS",
    help="How often each strategy runs (LOADERS_ROUNDS). [default: by size]",
)
@click.option("--all-cases/--default-case", default=None, help="Every value of the question's axes. [default: by size]")
@click.option("--case", "given", multiple=True, metavar="AXIS=VALUE", help="Only the cases with this value.")
@click.option("--quick", is_flag=True, help="Only the strategies that carry each question's finding.")
@_shared
def compare(
    questions: Sequence[str],
    rounds: int | None,
    *,
    all_cases: bool | None,
    given: Sequence[str],
    quick: bool,
    data: str | None,
    strict: bool,
    size: str,
    memory_limit: int | None,
    deadline: float,
    epochs: int | None,
    outside: Sequence[str],
    as_json: bool,
) -> None:
    """Compare all strategies of QUESTIONS (all of them where none is named), in shuffled rounds of trials.

    An interrupted comparison is continued by the same command.
    """
    files = _registry.outside_files(outside)
    _registry.load_files(files)
    names = list(questions) or _every()
    for name in names:
        _registry.find_question(name)
    corpus = _open(size, data, strict=strict)

    from loaders import _calibration, _compare, _rows, _terminal
    from loaders._trial import log, machine

    found: list[Comparison] = []
    bad = False
    # All before the first trial: an error in the last question's must not come after hours.
    plans = [
        _compare.plan(
            name,
            corpus,
            rounds=rounds,
            all_cases=all_cases,
            memory_limit=memory_limit,
            deadline=deadline,
            outside=tuple(files),
            epochs=epochs,
            quick=quick,
            only=_values(_registry.find_question(name), given),
        )
        for name in names
    ]
    calibration = _calibration.newest(log.read(log.log_path(machine.machine_name())))
    for planned in plans:
        with _terminal.progress(planned.question, planned.trials_a_round * planned.rounds) as bar:
            records = _compare.run(planned, done=bar.done, begin=bar.begin, say=_say)
        if _registry.find_question(planned.question).calibrates:
            calibration = _calibration.calibration(records)
        result = _rows.comparison(records, calibration)
        bad = bad or any(record.status not in ("ok", "skipped") for record in records)
        found.append(result)
        if not as_json:
            _terminal.show_comparison(result)
            if calibration and _registry.find_question(planned.question).calibrates:
                _terminal.show_calibration(calibration)
    if as_json:
        _print_json(found[0] if len(questions) == 1 else found)
    sys.exit(1 if bad else 0)


@main.command()
@click.argument("folder", required=False)
@click.option("--question", default="batching", show_default=True, help="What to choose.")
@click.option("--memory", type=_bytes, default="1GiB", show_default=True, help="For loading, beside your program.")
@click.option("--step", default="50ms", show_default=True, metavar="50ms|none", help="Time of a training step.")
@click.option("--batch", type=click.IntRange(1, 10**6), default=32, show_default=True, help="Samples in a step.")
@click.option("--samples", type=click.IntRange(1, 10**12), default=10_000, show_default=True, help="In your data.")
@click.option("--epochs", type=click.IntRange(1, 10**6), default=20, show_default=True)
@click.option("--case", "given", multiple=True, metavar="AXIS=VALUE", help="A value of one of the question's axes.")
@_json
def advise(
    folder: str | None,
    question: str,
    memory: int,
    step: str,
    batch: int,
    samples: int,
    epochs: int,
    given: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Say which strategy to take, from the results that are there: this machine's first, else the published ones.

    Exit code 0 too where nothing can be recommended: the answer says what to measure.
    """
    from loaders._advise import command
    from loaders._advise.choose import Settings
    from loaders._trial import log, machine

    if folder is not None:
        raise InputError(f"{folder}: advice on a folder of yours is not there yet; leave it out")
    settings = Settings(memory, command.seconds(step), batch, samples, epochs)
    values = _values(_registry.find_question(question), given)
    command.asked(question, values)
    records = log.read_all(log.results_root(), _say)
    answer = command.advise(records, question, values, settings, machine.machine_name())
    if as_json:
        _print_json(answer)
    else:
        command.show(answer)


@main.command()
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path(".asv/comparison.html"), show_default=True
)
@_with
def report(out: Path, outside: Sequence[str]) -> None:
    """Write the comparison page and its figures as CSV, from the trial logs; `asv publish` puts both into its site."""
    from loaders._report import asv_files, export, page, sets
    from loaders._trial import log

    _registry.load_files(_registry.outside_files(outside))
    comparisons = sets.collect(log.results_root(), _say)
    if not comparisons:
        raise InputError(f"no finished comparison under {log.results_root()}; run `python -m loaders compare` first")
    figures = out.with_suffix(".csv")
    _write(figures, export.tidy(comparisons))
    _write(out, page.render(comparisons, asv_files.read(log.results_root()), data=figures.name))
    click.echo(f"the comparison page: {out.absolute().as_uri()}")


@main.command()
@click.argument("base")
@click.argument("head", required=False)
@click.option(
    "--only", multiple=True, metavar="QUESTION[.STRATEGY]", help="[default: what the change can have touched]"
)
@click.option(
    "--all", "every", is_flag=True, help="Every strategy, or every one of --only, whatever the change can reach."
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    envvar="LOADERS_CHECK_MINUTES",
    help="Measure what is undecided again for so long (LOADERS_CHECK_MINUTES).",
)
@click.option("--size", type=click.Choice(SIZES), default="small", envvar="LOADERS_SIZE", show_default=True)
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write a summary for a pull request.")
@_json
def check(
    base: str,
    head: str | None,
    *,
    only: Sequence[str],
    every: bool,
    minutes: float,
    size: str,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Say whether HEAD (the working tree where none is given) is slower or fatter than the commit BASE.

    Exit code 1 for a regression that is confirmed beyond the margin; what is undecided is said, and is none. An
    interruption (130) shows what was measured.
    """
    from loaders import _terminal
    from loaders._check import plan, run, show, sides

    repository = Path(__file__).parents[1]
    place = repository / ".asv" / "check"
    a, b = sides.side(base, repository, place), sides.side(head, repository, place)
    subjects = plan.subjects(a, b, only, size, _say, every=every)
    title = f"{b.name} against {a.name}"
    outcomes: list[run.Outcome] = []
    interrupted = False
    if subjects:
        _say(f"{title}: {', '.join(each.name for each in subjects)}, for at most {minutes:g} minutes")
        for each in subjects[:1]:  # builds the data, and compiles what is imported, outside of what is measured
            each.a(0)
            each.b(0)
        with _terminal.checking(minutes * 60) as show_progress:

            def told(so_far: list[run.Outcome]) -> None:
                outcomes[:] = so_far
                show_progress(so_far)

            try:
                outcomes = run.run(subjects, minutes * 60, told=told)
            except KeyboardInterrupt:
                interrupted = True
    else:
        _say(f"{title}: the change reaches no strategy; --only QUESTION measures one nevertheless")
    if markdown:
        _write(markdown, show.markdown(outcomes, title))
    if as_json:
        _print_json(outcomes)
    else:
        _terminal.show_check(outcomes)
    if interrupted:
        _say("interrupted; what was measured until then is judged, the rest is not")
        sys.exit(130)
    sys.exit(1 if any(each.is_regression for each in outcomes) else 0)


@main.command()
@click.option("--checks", type=click.IntRange(min=1), default=40, show_default=True, help="Of each kind.")
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True, help="Of each."
)
@click.option(
    "--subject",
    type=click.Choice(("python", "tensorflow")),
    default="python",
    show_default=True,
    help="What the differences are planted in.",
)
@_json
def selftest(*, checks: int, minutes: float, subject: str, as_json: bool) -> None:
    """Measure the error of `check`: identical sides, and planted differences of time and memory.

    Each check is kept as soon as it has ended, and the same command continues; the page shows the result.
    """
    from loaders import _compare, _terminal
    from loaders._check import selftest as own
    from loaders._trial import log, machine, run_trial

    corpus = _open("tiny", None, strict=True)
    _registry.load_files([own.FILE])
    planned = _compare.plan(own.QUESTIONS_OF[subject], corpus, outside=(str(own.FILE),))
    kinds = own.KINDS_OF[subject]

    def trial(strategy: str, seed: int) -> Record:
        return run_trial(planned.trial(strategy, planned.cases[0], seed), corpus)

    with log.exclusive(machine.machine_name()):
        path = log.log_path(machine.machine_name()).with_name(own.NAME)
        tallies = own.selftest(checks, minutes * 60, trial, path, kinds, told=_terminal.told_of_selftest)
    if as_json:
        _print_json(tallies)
    else:
        _terminal.show_selftest(tallies)
    wrong = sum(each.alarms for each in tallies if each.kind == kinds[0].name)
    sys.exit(1 if wrong else 0)


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(("simulation", "checks", "replay", "law")))
@click.option("--repetitions", type=click.IntRange(min=2), default=1000, show_default=True, help="Of each kind.")
@click.option(
    "--noise",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The trial log whose noise or answers are taken. [default: that of the published results]",
)
@_json
def evidence(names: Sequence[str], repetitions: int, noise: Path | None, *, as_json: bool) -> None:
    """Count how often judge, check, recommendations and the law of memory are wrong.

    `simulation` and `checks` plant the truth in the noise of real trials; `replay` reads raw trials a second time;
    `law` holds predictions against trials with four times the data.

    Each experiment is kept as it ends. Exit code 1 where a count misses what is wanted by more than chance explains.
    """
    from loaders import _evidence, _terminal
    from loaders._report.readme import PUBLISHED
    from loaders._trial import log, machine

    source = noise or log.results_root() / PUBLISHED / log.NAME
    found = []
    for name in names or _evidence.EXPERIMENTS:
        found.append(_evidence.experiment(name, source, repetitions))
        log.append(log.log_path(machine.machine_name()).with_name(_evidence.NAME), found[-1])
        if not as_json:
            _terminal.show_evidence(found[-1])
    if as_json:
        _print_json(found)
    sys.exit(0 if all(count.is_reached for each in found for count in each.counts) else 1)


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when the README is stale.")
def readme(*, check: bool) -> None:
    """Renew the README's findings, table and picture, from the published results."""
    from loaders._report import readme as made

    stale = made.renew(Path.cwd(), write=not check)
    for name in stale:
        click.echo(f"{'stale' if check else 'renewed'}: {name}")
    sys.exit(1 if stale and check else 0)


def _every() -> list[str]:
    """Return all questions, the instruments' first: what they resolve is said of everything else."""
    known = _registry.questions()
    return sorted(known, key=lambda name: not known[name].calibrates)


def _values(question: _registry.Question, given: Sequence[str]) -> dict[str, str]:
    """Return the values that were given, by axis."""
    chosen: dict[str, str] = {}
    for item in given:
        axis, separator, value = item.partition("=")
        if axis not in question.axes or not separator:
            axes = ", ".join(f"{name}={'|'.join(values)}" for name, values in question.axes.items())
            raise InputError(f"--case {item}: write AXIS=VALUE; {question.name} has {axes or 'no axes'}")
        if value not in question.axes[axis]:
            raise InputError(f"--case {item}: {axis} is one of {', '.join(question.axes[axis])}")
        if axis in chosen:
            raise InputError(f"--case {item}: {axis}={chosen[axis]} is given too; give one, or --all-cases")
        chosen[axis] = value
    return chosen


def _case(question: _registry.Question, given: Sequence[str]) -> dict[str, str]:
    """Return the default case with what was given put in."""
    return {**question.default_case, **_values(question, given)}


def _open(size: str, data: str | None, *, strict: bool) -> Corpus:
    """Open the corpus, with a progress bar on standard error while it is built."""
    from loaders import _terminal
    from loaders._corpus import open_corpus

    return open_corpus(size, data, strict=strict, say=_say, progress=_terminal.track_pictures)


def _say(message: str) -> None:
    click.echo(message, err=True)


def _print_json(document: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def _write(path: Path, text: str) -> None:
    try:
        _durable.write(path, text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _interrupt(signal_number: int, frame: object) -> None:  # noqa: ARG001
    """End as Ctrl-C does, so that the trial's processes are ended too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(prog_name="python -m loaders")
