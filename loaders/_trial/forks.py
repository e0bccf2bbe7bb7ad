"""Trials in forks of one server after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial.launch import LostServerError, Server
from loaders._trial.record import Record, Trial
from loaders._trial.watch import run_trial

ATTEMPTS = 2
"""A trial whose server has ended is run once more, with a new server."""


class Forks:
    """Runs trials in forks of a server. ``begin`` replaces it; so does a trial, if it is lost."""

    def __init__(self, modules: Mapping[str, Iterable[str]]) -> None:
        self._modules = modules
        self._server: Server | None = None

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._server:
            self._server.end()

    @property
    def reason(self) -> str:
        """Why the server cannot fork; empty if it can, or has not been started."""
        return self._server.reason if self._server else ""

    def begin(self, modules: Mapping[str, Iterable[str]] | None = None) -> Server:
        """Start a new server. Each round begins with this: one layout of addresses must not be that of all trials.

        It imports ``modules`` if the round needs others than the one before.
        """
        if self._server:
            self._server.end()
        if modules is not None:
            self._modules = modules
        self._server = Server(self._modules)
        return self._server

    def run(self, trial: Trial, corpus: Corpus, **how: Any) -> Record:
        """Run a trial in a fork; if it ends its server, once more in a fork of a new one. See ``run_trial``.

        Raises
        ------
        InputError
            If the server cannot fork, or was lost twice before there was a fork.
        """
        record = None
        for _ in range(ATTEMPTS):
            server = self.begin() if self._server is None or self._server.is_lost else self._server
            if server.reason:
                raise InputError(f"trials cannot be forked: {server.reason}; use --fresh")
            record = None
            with contextlib.suppress(LostServerError):
                record = run_trial(trial, corpus, server=server, **how)
            if record and not (record.status == "failed" and server.is_lost):
                return record
        if record:
            return record
        raise InputError(
            "the process that trials are forked from has ended twice; finished trials are kept, and --fresh does "
            "without it"
        )
