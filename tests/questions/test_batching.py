from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from loaders import _compare, _registry
from loaders._corpus import Corpus
from loaders._errors import WrongOutputError
from loaders._registry import Job, Skip
from loaders._rows.figures import value
from loaders._trial import Record, run_trial
from loaders._trial.imports import is_found
from loaders.questions import batching
from loaders.questions.batching import _by_label

QUESTION = _registry.find_question("batching")
ALL = {"data": "x16", "augment": "off"}
AUGMENTED = {"data": "x16", "augment": "on"}


def _job(corpus: Corpus, case: dict[str, str], directory: Path) -> Job[Any]:
    return Job(corpus, QUESTION.prepare(corpus, case, 3), case, 3, directory=directory)


def _trial(corpus: Corpus, strategy: str, outside: tuple[str, ...] = (), **more: Any) -> Record:
    planned = _compare.plan("batching", corpus, outside=outside, **more)
    return run_trial(planned.trial(strategy, ALL, 1), corpus)


@pytest.mark.parametrize(
    "strategy",
    [
        *("path_generator", "opencv_pool", "load_all_uint8", "memory_map_uint8"),
        *("tfdata_paths_2", "tfdata_paths_bilinear", "tf1_queue", "webdataset", "webdataset_workers"),
    ],
)
def test_augmentation_is_the_same_however_images_are_loaded(corpus: Corpus, tmp_path: Path, strategy: str) -> None:
    variant = _registry.find_variant("batching", strategy)
    if not all(map(is_found, variant.optional)):
        pytest.skip("an engine is not installed")
    job = _job(corpus, AUGMENTED, tmp_path)
    assert variant.runs_in(AUGMENTED)
    if variant.convert:
        variant.convert(job)
    QUESTION.check(job, variant, variant.build(job))


OF_A_FOLDER = [name for name, each in _registry.variants("batching").items() if each.convert is _by_label]


@pytest.mark.parametrize("strategy", OF_A_FOLDER)
def test_a_label_without_an_image_moves_no_other(corpus: Corpus, tmp_path: Path, strategy: str) -> None:
    """Labels are the names of folders, some of which are empty where there are few images."""
    variant = _registry.find_variant("batching", strategy)
    if not all(map(is_found, variant.optional)):
        pytest.skip("an engine is not installed")
    job = _job(corpus, {**ALL, "data": "x1"}, tmp_path)
    assert len(set(job.inputs.labels)) <= max(job.inputs.labels)
    assert variant.convert
    variant.convert(job)
    QUESTION.check(job, variant, variant.build(job))


def test_augmentation_changes_the_pictures_and_the_seed_decides_how(corpus: Corpus, tmp_path: Path) -> None:
    def pictures(case: dict[str, str]) -> Any:
        job = _job(corpus, case, tmp_path)
        return np.concatenate([images for images, _ in _registry.baseline("batching").build(job)])

    plain, changed = pictures(ALL), pictures(AUGMENTED)
    assert sum(not np.array_equal(one, other) for one, other in zip(plain, changed, strict=True)) > 40
    assert np.array_equal(changed, pictures(AUGMENTED))


@pytest.mark.parametrize("strategy", ["path_generator", "tfdata_paths_2", "tfdata_reduced"])
def test_without_augmentation_nobody_pays_for_it(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """TensorFlow's operations would shift and brighten by nothing, which takes as long as by something."""
    import tensorflow as tf

    def shifted(*_: Any) -> Any:
        raise AssertionError("shifted")

    for package in (np, tf):
        monkeypatch.setattr(package, "roll", shifted)
    build = _registry.find_variant("batching", strategy).build
    assert len(list(build(_job(corpus, ALL, tmp_path)))) == 2
    with pytest.raises(AssertionError, match="shifted"):
        list(build(_job(corpus, AUGMENTED, tmp_path)))


@pytest.mark.parametrize("strategy", ["load_all_uint8", "memory_map_uint8"])
def test_what_is_kept_is_changed_in_each_epoch(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """Changed before it is kept, it would be the same in all epochs for nothing, as no training has it."""
    variant = _registry.find_variant("batching", strategy)
    job = _job(corpus, AUGMENTED, tmp_path)
    changed: list[int] = []
    roll = np.roll

    def counted(*of: Any) -> Any:
        changed.append(1)
        return roll(*of)

    monkeypatch.setattr(np, "roll", counted)
    if variant.convert:
        variant.convert(job)
    batches = variant.build(job)
    assert not changed
    for epoch in (1, 2):
        assert sum(len(labels) for _, labels in (batches if epoch == 1 else variant.build(job))) == 48
        assert len(changed) == 48 * epoch


@pytest.mark.parametrize("strategy", ["load_all", "load_all_from_tensor_slices", "memory_map"])
def test_what_is_handed_out_as_it_was_loaded_is_not_augmented(strategy: str) -> None:
    """Its one change would be compared with those that others make in each epoch."""
    variant = _registry.find_variant("batching", strategy)
    assert variant.runs_in(ALL)
    assert not variant.runs_in(AUGMENTED)


def test_bytes_take_a_quarter_of_the_memory_and_of_the_file(corpus: Corpus, tmp_path: Path) -> None:
    import tracemalloc

    def peak(strategy: str) -> int:
        job = _job(corpus, ALL, tmp_path)
        tracemalloc.start()
        try:
            _registry.find_variant("batching", strategy).build(job)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak("load_all")  # what is loaded at first use
    assert peak("load_all_uint8") < peak("load_all") / 3

    def size(strategy: str) -> int:
        (directory := tmp_path / strategy).mkdir()
        variant = _registry.find_variant("batching", strategy)
        assert variant.convert
        variant.convert(_job(corpus, ALL, directory))
        (file,) = directory.iterdir()
        return file.stat().st_size

    assert size("memory_map") == pytest.approx(4 * size("memory_map_uint8"), rel=0.01)


def test_the_method_of_tutorials_is_the_one_of_tensorflow(corpus: Corpus, tmp_path: Path) -> None:
    import tensorflow as tf

    job = _job(corpus, ALL, tmp_path)
    batches = iter(_registry.find_variant("batching", "tfdata_paths_bilinear").build(job))
    picture = tf.io.decode_jpeg(tf.io.read_file(job.inputs.paths[0]), channels=3)
    levels = (next(batches)[0][0] + 1) * 127.5
    assert np.abs(levels - tf.image.resize(picture, (224, 224))).max() < 0.51
    assert np.abs(levels - tf.image.resize(picture, (224, 224), method="area")).max() > 5


def test_worker_processes_share_the_tar_files(corpus: Corpus, tmp_path: Path) -> None:
    """With one file for all, one of them would do all the work."""
    if not all(map(is_found, ("webdataset", "torch"))):
        pytest.skip("an engine is not installed")
    variant = _registry.find_variant("batching", "webdataset_workers")
    job = _job(corpus, ALL, tmp_path)
    assert variant.convert
    variant.convert(job)
    assert len(list(tmp_path.glob("*.tar"))) == 3
    sizes = [len(labels) for _, labels in variant.build(job)]
    assert sorted(sizes) == [20, 28]  # the first and the last file, and the second one


def test_keras_can_hand_its_batches_to_a_process_that_is_no_fork(corpus: Corpus, tmp_path: Path) -> None:
    """As on macOS, where processes are started and what they need is pickled."""
    import pickle

    from loaders.questions.batching.keras import _dataset

    job = _job(corpus, ALL, tmp_path)
    dataset = _dataset(job.inputs, batching._parts(job), workers=2)
    made = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
    assert len(made) == 2
    images, labels = made[1]
    assert images.shape == (16, 224, 224, 3)
    assert np.array_equal(labels, job.inputs.labels[32:])


def test_amounts_of_data_are_a_sixteenth_a_quarter_and_all(corpus: Corpus) -> None:
    counts = [len(QUESTION.prepare(corpus, {**ALL, "data": data}, 1).paths) for data in ("x1", "x4", "x16")]
    assert counts == [3, 12, 48]


@pytest.mark.parametrize("fault", ["BGR", "not scaled", "float64", "another label", "one large batch"])
def test_a_wrong_batch_is_caught(corpus: Corpus, tmp_path: Path, fault: str) -> None:
    variant = _registry.baseline("batching")
    job = _job(corpus, ALL, tmp_path)
    batches: list[Any] = list(variant.build(job))
    QUESTION.check(job, variant, batches)
    images, labels = batches[0]
    if fault == "one large batch":
        batches = [tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))]
        with pytest.raises(WrongOutputError, match="a batch holds 48 samples, at most 32 expected"):
            QUESTION.check(job, variant, batches)
        return
    batches[0] = {
        "BGR": (images[..., ::-1], labels),
        "not scaled": (np.clip(images * 0.9, -1, 1), labels),
        "float64": (images.astype(np.float64), labels),
        "another label": (images, labels + 1),
    }[fault]
    with pytest.raises(WrongOutputError):
        QUESTION.check(job, variant, batches)


def test_a_decoder_of_its_own_is_held_against_opencv_as_well(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is expected of it, it decodes itself: upside down, both would agree."""
    job = _job(corpus, ALL, tmp_path)
    variant = _registry.find_variant("batching", "tfdata_paths_2")
    QUESTION.check(job, variant, variant.build(job))
    turned = [(images[:, ::-1], labels) for images, labels in _registry.baseline("batching").build(job)]
    monkeypatch.setattr(batching, "_decoder_of", lambda data, _: lambda index: batching._load(data, index)[::-1])
    with pytest.raises(WrongOutputError, match="dB against OpenCV's"):
        QUESTION.check(job, variant, turned)


def test_without_mallopt_its_threshold_cannot_be_set_back(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    with pytest.raises(Skip, match="this C library has no threshold"):
        _registry.find_variant("batching", "pool_from_generator_mmap_threshold").build(_job(corpus, ALL, tmp_path))


def _orphans() -> set[int]:
    return {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}


@pytest.mark.slow
def test_worker_processes_are_counted_and_none_stays(corpus: Corpus) -> None:
    before = _orphans()
    for _ in range(3):  # a busy machine may read the tree too seldom
        record = _trial(corpus, "keras_pydataset_processes", deadline=200.0)
        assert record.status == "ok", record.message
        if value(record, "peak_memory_tree"):
            break
    assert value(record, "peak_memory_tree")
    assert _orphans() <= before


def test_keras_reads_shapes_once_and_before_there_are_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from loaders.questions.batching.keras import Epochs  # after the registry, which orders strategies by their modules

    calls: list[str] = []

    class Adapter:
        enqueuer = None

        def __init__(self, dataset: object, **_: object) -> None:
            """Take what the real one takes."""

        def get_tf_dataset(self) -> list[int]:
            calls.append("shapes")  # by two batches that are read here: workers that are forked meanwhile can hang
            return [1]

        def on_epoch_begin(self) -> None:
            calls.append("begin")

        def on_epoch_end(self) -> None:
            calls.append("end")

    name = "keras.src.trainers.data_adapters.py_dataset_adapter"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(PyDatasetAdapter=Adapter))
    dataset = Epochs(object())
    abandoned = iter(dataset)
    assert next(abandoned) == 1
    del abandoned  # as a slow consumer's epoch
    assert [*dataset, *dataset] == [1, 1]
    assert calls == ["shapes", *["begin", "end"] * 3]


def test_an_epoch_that_is_given_up_leaves_no_batches_to_the_next() -> None:
    """Keras keeps what its workers have made ahead; a slow consumer's epoch is given up where it takes long."""
    import keras

    from loaders.questions.batching.keras import Epochs

    class Numbers(keras.utils.PyDataset):  # type: ignore[misc] # keras ships without types
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return np.full((2, 1), index, np.float32), np.full(2, index)

    dataset = Epochs(Numbers(workers=2, max_queue_size=4))
    abandoned = iter(dataset)
    next(abandoned)
    time.sleep(0.5)  # they make more
    del abandoned
    for _ in range(2):
        assert [int(labels[0]) for _, labels in dataset] == [*range(8)]


PILLOW = '''
from loaders import variant
@variant(question="batching", tier={tier!r})
def planted(job):
    """Planted by a test."""
    import numpy as np
    from PIL import Image
    data = job.inputs
    for start in range(0, len(data.paths), job.batch_size):
        part = range(start, min(start + job.batch_size, len(data.paths)))
        images = [Image.open(data.paths[each]).convert("RGB").resize((224, 224), Image.BILINEAR) for each in part]
        yield np.stack([np.asarray(each, np.float32) / 127.5 - 1 for each in images]){wrong}, data.labels[list(part)]
'''


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    ("tier", "wrong", "status"),
    [("same purpose", "", "ok"), ("same purpose", "[..., ::-1]", "wrong_output"), ("identical", "", "wrong_output")],
)
def test_whoever_reduces_in_another_way_may_say_so(
    corpus: Corpus, tmp_path: Path, tier: str, wrong: str, status: str
) -> None:
    """Pillow's reduction has no aliases, and OpenCV's has."""
    (file := tmp_path / "mine.py").write_text(PILLOW.format(tier=tier, wrong=wrong))
    _registry.load_files([file])
    record = _trial(corpus, "planted", (str(file),))
    assert record.status == status, record.message
    assert (record.metrics.psnr is not None) == (status == "ok")


DYING = '''
from loaders import variant
@variant(question="batching")
def planted(job):
    """Planted by a test."""
    import os
    import keras
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter
    class Dying(keras.utils.PyDataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            import time
            import numpy as np
            if index == 4:
                time.sleep(2)  # long enough to be seen alive
                os._exit(1)
            return np.zeros((4, 224, 224, 3), np.float32), np.zeros(4, np.int64)
    adapter = PyDatasetAdapter(Dying(workers=2, use_multiprocessing=True), shuffle=False)
    adapter.on_epoch_begin()
    yield from adapter.get_tf_dataset()
'''


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_trial_within_its_deadline(corpus: Corpus, tmp_path: Path, forget: None) -> None:
    file = tmp_path / "planted.py"
    file.write_text(DYING)
    _registry.load_files([file])
    before = _orphans()
    record = _trial(corpus, "planted", (str(file),), deadline=40.0)  # on a busy machine imports take long
    assert record.status == "timed_out"
    assert "worker processes had ended before" in record.message
    assert _orphans() <= before


@pytest.mark.slow
def test_loading_all_is_ended_by_a_memory_limit_and_a_batch_at_a_time_is_not(corpus: Corpus) -> None:
    record = _trial(corpus, "path_generator")
    assert record.status == "ok"
    # Imports are in the limit, files that they map are not: 17 MiB or so. All images are 28 MiB more.
    import_and_a_batch = 2**20 * 40
    planned = _compare.plan("batching", corpus, memory_limit=import_and_a_batch)
    ended = run_trial(planned.trial("load_all", ALL, 1), corpus)
    assert ended.status == "over_budget"
    assert "allowed; ended" in ended.message
