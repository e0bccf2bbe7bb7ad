"""Clusters of tf.data service that tests share: forks of a process that has imported TensorFlow once.

Run as a script it is that process: it starts a cluster for each line on standard input, and ends them at an empty one.
The end of its input would come late: what a test leaves behind, as Keras's workers, may hold the other end of the pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any, Protocol

import psutil

from loaders._trial import machine
from loaders._trial.launch import ROOT
from loaders.questions.service.nodes import Cluster, Node, cluster


class Start(Protocol):
    """Stands for ``nodes.cluster``."""

    def __call__(self, workers: int, *, fixed: bool = False, **_: Any) -> AbstractContextManager[Cluster]:
        """Return a cluster that is there, and stays."""


@contextmanager
def shared() -> Iterator[Start]:
    """Yield what starts each cluster that is asked for, once: that takes longer than the epochs of who asks for it."""
    with ExitStack() as stack:

        @cache
        def process() -> subprocess.Popen[bytes]:
            of_no_test = {name: value for name, value in os.environ.items() if name != "LOADERS_TEST_MARK"}
            made = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd=ROOT,
                    # One that has several threads, as numpy starts them, must not fork.
                    env={**of_no_test, **machine.PINNED, "TF_CPP_MIN_LOG_LEVEL": "2"},
                )
            )
            assert made.stdin
            stack.callback(made.stdin.close)
            stack.callback(made.stdin.write, b"\n")
            return made

        @cache
        def started(workers: int, fixed: bool) -> Cluster:
            asked, answers = process().stdin, process().stdout
            assert asked
            assert answers
            asked.write(json.dumps([workers, fixed]).encode() + b"\n")
            asked.flush()
            roles = ["dispatcher", *["worker"] * workers]
            found = [
                Node(role, psutil.Process(pid), None, port=port)  # type: ignore[arg-type]
                for role, (pid, port) in zip(roles, json.loads(answers.readline()), strict=True)
            ]
            return Cluster(found[0], found[1:])

        yield lambda workers, *, fixed=False, **_: nullcontext(started(workers, fixed))


def main() -> None:
    """Start the clusters that are asked for."""
    import tensorflow  # noqa: F401 - forks have it

    with ExitStack() as stack:
        while asked := sys.stdin.readline().strip():
            workers, fixed = json.loads(asked)
            running = stack.enter_context(cluster(workers, fixed=fixed, forks=True))
            nodes = (running.dispatcher, *running.workers)
            sys.stdout.write(json.dumps([(each.process.pid, each.port) for each in nodes]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
