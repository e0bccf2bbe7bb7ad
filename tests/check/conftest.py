"""What the tests of checks share: cheap strategies that are forked, in a world of their own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from loaders._corpus import Corpus
from loaders._trial import pages
from tests.conftest import ROOT
from tests.trial.conftest import marked

WRONG, STUCK = 1_000_008, 1_000_009
"""Seeds for which what is planted delivers a sample too many, and sleeps; a check counts from 1, and reaches none."""

PLANTED = f"""
import time
from loaders import variant

def declare(name, seconds, **facts):
    def strategy(job):
        if job is None:
            import tensorflow_that_is_not_installed  # so that it is worth forking
        time.sleep(seconds if job.seed == {STUCK} or name == "planted_long" else 0)
        count = job.inputs.draws + (1 if job.seed == {WRONG} else 0)
        import numpy as np
        return [np.random.default_rng(job.seed).choice(job.inputs.images, count, replace=False)]
    strategy.__name__ = name
    strategy.__doc__ = "Planted by a test."
    variant(question="selection", **facts)(strategy)

declare("planted_quick", 0)
declare("planted_slow", 100)
declare("planted_long", 100)
declare("planted_set", 0, variables={{"MALLOC_ARENA_MAX": "1"}})
"""

needs_forks = pytest.mark.skipif(not pages.AVAILABLE, reason="this system cannot populate pages")


@pytest.fixture
def variables(tmp_path: Path, corpus: Corpus) -> dict[str, str]:
    """The environment of a process in a world of its own."""
    (tmp_path / "planted.py").write_text(PLANTED)
    (tmp_path / "tmp").mkdir()
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LOADERS_WITH": str(tmp_path / "planted.py"),
        "LOADERS_RESULTS": str(tmp_path / "results"),
        "LOADERS_TEST_MARK": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def left(variables: dict[str, str]) -> list[str]:
    """Return what is left of processes and directories once they have had time to go."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = [str(each) for each in marked(variables["LOADERS_TEST_MARK"])]
        found += [str(each) for each in Path(variables["TMPDIR"]).glob("loaders-trial-*")]
        if not found:
            return []
        time.sleep(0.05)
    return found


def await_trial(mark: Path) -> None:
    """Wait until the slow strategy runs: the trial has reported its baseline."""
    end = time.monotonic() + 60
    while not list((mark / "tmp").glob("loaders-trial-*/report.jsonl")):
        assert time.monotonic() < end
        time.sleep(0.05)
