"""The processes of tf.data service: a dispatcher and its workers, started, ended, and made to fail."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaders._errors import InputError
from loaders._registry import Serve
from loaders.questions.service import node as script

if TYPE_CHECKING:
    from loaders._trial.clone import Clone
    from loaders._trial.memory import Range

SCRIPT = Path(__file__).with_name("node.py")

UP_WITHIN = 120.0
"""Seconds in which a process must be up: importing TensorFlow takes seconds, on a busy machine many."""

HEARTBEAT = 1000
"""Milliseconds between a worker's signs of life. The default is 30 s."""


@dataclass
class Node:
    """A process that serves.

    Attributes
    ----------
    errors
        The file to which it complains.
    settings
        As they are given to it; its port is in them once it is known, so that it can be started anew on the same one.
    """

    role: str
    process: subprocess.Popen[bytes] | Clone
    errors: Any
    settings: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    version: str = ""

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"localhost:{self.port}"

    def begin(self, settings: dict[str, Any]) -> None:
        """Let it serve with these settings, once it has imported TensorFlow."""
        assert self.process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        self.settings = dict(settings)
        with contextlib.suppress(BrokenPipeError):  # it has ended; ``await_up`` says why
            self.process.stdin.write(json.dumps({"role": self.role, **settings}).encode() + b"\n")
            self.process.stdin.flush()

    def await_up(self, until: float) -> None:
        """Wait for its port.

        Raises
        ------
        InputError
            If it ends or says nothing in time, with what it said.
        """
        assert self.process.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            is_heard = bool(selector.select(max(0.0, until - time.monotonic())))
        port, _, version = (self.process.stdout.readline() if is_heard else b"").decode().strip().partition(" ")
        if not port.isdecimal():
            self.end()
            within = "" if is_heard else f" within {UP_WITHIN:.0f} s"
            raise InputError(f"the {self.role} did not come up{within}: {self._complaint()}")
        self.port, self.version = int(port), version
        self.settings["port"] = self.port

    def _complaint(self) -> str:
        self.errors.seek(0)
        lines = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        words = lines[-1] if lines else "it said nothing"
        if self.settings.get("port") and "server" in words.lower():
            return f"port {self.settings['port']} seems to be in use ({words})"
        return words

    def end(self) -> None:
        """End it, whatever state it is in."""
        self.process.kill()  # also ends a process that is stopped
        self.process.wait()
        for each in (self.process.stdin, self.process.stdout):
            if each:
                with contextlib.suppress(BrokenPipeError):
                    each.close()


@dataclass
class Cluster:
    """A dispatcher and its workers."""

    dispatcher: Node
    workers: list[Node] = field(default_factory=list)

    @property
    def address(self) -> str:
        """What ``distribute`` is given as ``service``."""
        return f"grpc://{self.dispatcher.address}"

    def processor_time(self) -> dict[str, float]:
        """Return the seconds of processor time that the dispatcher and all workers have used."""
        return {"dispatcher": _used(self.dispatcher), "workers": sum(map(_used, self.workers))}

    def processes(self) -> dict[str, list[int]]:
        """Return the process ids of the dispatcher and of the workers."""
        return {"dispatcher": [self.dispatcher.process.pid], "workers": [each.process.pid for each in self.workers]}

    def kill(self, node: Node) -> None:
        """End a process as a crash would."""
        node.end()

    def hang(self, node: Node) -> None:
        """Stop a process: it stays connected, and answers nobody."""
        node.process.send_signal(signal.SIGSTOP)

    def restart(self, node: Node) -> None:
        """Start a process anew on its port."""
        fresh = started(node.role)
        fresh.begin(node.settings)
        fresh.await_up(time.monotonic() + UP_WITHIN)
        node.process, node.errors = fresh.process, fresh.errors

    def add_worker(self) -> Node:
        """Start one more worker."""
        worker = started("worker")
        self.workers.append(worker)
        worker.begin(worker_settings(self.dispatcher))
        worker.await_up(time.monotonic() + UP_WITHIN)
        return worker


def _used(node: Node) -> float:
    import psutil

    try:
        return float(sum(psutil.Process(node.process.pid).cpu_times()[:4]))
    except psutil.Error:  # it has ended
        return 0.0


def started(role: str, there: Sequence[Range] | None = None) -> Node:
    """Start a process, which imports what it needs and waits until it may ``begin``.

    If it is told which pages are ``there``, it is a fork of this process that has all of them for itself.
    """
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the node
    if there is not None:
        from loaders._trial import clone

        return Node(role, clone.start(script.main, errors, there), errors)
    process = subprocess.Popen(
        [sys.executable, "-P", str(SCRIPT)],  # in its directory are files named as packages are
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    return Node(role, process, errors)


def worker_settings(dispatcher: Node, port: int = 0) -> dict[str, Any]:
    """Return the settings of a worker."""
    found: dict[str, Any] = {"dispatcher_address": dispatcher.address, "heartbeat_interval_ms": HEARTBEAT}
    return {**found, "port": port, "worker_address": f"localhost:{port or '%port%'}"}


def free_ports(count: int) -> list[int]:
    """Return ports that are free now; the system gives none of them away again soon."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("localhost", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


@contextlib.contextmanager
def cluster(
    workers: int,
    *,
    fixed: bool = False,
    forks: bool = False,
    work_dir: Path | None = None,
    **dispatcher_settings: Any,
) -> Iterator[Cluster]:
    """Start a dispatcher and workers, and end them.

    Parameters
    ----------
    fixed
        The dispatcher knows its workers' addresses beforehand, as static sharding requires.
    forks
        They are forks of this process if that has imported TensorFlow and runs nothing yet: importing takes seconds.
    work_dir
        Where the dispatcher keeps what it needs to go on after a restart; by default it keeps nothing.
    dispatcher_settings
        Further fields of ``tf.data.experimental.service.DispatcherConfig``.
    """
    settings: dict[str, Any] = {"port": 0, "protocol": "grpc", **dispatcher_settings}
    ports = free_ports(workers) if fixed else [0] * workers
    if fixed:
        settings["worker_addresses"] = [f"localhost:{port}" for port in ports]
    if work_dir:
        settings |= {"work_dir": str(work_dir), "fault_tolerant_mode": True}
    until = time.monotonic() + UP_WITHIN
    from loaders._trial import clone, memory, pages

    there = pages.present() if forks and clone.is_possible("tensorflow") else None
    running = Cluster(started("dispatcher", there))
    try:
        for _ in ports:  # one by one, so that an interruption ends those that are there
            running.workers.append(started("worker", there))
        if there is not None:
            memory.populate(there)  # what this process shares no more, it need not copy when it writes
        running.dispatcher.begin(settings)
        running.dispatcher.await_up(until)
        for worker, port in zip(running.workers, ports, strict=True):
            worker.begin(worker_settings(running.dispatcher, port))
        for worker in running.workers:
            worker.await_up(until)
            if worker.version != running.dispatcher.version:
                raise InputError(
                    f"the worker on port {worker.port} has TensorFlow {worker.version} and the dispatcher "
                    f"{running.dispatcher.version}: tf.data service needs the same everywhere"
                )
        yield running
    finally:
        for node in (*running.workers, running.dispatcher):
            node.end()


ANSWERS_WITHIN = 5.0
"""Seconds in which somebody must accept a connection. Left alone, a client asks for an hour."""


def answering(address: str) -> str:
    """Return a dispatcher's address if somebody answers there.

    Raises
    ------
    InputError
        If nobody does.
    """
    host, _, port = address.removeprefix("grpc://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWERS_WITHIN).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"no dispatcher answers at {address} ({error}); is it started, and is that its port?"
        ) from None
    return address


def workers(count: int, *, fixed: bool = False) -> Serve:
    """Return what starts a cluster for a trial."""
    return lambda _: cluster(count, fixed=fixed, forks=True)
