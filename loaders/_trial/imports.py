"""What strategies were seen to import while they were measured, so that the next run imports it beforehand.

An import is code that is read, mapped and run; none of that is the strategy's. Which modules come in, at whatever
depth, is found out by running it: once for each strategy and version, and remembered beside the corpora.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path

import msgspec

from loaders import _durable
from loaders._corpus import cache_root
from loaders._trial import machine
from loaders._trial.record import Trial

NAME = "imports.json"

MOST = 1000
"""Strategies that are remembered; the oldest are forgotten."""


def known(trial: Trial) -> list[str]:
    """Return the modules that earlier runs of a trial's strategy imported late, in the order of their import."""
    return [*dict.fromkeys([*trial.imports, *_read().get(_key(trial), [])])]


def remember(trial: Trial, modules: Iterable[str]) -> list[str]:
    """Add modules to those that are known of a trial's strategy, and return all; kept if the cache can be written."""
    every = [*dict.fromkeys([*known(trial), *modules])]
    kept = {**{key: each for key, each in _read().items() if key != _key(trial)}, _key(trial): every}
    newest = dict(list(kept.items())[-MOST:])
    with contextlib.suppress(OSError):
        _durable.write(_path(), msgspec.json.encode(newest).decode())
    return every


def _path() -> Path:
    return cache_root() / NAME


def _read() -> dict[str, list[str]]:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, list[str]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _key(trial: Trial) -> str:
    """Return what names a strategy and its version: the code of its question, of files outside, and of packages."""
    state = hashlib.blake2b(repr((platform.python_version(), machine.packages())).encode(), digest_size=8)
    for file in (Path(__file__).parents[1] / f"{trial.question}.py", *map(Path, trial.outside)):
        state.update(file.read_bytes() if file.is_file() else b"")
    return f"{trial.question}.{trial.strategy} {state.hexdigest()}"
