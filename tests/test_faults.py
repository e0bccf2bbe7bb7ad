"""What is concluded from experiments with failing processes, with the counts planted."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from loaders import _faults
from loaders._cli.selftest import REPETITIONS, command
from loaders._corpus import Corpus
from loaders._faults import UNDISTURBED, Seen
from loaders._trial import log
from loaders.questions.service import faults


def seen(fault: str = "worker_killed", strategy: str = "service_2", **more: object) -> Seen:
    return msgspec.convert(
        {
            "fault": fault,
            "does": "nothing fails" if fault == UNDISTURBED else f"{fault} in words",
            "strategy": strategy,
            "ended": "whole",
            "share": 0.5,
            "seconds": 9,
            "usual": 0.1,
            "stalled": 0.1,
            "recovered": None,
            "followed": 3,
            "images": 100,
            "missing": 0,
            "repeated": 0,
            "promised": "every image at most once",
            "verdict": "kept",
            **more,
        },
        Seen,
    )


@pytest.mark.parametrize(("verdict", "code"), [("kept", 0), ("broken", 1)])
def test_the_command_fails_if_what_is_documented_was_broken(
    corpus: Corpus, results: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    def repeated(times: int, root: Path, path: Path, told: object) -> list[Seen]:
        assert (times, root, path) == (REPETITIONS, corpus.root, results / "tested" / _faults.NAME)
        return [seen(), seen(verdict=verdict)]

    monkeypatch.setattr("loaders._cli.options.open_corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(faults, "repeated", repeated)
    done = CliRunner().invoke(command, ["--faults", "--json"])
    assert done.exit_code == code, done.output
    (tally,) = json.loads(done.stdout)
    assert (tally["repetitions"], tally["broken"]) == (2, code)


def test_repetitions_are_counted_by_how_they_ended() -> None:
    own = [
        seen(stalled=1, missing=3, recovered=2.0),
        seen(ended="waits", stalled=90, missing=40),
        seen(ended="failed", stalled=2, missing=50, repeated=7, verdict="broken", message="why", recovered=4.0),
    ]
    calm = seen(UNDISTURBED, promised="nothing", verdict="not promised")
    tally, other = _faults.tallied([*own, calm])
    assert (tally.repetitions, tally.whole, tally.failed, tally.waits) == (3, 1, 1, 1)
    assert (tally.kept, tally.broken) == (2, 1)
    assert (tally.missing, tally.repeated) == (3, 0), "of the whole one"
    assert (tally.stalled, tally.recovered) == ((2, 90), (2, 3.0))
    assert other.is_undisturbed
    assert _faults.line(tally) == (
        "worker_killed in words",
        "service_2",
        "every image at most once",
        "2 of 3, 1 broken",
        "1 of 3 whole, 1 of 3 failed, 1 of 3 waits for ever",
        "2.00 s, at most 90.0 s",
        "2 of 3, after 3.00 s",
        "at most 3",
        "none",
    )
    assert _faults.line(other)[3:] == ("–", "1 of 1 whole", "100 ms", "–", "none", "none")
    assert _faults.sentences([other, tally]) == ["service_2, worker_killed in words: the client is told “why”"]
    (waits,) = _faults.tallied([own[1], own[1]])
    assert _faults.line(waits)[4:] == ("2 of 2 waits for ever", "for ever", "0 of 2", "–", "–")
    assert _faults.tallied([seen(ended="before")]) == []


def test_the_summary_comes_out_either_way() -> None:
    calm, fails, waits = seen(UNDISTURBED, promised="every image once"), seen(), seen(ended="waits")
    assert _faults.summary(_faults.tallied([calm, calm, fails])) == [
        "When something fails, what is documented is kept in 1 of 1 experiment, each of 1 epoch",
        "While nothing fails, what is documented is kept in 1 of 1 experiment, each of 2 epochs",
        "The epoch goes on to its end after worker_killed in words (service_2)",
    ]
    lost = seen(UNDISTURBED, "service_2_file", missing=80, verdict="broken")
    other = seen(strategy="service_2_off", ended="waits")
    assert _faults.summary(_faults.tallied([calm, lost, lost, waits, fails, other])) == [
        "When something fails, what is documented is kept in 2 of 2 experiments, each of 1 to 2 epochs",
        "While nothing fails, what is documented is kept in 1 of 2 experiments, each of 1 to 2 epochs; "
        "not in service_2_file (2 of 2, nothing fails)",
        "The client waits for ever after worker_killed in words (service_2 1 of 2 times, service_2_off)",
        "The epoch goes on to its end after worker_killed in words (service_2 1 of 2 times)",
    ]
    (nothing,) = _faults.summary(_faults.tallied([seen(promised="nothing", verdict="not promised", ended="waits")]))
    assert nothing.startswith("The client waits for ever after"), "where nothing is documented, nothing is kept"


def test_what_two_commits_or_machines_have_seen_is_not_counted_together(tmp_path: Path) -> None:
    path = tmp_path / _faults.NAME
    assert _faults.newest(_faults.logged(path)) == []
    for started, commit, machine, versions in (
        ("1", "a", "x", "1"),
        ("2", "b", "x", "1"),
        ("3", "b", "x", "1"),
        ("2", "b", "y", "1"),
        ("2", "b", "x", "2"),
    ):
        log.append(path, seen(started=started, commit=commit, machine=machine, versions=versions))
    assert [each.started for each in _faults.newest(_faults.logged(path))] == ["2", "3"]
    with path.open("ab") as file:
        file.write(b'{"fault": "cut o')
    told: list[str] = []
    assert len(_faults.logged(path, told.append)) == 5
    assert "left out line 6, which cannot be read" in told[0]
