"""Forks of this process that serve what it measures, made before it runs anything.

To import TensorFlow takes seconds and all processors; a fork of a process that has done so needs none of them. It has
every page for itself (``loaders._trial.pages``), so its memory is its own, as if it had imported.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, NoReturn

import psutil

from loaders._trial import memory, pages


class Clone(psutil.Process):
    """A fork of this process, with the ends of its standard input and output that ``subprocess.Popen`` has."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def kill(self) -> None:
        """End it, if it has not ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            super().kill()


def is_possible(module: str) -> bool:
    """Whether forks of this process may serve: it has imported a module, and has one thread, so it runs nothing."""
    return pages.AVAILABLE and module in sys.modules and pages.threads() == 1


def start(main: Callable[[], NoReturn], errors: IO[bytes], there: Sequence[memory.Range]) -> Clone:
    """Fork this process; the fork has the pages that are ``there``, runs ``main``, and complains to ``errors``."""
    given, said = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            for target, source in enumerate((given[0], said[1], errors.fileno())):
                os.dup2(source, target)
            for each in os.listdir("/proc/self/fd"):  # noqa: PTH208
                if int(each) > 2:
                    with contextlib.suppress(OSError):  # that of the listing
                        os.close(int(each))
            memory.populate(there)
            main()
        except BaseException as error:  # noqa: BLE001 - whatever it is, whoever started this must read it
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)
    os.close(given[0])
    os.close(said[1])
    clone = Clone(pid)
    clone.stdin, clone.stdout = os.fdopen(given[1], "wb"), os.fdopen(said[0], "rb")
    return clone
