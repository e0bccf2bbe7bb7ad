"""Trials in forks of servers, new ones in each round."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Mapping
from types import TracebackType
from typing import Any

from loaders import _registry
from loaders._corpus import Corpus
from loaders._errors import InputError
from loaders._trial import pages
from loaders._trial.launch import LostServerError, Server
from loaders._trial.record import Record, Trial
from loaders._trial.watch import run_trial

ATTEMPTS = 2
"""A trial whose server has ended is run once more, with a new server."""

WITHOUT = "--fresh, which `compare` and `check` have, does without forks"


Groups = Mapping[tuple[str, ...], Mapping[str, Iterable[str]]]
"""By group of strategies (``group_of``), the modules that their trials need, each with the attributes that they use."""


def group_of(variant: _registry.Variant | None) -> tuple[str, ...]:
    """Return the group whose server forks a strategy's trials: what must be installed for it, and its engine.

    A fork holds what its server has imported, and forking it takes the longer the more that is. With all engines
    imported it took 13 ms and with torch alone 5 ms, which is 15 % of an epoch of 0.25 s that starts four workers.
    What serves a trial is a fork of it and counts as a whole, so it must hold nothing that other strategies need.
    """
    if variant is None:
        return ()
    needed = (variant.engine, *variant.optional) if variant.optional else ()
    return tuple(dict.fromkeys(filter(None, ("serve" if variant.serve else "", *needed))))


class Forks:
    """Runs trials in forks of servers, one for each group. ``begin`` replaces all, and a trial one that is lost."""

    def __init__(self, groups: Groups) -> None:
        self.reason = ""
        """Why trials cannot be forked; empty if they can, or if that is not known before ``begin``."""
        self._groups = groups
        self._servers: dict[tuple[str, ...], Server] = {}

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        for each in self._servers.values():
            each.end()
        self._servers.clear()

    def begin(self, used: Container[tuple[str, ...]] | None = None) -> str:
        """Start new servers, and return why one cannot fork, or nothing.

        Each round begins with this, and goes on with it after another round: one layout of addresses must not be that
        of all trials. They import at the same time. ``used`` are the groups whose trials the round runs, by default
        all: an engine takes several times as long to import as TensorFlow. Each imports what all trials of its group
        need, whichever of them the round runs. If one cannot fork, none is kept.
        """
        self._end()
        self.reason = "" if pages.AVAILABLE else "this system cannot map a fork's pages before it is measured"
        for group in () if self.reason else self._groups:
            if used is None or group in used:
                self._started(group)
        self.reason = self.reason or next(filter(None, (each.reason for each in self._servers.values())), "")
        if self.reason:
            self._end()
        return self.reason

    def _started(self, group: tuple[str, ...]) -> Server:
        """Return a group's server, a new one if it is lost."""
        found = self._servers.get(group)
        if found is None or found.is_lost:
            if found:
                found.end()
            found = self._servers[group] = Server(self._groups.get(group, {}))
        return found

    def _server_of(self, trial: Trial) -> Server:
        """Return the server of a trial's group."""
        known = _registry.variants(trial.question) if trial.question in _registry.questions() else {}
        group = group_of(known.get(trial.strategy))
        return self._started(group if group in self._groups else ())

    def run(self, trial: Trial, corpus: Corpus, **how: Any) -> Record:
        """Run a trial in a fork; if it ends its server, once more in a fork of a new one. See ``run_trial``.

        Raises
        ------
        InputError
            If the server cannot fork, or was lost twice before there was a fork.
        """
        record = None
        for _ in range(ATTEMPTS):
            server = self._server_of(trial)
            if server.reason:
                raise InputError(f"trials cannot be forked: {server.reason}; {WITHOUT}")
            with contextlib.suppress(LostServerError):
                record = run_trial(trial, corpus, server=server, **how)
            if record and not (record.status == "failed" and server.is_lost):
                return record
        if record:
            return record
        raise InputError(
            "the process that trials are forked from has ended twice; finished trials are kept, and the same command "
            f"goes on; {WITHOUT}"
        )
