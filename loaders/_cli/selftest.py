"""``selftest``: how often ``check`` is wrong on this machine, and whether forked trials measure what fresh ones do."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from loaders import _registry
from loaders._cli import options
from loaders._cli.check import PLACE, ROOT
from loaders._cli.output import print_json, say

if TYPE_CHECKING:
    from loaders._check.equivalence import Equivalence
    from loaders._check.selftest import Tally
    from loaders._faults import FaultTally

MINUTES = 10.0
"""Default for each check."""

SIZES = {"python": "tiny", "tensorflow": "small"}
"""What the planted strategies of a subject read: a tf.data map needs epochs that decoding makes long, not starting."""


@click.command("selftest")
@click.option("--checks", type=click.IntRange(min=1), default=40, show_default=True, help="Checks of each kind.")
@click.option(
    "--subject",
    type=click.Choice(("python", "tensorflow")),
    default="python",
    show_default=True,
    help="The strategy in which differences are planted.",
)
@click.option(
    "--start", "is_start", is_flag=True, help="Compare trials in forks with trials in fresh processes instead."
)
@click.option(
    "--faults", "is_faults", is_flag=True, help="Let processes of tf.data service fail instead, each way 20 times."
)
@click.option("--questions", multiple=True, metavar="QUESTION", help="With --start: only this one. [default: all]")
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    default=8,
    show_default=True,
    help="With --start: rounds of each question.",
)
@click.option(
    "--minutes",
    type=options.above_zero,
    help=f"Minutes for a check, on average; with --start, in total. [default: {MINUTES:g}; with --start, no limit]",
)
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    checks: int,
    subject: str,
    questions: Sequence[str],
    rounds: int,
    minutes: float | None,
    *,
    is_start: bool,
    is_faults: bool,
    as_json: bool,
) -> None:
    """Measure the error of `check` with identical sides and with planted differences of time and memory.

    The exit code is 1 if a check of identical sides raised an alarm.

    With --start, measure instead by how much the figures of forked trials differ from those of fresh ones. The exit
    code is then 1 if a difference lies beyond its margin, and 0 otherwise, also where nothing can be forked.

    With --faults, count in every strategy of tf.data service what arrives while nothing fails, then kill, stop, add and
    restart processes in the middle of an epoch, and count what was lost or doubled and how long the client waited. The
    exit code is 1 if what is documented was broken. It takes an hour or two.

    Checks are saved ten at a time, as that many share their servers, and trials one by one; the same command resumes.
    The page shows the result.
    """
    from loaders import _terminal

    if is_faults and options.typed(context) - {"is_faults", "as_json"}:
        raise click.UsageError("--faults goes with no other option than --json")
    if is_faults:
        tallies_of_faults = _faults()
        if as_json:
            print_json(tallies_of_faults)
        else:
            _terminal.show_faults(tallies_of_faults)
        sys.exit(1 if any(each.broken for each in tallies_of_faults) else 0)
    typed = options.typed(context)
    if is_start and typed & {"checks", "subject"}:
        raise click.UsageError("--checks and --subject do not go with --start")
    if not is_start and typed & {"questions", "rounds"}:
        raise click.UsageError("--questions and --rounds belong to --start")
    if is_start:
        found = _start(questions, rounds, math.inf if minutes is None else minutes * 60)
        if as_json:
            print_json(found)
        else:
            _terminal.show_equivalence(found)
        sys.exit(1 if any(each.verdict == "different" for each in found) else 0)
    tallies = _checks(subject, checks, 60 * (MINUTES if minutes is None else minutes))
    if as_json:
        print_json(tallies)
    else:
        _terminal.show_selftest(tallies)
    sys.exit(1 if tallies[0].alarms else 0)  # of the checks with nothing planted


def _checks(subject: str, checks: int, seconds: float) -> list[Tally]:
    """Run checks of the working tree against itself, with planted strategies of a subject."""
    from loaders import _terminal
    from loaders._check import selftest, sides, trials
    from loaders._trial import log, machine

    size = SIZES[subject]
    options.open_corpus(size, strict=True)  # it is built, or refused, here
    question, kinds = selftest.QUESTIONS_OF[subject], selftest.KINDS_OF[subject]
    planted = sorted({name for each in kinds for name in (each.same, each.twin)})
    names = [f"{question}.{name}" for name in planted]
    side = msgspec.structs.replace(sides.side(None, ROOT, PLACE), outside=(selftest.FILE,))
    path = log.log_path(machine.machine_name()).with_name(selftest.NAME)
    with log.exclusive(machine.machine_name()):
        sides.begin_log(PLACE)
        with trials.trials((side, side), {question: planted}, size, say) as found:
            return selftest.selftest(
                checks,
                seconds,
                lambda kind: found.of(question, kind.same, kind.twin),
                path,
                kinds,
                start=found.start_of(names[0]),
                begin=lambda: found.begin(names),
                told=_terminal.told_of_selftest,
            )


REPETITIONS = 20
"""Of each experiment with a fault."""


def _faults() -> list[FaultTally]:
    from loaders import _faults, _terminal
    from loaders._trial import log, machine
    from loaders.questions.service import faults

    corpus = options.open_corpus("small", strict=True)
    name = machine.machine_name()
    path = log.log_path(name).with_name(_faults.NAME)
    with log.exclusive(name), _terminal.progress(REPETITIONS * len(faults.asked()), None) as bar:
        bar.describe("tf.data service")
        seen = faults.repeated(REPETITIONS, corpus.root, path, lambda _: bar.count())
    return _faults.tallied(seen)


def _start(questions: Sequence[str], rounds: int, seconds: float) -> list[Equivalence]:
    """Compare fresh and forked trials of questions (all by default), also of those whose trials are never forked."""
    from loaders import _terminal
    from loaders._check import equivalence, start
    from loaders._check.equivalence import Equivalence
    from loaders._trial import log, machine, pages

    asked = [_registry.find_question(name).name for name in questions] or list(_registry.questions())
    if not pages.AVAILABLE:
        return [Equivalence(name, start.NO_FORKS) for name in asked]
    corpus = options.open_corpus("small", strict=True)
    plans = [start.plan(name, corpus) for name in asked]
    forked = [each for each in plans if each.forks]
    skipped = [Equivalence(each.question, start.NO_TENSORFLOW) for each in plans if not each.forks]
    total = rounds * sum(2 * len(start.forked_in(each)) for each in forked)
    name = machine.machine_name()
    path = log.log_path(name).with_name(equivalence.NAME)
    with log.exclusive(name), _terminal.progress(total, None if math.isinf(seconds) else seconds) as bar:
        log.refuse_other_processor(path, machine.processor())
        records = start.measure(forked, path, rounds=rounds, seconds=seconds, begin=bar.begin, done=bar.done, say=say)
    measured = {each.question for each in records}
    skipped += [Equivalence(each.question, start.NONE_RAN) for each in forked if each.question not in measured]
    return [*equivalence.judged(records), *skipped]
