"""``submit``: hand in results of one's own machine, for the published page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from loaders._cli.output import say, write
from loaders._errors import InputError


@click.command("submit")
@click.argument("name")
@click.option("--check", is_flag=True, help="Check results/NAME as handed in by somebody else; write nothing.")
@click.option("--yes", is_flag=True, help="Write the file without asking.")
def command(name: str, *, check: bool, yes: bool) -> None:
    """Write results/NAME from your own results, to hand in. Nothing is sent; if you decline, the exit code is 1.

    What is written is shown first: figures, versions, and what your processor is. Texts of errors become the names of
    exceptions. Folders, host names and strategies of your own stay with you.
    """
    from loaders import _submit
    from loaders._trial import log, machine

    folder = log.results_root() / name
    if check:
        click.echo(f"{folder}: {_submit.check(folder)} trials, all as they should be")
        return
    own = machine.machine_name()
    if name == own:
        raise InputError(f"your own results are filed under {name!r}, and stay there: choose another name")
    if folder.exists():
        raise InputError(f"{folder} exists: choose another name, or delete that folder")
    path = log.log_path(own)
    if not path.exists():
        raise InputError(f"no results of this machine in {path}; run `make bench` first")
    every = log.read(path, say)
    records = _submit.submission(every, name)
    if left := len(every) - len(records):
        say(f"{left} of {len(every)} trials are not of what is handed in: the newest processor, data and versions here")
    text = _submit.encoded(records).decode()
    if len(text) > _submit.MOST_BYTES:
        raise InputError(
            f"these {len(records)} trials are {len(text) >> 20} MiB, and {_submit.MOST_BYTES >> 20} can be handed in; "
            f"move {path} away, and measure with fewer rounds"
        )
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)
    say(f"These {len(records)} trials ({len(text) / 2**20:.1f} MiB) are the whole file, as it would be handed in.")
    if not yes and not (sys.stdin.isatty() and click.confirm(f"Write {folder / log.NAME}?", err=True)):
        say("nothing was written; --yes writes it without asking")
        sys.exit(1)
    write(folder / log.NAME, text)
    for line in _steps(folder, name):
        say(line)


def _steps(folder: Path, name: str) -> list[str]:
    return [
        f"Written into {folder}. Nothing was sent. To hand it in, on a fork of the repository:",
        f"  git checkout -b results-{name}",
        f"  git add --force {shlex.quote(str(folder))}",
        f'  git commit -m "Results of {name}"',
        f"  git push --set-upstream origin results-{name}",
        f"and open a pull request. `python -m loaders submit {name} --check` checks it; it appears as another machine.",
    ]
