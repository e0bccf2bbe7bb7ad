"""What the tests of a trial's processes share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every process that a trial starts inherits a mark, and every file is made below one directory."""
    monkeypatch.setenv("LOADERS_TEST_MARK", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    assert not marked(str(tmp_path))
    assert not list(tmp_path.glob("loaders-trial-*"))


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes, other than this one, that carry a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("LOADERS_TEST_MARK") == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found
