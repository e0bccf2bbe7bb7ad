"""Every loader as the file that is handed out: run where this package is not, it does what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loaders._folder import written
from tests.folder import made

COUNT, BROKEN = 21, "label1/broken.png"

RUN = """
import importlib, json, sys, warnings
sys.modules["loaders"] = None  # an import of this package fails
sys.path.insert(0, sys.argv[1])
import numpy as np
import keras

def run(module, photos):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = module.batches(photos)
        if hasattr(batches, "on_epoch_end"):  # a PyDataset, as fit reads it
            def epoch():
                yield from (batches[index] for index in range(len(batches)))
                batches.on_epoch_end()
        else:
            epoch = lambda: ((images.numpy(), labels.numpy()) for images, labels in batches)
        epochs = []
        for _ in range(2):
            found = list(epoch())
            # The grey of an image's lower half tells which one it is.
            epochs.append([
                [round((float(image[-1, -1, 0]) + 1) * 127.5) - 20, int(label)]
                for images, labels in found for image, label in zip(images, labels)
            ])
    model = keras.Sequential([keras.layers.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return {
        "epochs": epochs,
        "shapes": sorted({images.shape[1:] for images, _ in found}),
        "kinds": sorted({str(each.dtype) for pair in found for each in pair}),
        "said": [str(each.message) for each in caught if "cannot be read" in str(each.message)],
        "sizes": [len(labels) for _, labels in found],
        "losses": model.fit(module.batches(photos), epochs=2, verbose=0).history["loss"],
    }

print(json.dumps({name: run(importlib.import_module(name), sys.argv[2]) for name in sys.argv[3:]}))
"""


def _text(name: str) -> str:
    few = {"AT_ONCE": 8} if "AT_ONCE = " in written.stand_alone(name, "", {}) else {}
    return written.stand_alone(name, "Written by a test.", {"BATCH": made.BATCH, "HEIGHT": 16, "WIDTH": 16, **few})


def _run(script: str, directory: Path, photos: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a directory with loaders, on these photographs."""
    command = [sys.executable, "-c", script, str(directory), str(photos), *more]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_each_delivers_every_readable_image_once_an_epoch(tmp_path: Path) -> None:
    """All in one process, which imports TensorFlow once."""
    photos = made.folder(tmp_path / "photos", COUNT)
    (photos / BROKEN).write_bytes(b"no image")
    for name in written.names():
        (tmp_path / f"{name}.py").write_text(_text(name))
    done = _run(RUN, tmp_path, photos, *written.names())
    assert done.returncode == 0, done.stderr
    every = json.loads(done.stdout.splitlines()[-1])
    assert list(every) == written.names()
    for name, found in every.items():
        first, second = found["epochs"]
        assert sorted(first) == sorted(second) == [[number, number % 2] for number in range(COUNT)], name
        assert first != second, f"{name}: shuffled anew"
        assert first != sorted(first), name
        assert found["shapes"] == [[16, 16, 3]], name
        assert found["kinds"] == ["float32", "int64"], name
        assert any(BROKEN in each for each in found["said"]), name
        assert max(found["sizes"]) == made.BATCH, name
        assert all(loss == loss for loss in found["losses"]), f"{name}: not a number"
    assert not list(photos.rglob("*.npy")), "nothing is written into the folder"


NEW_PAGES = """
import importlib, resource, sys
sys.path.insert(0, sys.argv[1])
import keras
batches = importlib.import_module(sys.argv[3]).batches(sys.argv[2])
if isinstance(batches, keras.utils.PyDataset):
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter
    adapter = PyDatasetAdapter(batches, shuffle=False)
    dataset, begin, end = adapter.get_tf_dataset(), adapter.on_epoch_begin, adapter.on_epoch_end
else:
    dataset, begin, end = batches, lambda: None, lambda: None
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin()
    for _ in dataset:
        pass
    end()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the threshold is one of glibc")
@pytest.mark.parametrize("loader", ["path_generator_pool", "keras_pydataset"])
def test_images_come_from_memory_that_is_there_though_from_generator_has_it_given_back(
    tmp_path: Path, loader: str
) -> None:
    """TensorFlow sets a threshold of malloc, for the whole process; each array above it is in new pages then."""
    for number in range(COUNT):
        made.image(tmp_path / "photos" / "label" / f"{number:04}.png", number, 600, 800)
    text = _text(loader)
    calls = re.compile(r"^ +set_threshold_back\(\)\n", re.MULTILINE)
    pages = []
    without, count = calls.subn("", text)
    assert count == 1
    for name, each in (("given_back", without), ("kept", text)):
        (tmp_path / f"{name}.py").write_text(each)
        done = _run(NEW_PAGES, tmp_path, tmp_path / "photos", name)
        assert done.returncode == 0, done.stderr
        pages.append(int(done.stdout))
    given_back, kept = pages
    if given_back < COUNT * PAGES_OF_AN_IMAGE / 2:  # some of Keras's images are decoded into what others have left
        pytest.skip("this version of TensorFlow leaves malloc as it is")
    assert kept < given_back / 4, (kept, given_back)


PAGES_OF_AN_IMAGE = 600 * 800 * 3 // 4096


FULL = """
import errno, os, sys
sys.path.insert(0, sys.argv[1])
import memory_map

def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

os.posix_fallocate = full
try:
    memory_map.convert(memory_map.files_of(sys.argv[2]))
except OSError as error:
    print(error.strerror, [*memory_map.CACHE.iterdir()])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room on a disk")
def test_a_full_disk_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without the room, the process would end when a page of the mapped file is touched, without a word."""
    photos = made.folder(tmp_path / "photos", 3)
    (tmp_path / "memory_map.py").write_text(_text("memory_map"))
    done = _run(FULL, tmp_path, photos)
    assert done.stdout.splitlines()[-1:] == ["No space left on device []"], done.stderr


ODD = """
import os, pathlib, sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import keras_pydataset, memory_map

photos = pathlib.Path(sys.argv[2])
files = memory_map.files_of(photos)

def made():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        memory_map.pipeline(files, np.random.default_rng(0))
    said = [str(each.message) for each in caught]
    return sum("to try again, delete it" in each for each in said), len(list(memory_map.CACHE.glob("*.npy")))

print("first", made())
print("again", made())
stat = os.stat(files[0][0])
pathlib.Path(files[0][0]).write_bytes(pathlib.Path(files[0][0]).read_bytes())
os.utime(files[0][0], ns=(stat.st_atime_ns, stat.st_mtime_ns))
print("replaced", made())
source = pathlib.Path(memory_map.__file__)
source.write_text(source.read_text().replace("    shrinks = ", "    picture = picture[2:]\\n    shrinks = "))
import importlib, linecache
importlib.reload(memory_map)
linecache.checkcache()
print("edited", made())
memory_map.cv2.__version__ = "another"
print("updated", made())
print("left", sorted({"".join(each.suffixes) for each in memory_map.CACHE.iterdir()}))

broken = [each for each in files if "broken" in each[0]]
images = keras_pydataset.Images([*broken, *(each for each in files if each not in broken)], np.random.default_rng(0))
images._order = np.array([*range(1, len(files)), 0])
batches = [images[index] for index in range(len(images))]
print("stands in", [len(labels) for _, labels in batches], broken[0][1], int(batches[-1][1][0]))
"""


@pytest.mark.slow
def test_what_has_changed_is_decoded_anew_and_an_unreadable_batch_does_not_end_training(tmp_path: Path) -> None:
    photos = made.folder(tmp_path / "photos", 8)
    (photos / BROKEN).write_bytes(b"no image")
    odd = photos / "label1" / os.fsdecode(b"caf\xe9.png")
    try:
        (photos / "label1" / "0007.png").rename(odd)
    except OSError:
        pytest.skip("this system's names are UTF-8")
    for name in ("memory_map", "keras_pydataset"):
        (tmp_path / f"{name}.py").write_text(_text(name))
    done = _run(ODD, tmp_path, photos)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-7:] == [
        "first (1, 2)",
        "again (1, 2)",
        "replaced (1, 4)",
        "edited (1, 6)",
        "updated (1, 8)",
        "left ['.npy', '.places.npy']",
        "stands in [4, 4, 1] 1 0",
    ]


@pytest.mark.parametrize("name", written.names())
def test_it_is_written_as_one_would_write_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(_text(name))
    assert "loaders" not in path.read_text()
    assert path.read_text().startswith('"""Written by a test."""\n')
    for line in ("BATCH = 4", "HEIGHT = 16", "WIDTH = 16"):
        assert path.read_text().count(f"\n{line}\n") == 1
    for command in (["check", "--select", "E,F,I,D100,D101,D102,D103"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_a_loader_that_reads_files_is_not_one_that_writes_them_first() -> None:
    assert [name for name in written.names() if written.converts(name)] == ["memory_map"]
    assert all(written.label(name).endswith(".") for name in written.names())
    assert all(0 < written.lines(name) < 100 for name in written.names())


def test_a_loader_says_itself_what_its_memory_depends_on() -> None:
    assert [name for name in written.names() if written.keeps_all(name)] == ["load_all"]
    assert [name for name in written.names() if written.is_on_one_thread(name)] == ["path_generator"]
