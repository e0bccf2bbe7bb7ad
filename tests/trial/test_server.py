"""The process that trials are forked from: what it refuses, and what becomes of it and of what it has forked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._trial import Trial, launch, pages, run_trial
from loaders._trial.forks import Forks
from loaders._trial.launch import LostServerError, Server
from tests.conftest import EACH_START, ROOT, Strategy
from tests.trial.conftest import marked

pytestmark = [
    pytest.mark.skipif(not pages.AVAILABLE, reason="the system cannot map a fork's pages"),
    pytest.mark.usefixtures("nothing_is_left"),
]

FORKED = pytest.mark.parametrize("server", ["forked"], indirect=True)


def _imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Server:
    """Return a server that has imported a module with this body."""
    (tmp_path / "planted_module.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Server({"planted_module": []})


def _trial(corpus: Corpus, variables: dict[str, str] | None = None) -> Trial:
    return Trial("selection", "numpy_to_numpy", {"images": "500"}, str(corpus.root), 1, variables=variables or {})


def test_imports_that_do_not_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "IMPORTING", 0.5)
    server = _imports(tmp_path, monkeypatch, "import time\ntime.sleep(100)")
    assert server.reason == "it has not imported all after 0.5 s"
    assert server.is_lost


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", ""),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=[100], daemon=True).start()",
            "its imports have started threads: 1",
        ),
        ("import os\nos._exit(3)", "it ended while it imported"),
        ("raise RuntimeError('of another version')", ""),  # others can be forked
    ],
)
def test_a_process_that_cannot_be_forked_says_why_and_takes_nothing(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    server = _imports(tmp_path, monkeypatch, body)
    try:
        assert server.reason == reason
        assert server.takes(_trial(corpus)) == (not reason)
        assert not server.takes(_trial(corpus, {"MALLOC_ARENA_MAX": "1"})), "libraries have read their variables"
        assert run_trial(_trial(corpus), corpus, server=server).process == ("fresh" if reason else "forked")
    finally:
        server.end()


@FORKED
def test_a_fork_begins_alone_with_what_the_server_imported_and_numbers_of_its_own(
    strategy: Strategy, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    body = (
        "import gc, random\n"
        "facts = len(os.listdir('/proc/self/task')), gc.get_freeze_count() == 0, sys.stdin.read() == ''\n"
        f"print(*facts, random.random(), np.random.rand(), file=open({str(said)!r}, 'a'))\nreturn right"
    )
    for _ in range(2):
        assert strategy(body).status == "ok"
    one, other = (line.split() for line in said.read_text().splitlines())
    assert one[:3] == other[:3] == ["1", "True", "True"]
    assert one[3] != other[3]
    assert one[4] != other[4]


@FORKED
def test_a_trial_whose_server_ends_fails_with_it_and_leaves_nothing(
    strategy: Strategy, server: Server, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    record = strategy(
        f"child = subprocess.Popen(['sleep', '100'])\n"
        f"print(os.getpid(), child.pid, file=open({str(pids)!r}, 'w'))\n"
        f"os.kill({server._process.pid}, 9)\ntime.sleep(100)"
    )
    assert (record.status, record.message) == ("failed", "the process that it was forked from has ended")
    assert server.is_lost
    deadline = time.monotonic() + 10
    while marked(str(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(pids.read_text().split()) == 2
    with pytest.raises(LostServerError):
        strategy("return right")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_and_what_it_has_forked_end_with_whoever_asked_for_it(
    corpus: Corpus, tmp_path: Path, how: signal.Signals
) -> None:
    file, begun = tmp_path / "endless.py", tmp_path / "begun"
    file.write_text(
        'from loaders import variant\n@variant(question="selection")\ndef endless(job):\n    "Sleeps."\n'
        f"    import pathlib, time\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(100)\n"
    )
    script = f"""
        import tempfile
        tempfile.tempdir = {str(tmp_path)!r}
        from loaders._corpus import load_corpus
        from pathlib import Path
        from loaders._trial import Trial, run_trial
        from loaders._trial.launch import Server
        root = {str(corpus.root)!r}
        trial = Trial("selection", "endless", {{"images": "500"}}, root, 1, outside=[{str(file)!r}])
        run_trial(trial, load_corpus(Path(root)), server=Server({{"numpy": []}}))
    """
    asked = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline, "the trial did not begin"
        time.sleep(0.02)
    assert len(marked(str(tmp_path))) >= 4, "it, the server, a keeper and the trial"
    os.kill(asked.pid, how)
    asked.wait(30)
    while marked(str(tmp_path)) or any(tmp_path.glob("loaders-trial-*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_is_mapped_in_the_server_is_mapped_in_its_forks() -> None:
    """Counted in page faults while a fork reads and writes what its parent holds."""
    script = """
        import os, resource
        import numpy as np
        from loaders._trial import memory, pages
        kept = np.ones(2**23)  # 64 MiB, 16384 pages
        there = pages.present()
        for ways in ([], there):
            if not os.fork():
                memory.populate(ways)
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
                kept[::512] = 2
                print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, flush=True)
                os._exit(0)
            os.wait()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    without, populated = map(int, done.stdout.split())
    assert without > 30  # of 16384 small pages, or of 32 huge ones
    assert populated < without / 10


def test_a_fork_shares_nothing_with_the_server() -> None:
    """What it shares would be divided by more when its workers share it too, so that they seemed to need memory."""
    script = """
        import os
        import numpy as np
        import scipy.linalg
        from loaders._trial import memory, pages
        kept = np.ones(2**20)
        memory.map_code()
        there, mapped = pages.present(), memory.held().file
        pages.unmap_code()
        for ways in ([], there):
            if not os.fork():
                memory.populate(ways)
                print(memory.held().anonymous - memory.proportional(os.getpid()).anonymous, flush=True)
                os._exit(0)
            os.wait()
        print(mapped, memory.held().file, flush=True)
        print(kept.sum(), np.linalg.det(np.eye(3)), scipy.linalg.norm([3, 4]))  # all of it still works
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    (shared,), (populated,), (mapped, left), works = (map(float, line.split()) for line in done.stdout.splitlines())
    assert shared > 2**22, "half of 8 MiB, and more"
    assert populated < 2**17
    assert left < mapped / 4
    assert [*works] == [2**20, 1, 5]


@EACH_START
def test_a_collection_goes_through_what_was_imported(strategy: Strategy) -> None:
    """Frozen as in the server, it went through next to nothing: what collects garbage was eleven times as fast."""
    record = strategy(
        "import gc\nassert gc.get_freeze_count() == 0\nassert len(gc.get_objects()) > 20_000\nreturn right"
    )
    assert record.status == "ok", record.message


@FORKED
def test_what_was_imported_is_frozen_until_a_fork_is_prepared(corpus: Corpus, tmp_path: Path, server: Server) -> None:
    """Preparing collects garbage; of all that was imported, that more than doubled what a forked trial costs."""
    file = tmp_path / "planted.py"
    file.write_text(
        "import gc\nfrom loaders import variant\nfrozen = gc.get_freeze_count()\n"
        '@variant(question="selection")\ndef planted(job):\n    """Planted by a test."""\n'
        "    assert frozen > 20_000, frozen\n    assert gc.get_freeze_count() == 0\n"
        "    import numpy as np\n"
        "    return [np.random.default_rng(1).choice(job.inputs.images, 100, replace=False)]\n"
    )
    trial = msgspec.structs.replace(_trial(corpus), strategy="planted", outside=[str(file)])
    record = run_trial(trial, corpus, server=server)
    assert (record.process, record.status) == ("forked", "ok"), record.message


IMPORTED = '''
import sys
from loaders import variant

@variant(question="decode")
def planted(job):
    """Imports nothing itself."""
    asked = ("tensorflow", "skimage.io", "torch", "PIL.Image")
    raise ValueError(" ".join(each for each in asked if each in sys.modules))
'''


@pytest.mark.slow
def test_a_trial_has_imported_what_its_group_imports_however_it_starts(
    corpus: Corpus, tmp_path: Path, forget: None
) -> None:
    """Else the allocator of a fresh one would keep less, and each of its epochs would map pages anew."""
    file = tmp_path / "mine.py"
    file.write_text(IMPORTED)
    _registry.load_files([file])
    plan = _compare.plan("decode", corpus, outside=(str(file),))
    trial = plan.trial("planted", plan.cases[0], 1)
    with Forks(_compare.groups_of([plan])) as forks:
        records = [run_trial(trial, corpus), forks.run(trial, corpus)]
    assert [each.process for each in records] == ["fresh", "forked"]
    for each in records:
        assert each.message.startswith("ValueError: tensorflow skimage.io PIL.Image ("), each.message


@pytest.mark.slow
def test_a_forked_trial_costs_a_quarter_of_an_import(corpus: Corpus) -> None:
    """What it costs beyond its epochs, by the best of four each, in turn: 0.07 to 0.19 on quiet machines.

    It was 0.17 to 0.27 when preparing a fork went three times through all that was imported.
    """
    plan = _compare.plan("caching", corpus)
    trial = plan.trial("no_cache", plan.cases[0], 1)
    trials, imports = [], []
    with Forks(_compare.groups_of([plan])) as forks:
        for _ in range(4):
            record = forks.run(msgspec.structs.replace(trial, slow=False, checked=False), corpus)
            assert record.status == "ok", record.message
            trials.append(record.seconds - (record.metrics.epoch_time or 0.0) * record.epochs)
            begun = time.monotonic()
            subprocess.run([sys.executable, "-c", "import tensorflow"], capture_output=True, check=True)
            imports.append(time.monotonic() - begun)
    assert min(trials) < min(imports) / 4, (trials, imports)
