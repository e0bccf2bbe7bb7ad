"""The process that trials are forked from: it has imported what they need, and run nothing.

Importing TensorFlow takes seconds, and a trial that forks from a process which has done so needs none of them. The
server is started as ``python -m loaders._trial.server PARENT`` with a first line on standard input that says what to
import; it answers why it cannot serve, if it cannot. Each further line is a trial's place: the server forks, and
answers with the process id of the trial's keeper, then with its exit code. In the fork, ``keeper.part`` puts a keeper
between server and trial as ``launch.fresh`` does, and the trial goes on as ``python -m loaders._trial.child REPORT``
would.

A process with several threads must not be forked (https://docs.python.org/3/library/os.html#os.fork), so the server
refuses to serve if an import has started one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import tempfile
from contextlib import suppress
from typing import IO, Any, NoReturn

from loaders._trial import memory, pages

PR_SET_PDEATHSIG, SIGKILL = 1, 9


def main() -> NoReturn:
    """Import, then fork a trial for each line that comes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != int(sys.argv[1]):  # the parent ended before the signal was requested
        os._exit(1)
    asked, answers = _streams()
    reason = _import(json.loads(asked.readline()))
    gc.collect()
    gc.freeze()  # a collection would write to every object's page; ``prepare.read_baseline`` thaws them in a fork
    there, server = [] if reason else pages.present(), os.getpid()
    if there:
        pages.unmap_code()  # what a trial maps of it is then the trial's alone
    _tell(answers, {"reason": reason})
    for line in asked:
        place = json.loads(line)
        pid = os.fork()
        if not pid:
            asked.close()
            answers.close()
            become(place, there, server)
        _tell(answers, {"pid": pid})
        _, status = os.waitpid(pid, 0)
        _tell(answers, {"code": os.waitstatus_to_exitcode(status)})
    os._exit(0)


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """Move the ends of both pipes away from where a trial prints."""
    asked, answers = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb")))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    return asked, answers


def _tell(answers: IO[bytes], said: dict[str, Any]) -> None:
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()


def _import(wanted: dict[str, list[str]]) -> str:
    """Import modules and the attributes used of them; return why this process cannot be forked, or nothing."""
    from loaders import _registry
    from loaders._trial import prepare

    prepare.import_modules({"loaders._trial.assemble": (), "loaders._trial.convert": (), **wanted})
    _registry.questions()  # declares the strategies, which import what they need in their own code
    threads = pages.threads()
    return "" if threads == 1 else f"its imports have started threads: {threads - 1}"


def become(place: dict[str, str], there: list[memory.Range], server: int) -> NoReturn:
    """Go on as the trial of a place, in a fork of the server with this process id."""
    from loaders._trial import keeper

    directory = place["directory"]
    given = os.open(place["trial"], os.O_RDONLY)
    printed = os.open(place["printed"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for source, target in ((given, 0), (printed, 1), (printed, 2)):
        os.dup2(source, target)
    os.close(given)
    os.close(printed)
    os.chdir(directory)
    keeper.part(server, directory, place["group"])
    os.environ["TMPDIR"], tempfile.tempdir = directory, None
    memory.populate(there)
    if "numpy.random" in sys.modules:  # Python's own generator is seeded anew by the fork
        sys.modules["numpy.random"].seed()
    keeper.go_on(place["report"])
    os._exit(0)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
