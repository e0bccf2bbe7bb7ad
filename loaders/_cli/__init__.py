"""The command line: ``python -m loaders COMMAND``. One module per command; options and output are shared."""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import Any

import click

from loaders import _interrupt
from loaders._cli import advise, check, compare, evidence, listing, probe, readme, report, selftest, submit, trial
from loaders._errors import InputError

RESUMING = ("advise", "compare", "selftest")
"""Commands that keep what they have measured, and go on with it."""


class Group(click.Group):
    """Turns the user's errors into one message and exit code 2, Ctrl-C into 130, and a bug of the suite into 70.

    If the output pipe was closed (``| head``), it exits silently with 141, as a shell reports SIGPIPE.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except click.Abort:  # at a question; nothing was begun
            click.echo("interrupted; nothing was written", err=True)
            ctx.exit(130)
        except KeyboardInterrupt:
            kept = "; finished trials are kept, and the same command resumes"
            click.echo(f"interrupted{kept if ctx.invoked_subcommand in RESUMING else ''}", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # What is still in the buffer must not fail again when the interpreter exits.
            # https://docs.python.org/3/library/signal.html#note-on-sigpipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:  # noqa: BLE001 - it must not look like exit code 1, "a strategy went wrong"
            if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("loaders"):
                cure = "run `make setup`, or install the suite with its extra [report]"
                click.echo(f"error: {error.name} is not installed: {cure}", err=True)
                ctx.exit(2)
            if isinstance(error, ImportError) and re.search(r"lib(GL|glib|gthread)\S*\.so", str(error)):
                cure = "OpenCV's wheel needs it; under Debian and Ubuntu: apt-get install libgl1 libglib2.0-0"
                click.echo(f"error: {error}: {cure}", err=True)
                ctx.exit(2)
            traceback.print_exc()
            click.echo("this is a bug in the suite; please report it", err=True)
            ctx.exit(70)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Which way of loading data into TensorFlow is fastest, leanest, and safe from running out of memory?"""
    _interrupt.install()


for _module in (listing, trial, compare, advise, probe, report, check, selftest, evidence, readme, submit):
    main.add_command(_module.command)
