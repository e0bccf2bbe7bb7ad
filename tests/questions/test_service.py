from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders import _compare, _registry
from loaders._contract import Promise
from loaders._corpus import Corpus
from loaders._errors import InputError, WrongOutputError
from loaders._faults import UNDISTURBED, Seen
from loaders._registry import Batch, Job
from loaders._trial import machine, pages, run_trial
from loaders._trial.forks import Forks, group_of
from loaders.questions.service import PROMISES, READS, SIDE, Files, faults, nodes
from tests.clusters import Start, shared
from tests.conftest import ROOT, kept_as_evidence
from tests.test_faults import seen
from tests.trial.conftest import marked

QUESTION = _registry.find_question("service")
KILLS = int(os.environ.get("LOADERS_KILLS", "2"))
LOCAL, SLOW = {"storage": "local"}, {"storage": "slow"}


Left = Callable[[], list[int]]
"""Returns the processes that a test has started and that are there, among what others have started meanwhile."""


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Left:
    monkeypatch.setenv("LOADERS_TEST_MARK", str(tmp_path))
    return lambda: [each.pid for each in marked(str(tmp_path)) if each.pid != os.getpid()]


def _soon_left(left: Left) -> list[int]:
    """Return which are there still after a while: what a signal has ended takes a moment to be gone."""
    end = time.monotonic() + 10
    while left() and time.monotonic() < end:
        time.sleep(0.05)
    return left()


@given(st.lists(st.integers(0, 4), min_size=1), st.integers(0, 2), st.one_of(st.none(), st.integers(0, 3)))
def test_a_promise_is_kept_or_broken_by_counting(came: list[int], least: int, more: int | None) -> None:
    most = None if more is None else least + more
    found = Promise(least, most, "nothing").held(came)
    if most is None:
        assert found.verdict == "not promised"
        assert (found.missing, found.repeated) == (
            sum(each < max(1, least) for each in came),
            sum(each > 1 for each in came),
        )
    else:
        assert (found.verdict == "kept") == all(least <= each <= most for each in came)
    assert Promise().held([1, 1, 1]).words == "none missing, none too often"


@pytest.mark.parametrize(
    ("strategy", "came", "said"),
    [
        ("service_2", "once", ""),
        ("service_2", "twice", "every image once is documented: none missing, 40 too often"),
        ("service_2", "but one", "every image once is documented: 1 missing, none too often"),
        ("service_2_off", "twice", ""),
        ("service_2_off", "once", "every image once by each worker is documented: 40 missing, none too often"),
        ("service_2", "another", "what came as image 0 is not what its file holds"),
    ],
)
def test_what_comes_is_held_against_what_is_documented(corpus: Corpus, strategy: str, came: str, said: str) -> None:
    job = _job(corpus)
    batches: list[Batch] = list(_registry.find_variant("service", "local").build(job))
    count = len(job.inputs.paths)
    if came == "twice":
        batches = [*batches, *batches]
    elif came == "but one":
        batches = [
            (images[:-1], numbers[:-1]) if index == 0 else (images, numbers)
            for index, (images, numbers) in enumerate(batches)
        ]
    elif came == "another":
        batches = [(images, numbers * 0) for images, numbers in batches]
    variant = _registry.find_variant("service", strategy)
    if not said:
        delivery = QUESTION.check(job, variant, batches).delivery
        assert delivery is not None
        assert delivery.verdict == "kept"
        return
    with pytest.raises(WrongOutputError) as raised:
        QUESTION.check(job, variant, batches)
    assert said.replace("40", str(count)) in str(raised.value)


def _job(corpus: Corpus, case: dict[str, str] = LOCAL, **more: object) -> Job[Files]:
    return Job(corpus, QUESTION.prepare(corpus, case, 1), case, 1, **more)  # type: ignore[arg-type]


def test_every_promise_belongs_to_a_strategy() -> None:
    assert set(PROMISES) <= set(_registry.variants("service"))


def test_slow_storage_is_late_by_as_much_as_is_said_and_reads_overlap(corpus: Corpus) -> None:
    """Four reads under way take less time than one, each at its quickest; which image comes is the same."""
    job = _job(corpus, SLOW)
    from loaders.questions.service import of_files

    taken: dict[int, list[float]] = {1: [], 4: []}
    numbers = {}
    for reads in (1, 4) * 3:
        begun = time.monotonic()
        numbers[reads] = Counter(int(each) for _, batch in of_files(job, reads) for each in batch)
        taken[reads].append(time.monotonic() - begun)
    assert numbers[1] == numbers[4] == Counter(range(len(job.inputs.paths)))
    assert min(taken[1]) >= len(job.inputs.paths) * job.inputs.late / 2, "the next one is begun a little ahead"
    assert min(taken[4]) < 0.8 * min(taken[1])


@pytest.mark.slow
def test_a_trial_counts_every_process_and_leaves_none(corpus: Corpus, left: Left) -> None:
    alone, served = (
        run_trial(_compare.plan("service", corpus).trial(name, LOCAL, 1), corpus) for name in ("local", "service_2")
    )
    for record in (alone, served):
        assert record.status == "ok", record.message
        assert record.metrics.delivery is not None
        assert record.metrics.delivery.verdict == "kept"
    assert alone.metrics.peak_memory_tree is None
    assert served.metrics.peak_memory_tree is not None
    assert served.metrics.peak_memory_tree > 3 * 100 * 2**20, "three processes with TensorFlow"
    assert alone.metrics.memory_by_role is None
    held = served.metrics.memory_by_role
    assert held is not None
    assert held.keys() == {"client", "dispatcher", "workers"}
    assert held["client"] < 100 * 2**20 < held["dispatcher"] < held["workers"], "which are two, with TensorFlow"
    assert alone.metrics.cpu_time is not None
    assert served.metrics.cpu_time is not None
    assert served.metrics.cpu_time > alone.metrics.cpu_time, "the workers' work counts"
    assert alone.metrics.wire_bytes is None
    assert served.metrics.wire_bytes is not None
    # Pictures compress, so less than their size may come; other tests may talk meanwhile.
    assert served.metrics.wire_bytes > SIDE * SIDE * 3 / 20
    assert left() == []


SERVED = """
from loaders import variant
from loaders.questions.service import nodes

@variant(question="service", serve=nodes.workers(1))
def planted(job):
    \"\"\"Says what serves it, and how much of memory that has, against one that has imported TensorFlow itself.\"\"\"
    import psutil

    def own(running):
        each = running.workers[0].process
        return psutil.Process(each.pid).memory_full_info().uss

    with nodes.cluster(1) as other:
        share = own(job.served) / own(other)
    raise ValueError(f"{type(job.served.workers[0].process).__name__} {share}")
"""


@pytest.mark.slow
@pytest.mark.skipif(not pages.AVAILABLE, reason="this kernel cannot populate pages")
def test_what_serves_a_trial_is_a_fork_of_it_with_the_memory_of_one_that_has_imported_tensorflow(
    corpus: Corpus, tmp_path: Path, left: Left, forget: None
) -> None:
    """However the trial starts, and whatever else is compared by the same command."""
    file = tmp_path / "mine.py"
    file.write_text(SERVED)
    _registry.load_files([file])
    plan = _compare.plan("service", corpus, outside=(str(file),))
    trial = plan.trial("planted", LOCAL, 1)
    groups = _compare.groups_of([plan, _compare.plan("resize", corpus)])
    with Forks({each: groups[each] for each in ((), group_of(_registry.find_variant("service", "planted")))}) as forks:
        records = [run_trial(trial, corpus), forks.run(trial, corpus)]
    assert [each.process for each in records] == ["fresh", "forked"]
    for each in records:
        kind, share = each.message.removeprefix("ValueError: ").split()[:2]
        assert kind == "Clone", each.message
        assert 0.9 < float(share) < 1.08, "1.10 with what other questions import"
    assert _soon_left(left) == []


PREPARED = """
import sys, threading
from contextlib import ExitStack
import msgspec
from loaders._trial.prepare import prepare
from loaders._trial.record import Trial

threading.Thread(target=threading.Event().wait, daemon=True).start()
with ExitStack() as serving:
    prepared = prepare(msgspec.json.decode(sys.argv[1], type=Trial), None, serving)
    running = prepared.job.served
    images = sum(len(image) for image, _ in prepared.variant.build(prepared.job))
    print(type(running.dispatcher.process).__name__, images)
"""


@pytest.mark.slow
def test_a_trial_with_another_thread_is_served_by_new_processes(corpus: Corpus, tmp_path: Path, left: Left) -> None:
    """A process with several threads must not be forked."""
    trial = _compare.plan("service", corpus).trial("service_1", LOCAL, 1)
    done = subprocess.run(
        [sys.executable, "-c", PREPARED, msgspec.json.encode(trial)],
        cwd=tmp_path,
        env={**os.environ, **machine.PINNED},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Popen", str(len(QUESTION.prepare(corpus, LOCAL, 1).paths))]
    assert left() == []


@pytest.mark.slow
def test_files_are_shared_out_by_an_order_that_every_worker_sees(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusters: Start
) -> None:
    """With slow files too: a stage that lets them overtake one another would make FILE lose and double some."""
    monkeypatch.setattr(nodes, "cluster", clusters)
    variant = _registry.find_variant("service", "service_2_file")
    job = _job(corpus, SLOW, directory=tmp_path)
    assert variant.convert is not None
    assert variant.serve is not None
    variant.convert(job)
    with variant.serve(job) as served:
        job = dataclasses.replace(job, served=served)
        for _ in range(3):
            delivery = QUESTION.check(job, variant, variant.build(job)).delivery
            assert delivery is not None
            assert delivery.verdict == "kept"


def test_a_trial_that_is_ended_leaves_no_process(corpus: Corpus, left: Left) -> None:
    record = run_trial(_compare.plan("service", corpus, deadline=2.0).trial("service_2", SLOW, 1), corpus)
    assert record.status == "timed_out"
    assert left() == []


@pytest.mark.slow
def test_a_cluster_ends_with_its_context_whatever_happens(left: Left) -> None:
    def fail(running: nodes.Cluster) -> None:
        assert nodes.answering(running.address) == running.address
        assert len(left()) == 2
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), nodes.cluster(1) as running:
        fail(running)
    assert left() == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of one that has threads, as of Keras's own
def test_clusters_that_tests_share_end_though_a_fork_holds_their_pipe() -> None:
    """As Keras's workers do, which a test leaves behind: the suite did not end."""
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
    with shared() as start:
        start(0)
        fork.start()
    assert fork.is_alive(), "they waited for it"
    fork.kill()
    fork.join()


@pytest.mark.slow
def test_a_port_in_use_is_named(left: Left) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"the dispatcher did not come up: port {port} seems to be in use"
        with pytest.raises(InputError, match=said), nodes.cluster(1, port=port):
            pass
    assert left() == []


@pytest.mark.slow
def test_a_dispatcher_that_does_not_come_up_says_why(left: Left) -> None:
    with pytest.raises(InputError, match=r"the dispatcher did not come up: .*nonsense"), nodes.cluster(1, nonsense=1):
        pass
    assert left() == []


def test_a_dispatcher_that_never_says_anything_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left: Left
) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(nodes, "SCRIPT", silent)
    monkeypatch.setattr(nodes, "UP_WITHIN", 1.0)
    with pytest.raises(InputError, match="did not come up within 1 s: it said nothing"), nodes.cluster(1):
        pass
    assert left() == []


def test_a_node_that_says_something_else_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left: Left
) -> None:
    odd = tmp_path / "odd.py"
    odd.write_text("import time\nprint('hello', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(nodes, "SCRIPT", odd)
    with pytest.raises(InputError, match="the dispatcher did not come up: "), nodes.cluster(1):
        pass
    assert left() == []


def test_a_node_imports_packages_and_not_the_files_beside_its_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Beside it is one that is named as Ray is."""
    (tmp_path / "keras.py").write_text("raise ValueError('the file beside it')\n")
    script = tmp_path / "node.py"
    script.write_text("import sys\nimport keras\nsys.stdin.readline()\nprint(5000, keras.__version__, flush=True)\n")
    monkeypatch.setattr(nodes, "SCRIPT", script)
    with nodes.cluster(0) as running:
        assert running.dispatcher.version


def test_what_is_said_of_reads_under_way_is_so() -> None:
    said = {name: each.doc for name, each in _registry.variants("service").items()}
    assert "two reads under way" in said["local"]
    assert "four reads under way, as two workers have" in said["local_4"]
    assert "eight reads under way, as four workers have" in said["local_8"]
    assert (READS, 2 * READS, 4 * READS) == (2, 4, 8)


def test_another_version_of_tensorflow_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "import json, sys\n"
        "role = json.loads(sys.stdin.readline())['role']\n"
        "print(5000, '2.20.0' if role == 'worker' else '2.21.0', flush=True)\n"
        "sys.stdin.read()\n"
    )
    monkeypatch.setattr(nodes, "SCRIPT", other)
    with (
        pytest.raises(InputError, match=r"has TensorFlow 2.20.0 and the dispatcher 2.21.0"),
        nodes.cluster(1),
    ):
        pass


def test_an_address_that_nobody_answers_is_named_at_once() -> None:
    (port,) = nodes.free_ports(1)
    with pytest.raises(InputError, match=f"no dispatcher answers at grpc://localhost:{port}"):
        nodes.answering(f"grpc://localhost:{port}")
    with pytest.raises(InputError, match="no dispatcher answers at nonsense"):
        nodes.answering("nonsense")


@pytest.mark.slow
def test_the_documented_code_runs_as_it_stands(corpus: Corpus, tmp_path: Path, left: Left) -> None:
    """The three files of docs/service.md, started as it says, deliver every image once."""
    text = (ROOT / "docs" / "service.md").read_text("utf-8")
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in blocks] == ["dispatcher.py", "worker.py", "loader.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code)
    first, *others = nodes.free_ports(3)
    paths = corpus.image_paths[:40]

    def start(*command: object) -> subprocess.Popen[str]:
        words = [sys.executable, *map(str, command)]
        return subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    servers = []
    try:
        for command in (
            ("dispatcher.py", first, tmp_path / "work"),
            *(("worker.py", f"localhost:{first}", "localhost", other) for other in others),
        ):
            servers.append(start(*command))
            assert servers[-1].stdout is not None
            assert servers[-1].stdout.readline() == "up\n"
        loaded = start("loader.py", f"localhost:{first}", *paths)
        assert loaded.communicate(timeout=120)[0] == "40 images, 40 of them different\n"
    finally:
        for server in servers:
            server.kill()
            server.communicate()
    assert left() == []


def test_what_was_repeated_is_not_repeated_again(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[faults.Settings] = []

    class Planted:
        is_over = True

        def __init__(self, settings: faults.Settings) -> None:
            ran.append(settings)
            self._settings = settings

        def said(self) -> list[Seen]:
            settings = self._settings
            return [seen(settings.fault, settings.strategy, share=share) for share in settings.shares]

        def end(self) -> None:
            pass

    monkeypatch.setattr(faults, "UnderWay", Planted)
    monkeypatch.setattr(faults, "TOGETHER", 1)
    monkeypatch.setattr(faults, "BUSY", 1)
    monkeypatch.setattr(faults, "APART", 0.0)
    path = tmp_path / "faults.jsonl"
    told: list[Seen] = []
    faults.repeated(1, corpus.root, path)
    asked = faults.asked()
    assert [(each.fault, each.strategy) for each in ran] == asked
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:-1]) + b"cut o")
    found = faults.repeated(3, corpus.root, path, told.append)
    assert len(found) == len(told) == 3 * len(asked)
    first, *again = ran[len(asked) :]
    assert (first.strategy, len(first.shares)) == (ran[0].strategy, 3), "undisturbed epochs share a process"
    assert first.shares[0] == ran[0].shares[0], "what was lost is repeated, at its moment"
    assert {len(each.shares) for each in again if each.fault == UNDISTURBED} == {2}
    assert {len(each.shares) for each in again if each.fault != UNDISTURBED} == {1}
    assert ran[len(asked) - 1] in again, "what was cut off is lost too"
    of_faults = [(each.fault, each.strategy) for each in again if each.fault != UNDISTURBED]
    assert of_faults[1:] == 2 * [each for each in asked if each[0] != UNDISTURBED], "round by round"
    assert len({each.share for each in found}) == 3 * len(asked), "each at another moment"
    assert all(0.2 <= each.share <= 0.8 for each in found)
    assert all(each.machine and each.cpu and "TensorFlow" in each.versions for each in found)


@pytest.mark.slow
def test_rays_cluster_comes_up_where_temporary_files_have_long_names(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a trial's do: the name of a socket may be 107 bytes long, on macOS 103."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(str(tmp_path)) > 40
    variant = _registry.find_variant("service", "ray_data")
    assert variant.serve is not None
    with variant.serve(_job(corpus, SLOW)):
        assert ray.cluster_resources()["CPU"] == os.cpu_count()
    assert not ray.is_initialized()


def test_every_strategy_is_audited_undisturbed() -> None:
    undisturbed = {strategy for fault, strategy in faults.asked() if fault == UNDISTURBED}
    assert undisturbed >= {each for each in _registry.variants("service") if each != "ray_data"}
    assert {fault for fault, _ in faults.asked()} == set(faults.FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["service_2_off", "service_2_cached"])
def test_undisturbed_epochs_share_a_process_and_nothing_else(
    strategy: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Left
) -> None:
    monkeypatch.setattr(faults, "asked", lambda: [(UNDISTURBED, strategy)])
    started: list[faults.UnderWay] = []

    class Counted(faults.UnderWay):
        def __init__(self, settings: faults.Settings) -> None:
            super().__init__(settings)
            started.append(self)

    monkeypatch.setattr(faults, "UnderWay", Counted)
    found = faults.repeated(3, corpus.root, tmp_path / "faults.jsonl")
    assert len(started) == 1
    assert [each.ended for each in found] == 3 * ["whole"]
    if strategy == "service_2_off":
        assert {(each.missing, each.repeated, each.verdict) for each in found} == {(0, 0, "kept")}
    assert _soon_left(left) == []


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_of_an_epoch_is_waited_for(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Left
) -> None:
    monkeypatch.setattr(faults, "asked", lambda: [("worker_killed", faults.DYNAMIC)])
    monkeypatch.setattr(faults, "WAITS_FOR_EVER", 25.0)
    monkeypatch.setattr(faults, "LATE", 0.4)
    (killed,) = faults.repeated(1, corpus.root, tmp_path / "faults.jsonl")
    assert (killed.ended, killed.recovered, killed.repeated) == ("waits", None, 0), killed
    assert killed.stalled >= 25
    assert killed.verdict == "kept", "at most once"
    assert _soon_left(left) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "strategy", "joined"),
    [("worker_added", faults.DYNAMIC, "followed"), ("worker_restarted", faults.FILE, "repeated")],
)
def test_a_worker_that_starts_in_the_middle_of_an_epoch(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Left, fault: str, strategy: str, joined: str
) -> None:
    """On the tiny corpus, read so slowly that it joins in time: a busy machine starts it late."""
    monkeypatch.setattr(faults, "asked", lambda: [(fault, strategy)])
    monkeypatch.setattr(faults, "_moment", lambda *_: 0.2)
    for late in (2.4, 4.8):
        monkeypatch.setattr(faults, "LATE", late)
        (seen,) = faults.repeated(1, corpus.root, tmp_path / f"{late}.jsonl")
        assert (seen.ended, seen.missing, seen.verdict) == ("whole", 0, "kept"), seen
        if getattr(seen, joined):
            break
    assert seen.followed or fault != "worker_added", "it joined before the epoch was over"
    assert bool(seen.repeated) == (fault == "worker_restarted"), "only who restarts begins its part anew"
    assert _soon_left(left) == []


@pytest.mark.slow
def test_an_experiment_that_says_nothing_ends_the_others_that_are_under_way(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Left
) -> None:
    monkeypatch.setattr(faults, "asked", lambda: [("worker_hangs", faults.DYNAMIC), ("planted", faults.DYNAMIC)])
    began = time.monotonic()
    with pytest.raises(InputError, match=r"the experiment planted \(service_2\) did not end: KeyError: 'planted'"):
        faults.repeated(1, corpus.root, tmp_path / "faults.jsonl")
    assert time.monotonic() - began < faults.WAITS_FOR_EVER, "nobody waited for the other"
    assert _soon_left(left) == []


@pytest.mark.slow
def test_an_experiment_ends_with_whoever_started_it(corpus: Corpus, tmp_path: Path, left: Left) -> None:
    code = "import sys; from loaders.questions.service import faults; "
    code += "faults.UnderWay(faults.Settings('worker_hangs', 'service_2', sys.argv[1], (0.5,), 90, 0.4)); input()"
    command = [sys.executable, "-c", code, str(corpus.root)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while len(left()) < 4 and time.monotonic() < end:  # itself, the experiment, and processes of its cluster
            time.sleep(0.05)
        assert len(left()) >= 4
        process.kill()
    assert _soon_left(left) == []


@given(st.lists(st.floats(0.01, 2), min_size=2, max_size=30), st.floats(0.01, 5), st.floats(0.1, 4))
def test_throughput_is_back_once_batches_come_as_fast_as_before(gaps: list[float], pause: float, slower: float) -> None:
    """After a pause batches come at an even pace; whether that is fast enough decides, and the pause is how long."""
    before = list(itertools.accumulate(gaps))
    usual = (before[-1] - before[0]) / (len(before) - 1)
    failed = before[-1]
    pause += slower * usual
    later = [failed + pause + index * slower * usual for index in range(2 * faults.AMONG)]
    found = faults.recovered(before, later, failed)
    if slower <= 0.99 / faults.BACK:
        assert found == pytest.approx(pause)
    elif slower >= 1.01 / faults.BACK:
        assert found is None
    assert faults.recovered(before, later[: faults.AMONG], failed) is None, "too few to say"
    assert faults.recovered(before[:1], later, failed) is None
    fetched = [failed + 1e-4 * index for index in range(1, 2 * faults.AMONG)]
    stalled = fetched[-1] + 100.0
    assert faults.recovered(before, [*fetched, stalled], failed) is None, "what had been fetched is no throughput"


def test_killed_at_random_moments_no_process_of_the_service_is_left(tmp_path: Path, left: Left) -> None:
    moments, leaves = random.Random(1), 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-m", "loaders", "trial", "service", "service_2", "--size", "tiny", "--json"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(1, 10))
        process.send_signal(moments.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        process.wait()
        leaves += _soon_left(left) != []
    kept_as_evidence("kills of the service", KILLS, {"a kill of a trial of tf.data service leaves a process": leaves})
    assert leaves == 0
