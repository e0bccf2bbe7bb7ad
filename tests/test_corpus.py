from __future__ import annotations

import errno
import importlib.metadata
import io
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loaders import _durable
from loaders._corpus import Corpus, _encodings, _sources, _store, cache_root, open_corpus
from loaders._corpus._manifest import LeftOut, spread
from loaders._errors import InputError


def _tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder of the pictures that people really have."""
    folder = tmp_path / "images"
    random = np.random.default_rng(0)
    colour = random.integers(0, 255, (40, 60, 3), np.uint8)

    def save(name: str, image: Image.Image) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)

    save("cat/rgb.jpg", Image.fromarray(colour))
    save("cat/grey.JPEG", Image.fromarray(colour[..., 0]))
    save("cat/cmyk.jpg", Image.fromarray(colour).convert("CMYK"))
    save("dog/alpha.png", Image.fromarray(colour).convert("RGBA"))
    save("dog/grey alpha.png", Image.fromarray(colour[..., 0]).convert("LA"))
    save("dog/palette.png", Image.fromarray(colour).convert("P"))
    save("dog/sixteen.png", Image.fromarray(random.integers(0, 65535, (50, 50)).astype(np.uint16)))
    save("dog/one bit.png", Image.fromarray(colour[..., 0] > 128))
    save("dog/tiny.png", Image.fromarray(colour[:1, :1]))
    save("large [1].jpg", Image.fromarray(np.repeat(np.repeat(colour, 30, 0), 30, 1)))
    (folder / "cat" / "notes.txt").write_text("not an image")
    (folder / "cat" / ".hidden.jpg").write_bytes(b"")
    return folder


def test_photographs_are_the_same_bytes_each_time(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
    again = open_corpus("tiny")
    assert again.root != corpus.root
    assert again.manifest == corpus.manifest


def test_a_corpus_is_reused(corpus: Corpus) -> None:
    before = _tree(corpus.root)
    said: list[str] = []
    assert open_corpus("tiny", say=said.append).root == corpus.root
    assert (_tree(corpus.root), said) == (before, [])


def test_photographs_have_the_size_of_photographs(corpus: Corpus) -> None:
    sizes = [Path(path).stat().st_size for path in corpus.image_paths]
    assert 30_000 < np.mean(sizes) < 80_000
    assert {(image.width, image.height) for image in corpus.manifest.images} == {(500, 375)}
    assert len(corpus.labels) == 9
    assert corpus.image_labels == sorted(corpus.image_labels)
    assert corpus.photographs().shape == (2, 480, 640, 3)
    assert corpus.patches().shape == (2000, 32, 32, 3)


def test_records_are_where_the_index_says(corpus: Corpus) -> None:
    import tensorflow as tf

    shards = corpus.encoded("jpeg")
    read = [bytes(record.numpy()) for record in tf.data.TFRecordDataset([shard.path for shard in shards])]
    located = []
    for shard in shards:
        data = Path(shard.path).read_bytes()
        located += [data[at : at + length] for at, length in zip(shard.offsets, shard.lengths, strict=True)]
    assert located == read
    first = tf.train.Example.FromString(read[0]).features.feature
    assert first["image"].bytes_list.value[0] == Path(corpus.image_paths[0]).read_bytes()
    assert first["label"].int64_list.value[0] == corpus.image_labels[0]


def test_odd_images_become_a_corpus_and_the_folder_stays_untouched(odd: Path) -> None:
    before = _tree(odd)
    said: list[str] = []
    found = open_corpus("tiny", odd, say=said.append)
    assert _tree(odd) == before
    assert len(found.image_paths) == 10
    assert found.labels == ["cat", "dog", "unlabelled"]
    assert found.manifest.left_out == []
    assert found.manifest.converted == {
        "CMYK JPEG": 1,
        "PNG": 3,
        "PNG with alpha": 2,
        "16-bit PNG": 1,
    }
    assert any("1 x CMYK JPEG converted" in line for line in said)
    assert str(odd) not in (found.root / "manifest.json").read_text()
    as_it_was = {Path(path).read_bytes() for path in found.image_paths}
    assert (odd / "cat" / "rgb.jpg").read_bytes() in as_it_was
    assert (odd / "cat" / "grey.JPEG").read_bytes() in as_it_was


def test_files_of_other_formats_are_said_to_be_left_out(tmp_path: Path) -> None:
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    for name in ("b.webp", "c.heic", ".hidden"):
        (tmp_path / name).touch()
    said: list[str] = []
    open_corpus("tiny", tmp_path, say=said.append)
    assert "2 other files are not used, such as b.webp: only JPEG and PNG are" in said


def test_what_cannot_be_read_just_now_is_not_left_out_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (40, 40)).save(tmp_path / name)
    read, broken = Path.read_bytes, [errno.EIO]

    def fails(path: Path) -> bytes:
        if path.name == "b.png" and broken:
            raise OSError(broken[0], os.strerror(broken[0]))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(InputError, match=r"b\.png could not be read just now: Input/output error; run it again"):
        open_corpus("tiny", tmp_path)
    broken[0] = errno.EACCES
    assert [each.path for each in open_corpus("tiny", tmp_path).manifest.left_out] == ["b.png"]
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path / "cache"))
    broken.clear()
    assert open_corpus("tiny", tmp_path).manifest.left_out == []


@pytest.mark.parametrize("there", ["opencv-python", "opencv-python-headless", "opencv-contrib-python-headless"])
def test_opencv_is_known_by_each_of_its_names(monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    def version(name: str) -> str:
        if name != there:
            raise importlib.metadata.PackageNotFoundError(name)
        return "4.12"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert _store._version_of("opencv-python") == "4.12"
    with pytest.raises(InputError, match="pillow is not installed"):
        _store._version_of("pillow")


def test_sixteen_bits_keep_their_brightness(tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 40), 40_000, np.uint16)).save(tmp_path / "a.png")
    found = open_corpus("tiny", tmp_path)
    with Image.open(found.image_paths[0]) as image:
        assert image.mode == "RGB"
        assert np.asarray(image).mean() == pytest.approx(40_000 / 256, abs=2)


def test_what_exif_turns_is_turned_for_every_decoder(tmp_path: Path) -> None:
    """OpenCV turns it and TensorFlow does not: all others would deliver a wrong picture."""
    turned = b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"  # the orientation, a short: 6
    odd = b"\x01\x28\0\x02\0\0\0\x04in.\0"  # the unit of resolution as text, which Pillow reads and cannot write
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x02" + turned + odd + b"\0\0\0\0"
    picture = Image.new("RGB", (60, 40))
    picture.paste((255, 255, 255), (0, 0, 30, 40))  # the left half, which is above once it is turned
    picture.save(tmp_path / "a.jpg", exif=exif)
    picture.convert("L").save(tmp_path / "b.jpg", exif=exif)
    picture.save(tmp_path / "c.png", exif=exif)
    found = open_corpus("tiny", tmp_path)
    assert found.manifest.left_out == []
    assert found.manifest.converted == {"turned RGB JPEG": 1, "turned L JPEG": 1, "PNG": 1}
    for path, shown in zip(found.image_paths, found.manifest.images, strict=True):
        with Image.open(path) as image:
            assert image.size == (shown.width, shown.height) == (40, 60)
            assert image.getexif().get(0x0112, 1) == 1
            light = np.asarray(image.convert("L"))
        assert light[:25].min() > 200
        assert light[35:].max() < 50


@pytest.mark.parametrize("kind", ["straight", "damaged", "several"])
def test_a_jpeg_that_nothing_turns_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    """Neither damaged EXIF data nor a second picture, as cameras write it, is a reason to decode and encode it."""
    exif = Image.Exif()
    exif[0x0112] = 1
    picture = Image.new("RGB", (60, 40), (10, 200, 90))
    if kind == "several":
        picture.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[picture])
    else:
        damaged = {"exif": b"Exif\0\0XX\0*\xff\xff\xff\xff", "dpi": (72, 72)}  # without it, Pillow forgives on opening
        picture.save(tmp_path / "a.jpg", **(damaged if kind == "damaged" else {"exif": exif}))
    found = open_corpus("tiny", tmp_path)
    assert found.manifest.converted == {}
    assert Path(found.image_paths[0]).read_bytes() == (tmp_path / "a.jpg").read_bytes()


def test_a_folder_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cat").mkdir()

    def refused(self: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refused)  # root, which CI may be, may read anything
    left_out = _sources.read(_sources.Found(tmp_path / "cat", "cat", "cat", "cat"))
    assert left_out == LeftOut("cat", "cannot be read: Permission denied")


def test_unreadable_files_are_named_counted_and_left_out(odd: Path) -> None:
    whole = (odd / "cat" / "rgb.jpg").read_bytes()
    (odd / "cat" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (odd / "cat" / "empty.png").write_bytes(b"")
    (odd / "cat" / "lies.jpg").write_text("this is text")
    (odd / "cat" / "gone.jpg").symlink_to(odd / "nowhere.jpg")
    said: list[str] = []
    found = open_corpus("tiny", odd, say=said.append)
    assert len(found.image_paths) == 10
    reasons = {each.path: each.reason for each in found.manifest.left_out}
    assert reasons.keys() == {"cat/cut.jpg", "cat/empty.png", "cat/lies.jpg", "cat/gone.jpg"}
    assert "truncated" in reasons["cat/cut.jpg"]
    assert "0 bytes" in reasons["cat/empty.png"]
    assert "not a JPEG or PNG" in reasons["cat/lies.jpg"]
    assert "links to a file that does not exist" in reasons["cat/gone.jpg"]
    assert any("4 of 14 files could not be read" in line for line in said)
    # Said again when the corpus is reused, and an error for those who want it.
    again: list[str] = []
    open_corpus("tiny", odd, say=again.append)
    assert any("left out cat/cut.jpg" in line for line in again)
    with pytest.raises(InputError, match=r"4 of 14 files.*--strict"):
        open_corpus("tiny", odd, strict=True)


def test_what_cannot_be_a_picture_is_left_out_and_nothing_hangs(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    (folder / "cat" / "deep").mkdir(parents=True)
    Image.new("RGB", (40, 40)).save(folder / "cat" / "deep" / "good.jpg")
    os.mkfifo(folder / "cat" / "pipe.jpg")
    Image.new("L", (66_000, 2)).save(folder / "cat" / "deep" / "long.png")
    (folder / "cat" / "deep" / "loop").symlink_to(folder / "cat")
    found = open_corpus("tiny", folder)
    reasons = {each.path: each.reason for each in found.manifest.left_out}
    assert len(found.image_paths) == 1
    assert reasons.keys() == {"cat/pipe.jpg", "cat/deep/long.png"}
    assert "not a regular file" in reasons["cat/pipe.jpg"]
    assert "do not fit into a JPEG" in reasons["cat/deep/long.png"]


def test_linked_folders_are_followed_once(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    Image.new("RGB", (40, 40)).save(kept / "a.jpg")
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "cat").symlink_to(kept)
    (folder / "dog").symlink_to(kept)
    assert open_corpus("tiny", folder).labels == ["cat"]


@pytest.mark.parametrize("name", ["cat/mixed", "all", "zoo/again"])
def test_a_link_to_a_label_takes_nothing_away_from_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "images"
    for place in ("cat/a.jpg", "dog/0.jpg", "dog/1.jpg", "zoo/b.jpg"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), (len(place), ord(place[0]), ord(place[-5]))).save(folder / place)
    (folder / name).symlink_to(folder / "dog")
    found = open_corpus("tiny", folder)
    assert found.labels == ["cat", "dog", "zoo"]
    assert [found.image_labels.count(each) for each in range(3)] == [1, 2, 1]


def test_what_two_processes_make_is_not_taken_from_under_the_first(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "made"
    monkeypatch.setattr(sys, "argv", ["", str(corpus.root), "int64", "0", str(root)])
    _encodings.main()
    (shard, *_) = sorted(root.glob("*.tfrecord*"))
    with shard.open("rb") as reading:
        _encodings.main()  # the other one has found nothing there when it began
        assert os.fstat(reading.fileno()).st_nlink == 1, "what is read is still there"
    shard.write_bytes(b"")
    _encodings.main()
    assert _encodings._whole(root), "what was left incomplete is made anew"


def test_a_changed_folder_is_another_corpus(odd: Path) -> None:
    first = open_corpus("tiny", odd)
    (odd / "cat" / "rgb.jpg").unlink()
    second = open_corpus("tiny", odd)
    assert first.root != second.root
    assert len(second.image_paths) == 9


def test_a_large_folder_is_thinned_evenly(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        for index in range(40):
            Image.new("RGB", (33, 33), (index, 0, 0)).save(tmp_path / label / f"{index}.png")
    found = open_corpus("tiny", tmp_path)
    assert len(found.image_paths) == 48
    assert found.image_labels.count(0) == found.image_labels.count(1) == 24


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(10, 4, [0, 2, 5, 7]), (3, 2, [0, 1]), (3, 3, [0, 1, 2]), (3, 9, [0, 1, 2]), (0, 9, [])],
)
def test_places_are_spread_evenly(count: int, most: int, places: list[int]) -> None:
    assert spread(count, most) == places


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "texts", "all bad"])
def test_a_folder_without_images_is_a_clear_error(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "images"
    expected = {
        "missing": "no such folder",
        "file": "not a folder",
        "empty": "no JPEG or PNG file; it is empty",
        "texts": r"it holds 3 other files, such as 0\.txt",
        "all bad": r"none of the 2 .* can be read; the first: 0\.jpg: not a JPEG",
    }[kind]
    if kind == "file":
        folder.write_text("x")
    elif kind != "missing":
        folder.mkdir()
    if kind == "texts":
        for index in range(3):
            (folder / f"{index}.txt").write_text("x")
    if kind == "all bad":
        for index in range(2):
            (folder / f"{index}.jpg").write_text("x")
    with pytest.raises(InputError, match=expected):
        open_corpus("tiny", folder)
    assert list(cache_root().glob(".loaders-building-*")) == []


@pytest.mark.parametrize("damage", ["flip", "delete", "manifest", "empty"])
def test_a_damaged_corpus_is_built_again_and_said_so(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
    root = tmp_path / corpus.root.name
    shutil.copytree(corpus.root, root)
    if damage == "flip":
        shard = root / "encoded-00002-of-00005.tfrecord"
        data = bytearray(shard.read_bytes())
        data[1000] ^= 1
        shard.write_bytes(data)
    elif damage == "delete":
        (root / "images" / "00003.jpg").unlink()
    elif damage == "manifest":
        (root / "manifest.json").write_text('{"key": "cut o')
    else:
        shutil.rmtree(root)
        root.mkdir()
    said: list[str] = []
    again = open_corpus("tiny", say=said.append)
    assert again.manifest == corpus.manifest
    assert len(said) == 1
    assert "damaged" in said[0]
    assert "building it again" in said[0]


def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")  # a read-only directory does not stop root, which CI may be
    monkeypatch.setenv("LOADERS_CACHE", str(blocked / "cache"))
    with pytest.raises(InputError, match=r"cannot write the corpus into .*LOADERS_CACHE"):
        open_corpus("tiny")


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root to mount a full disk")
def test_a_full_cache_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
        with pytest.raises(InputError, match=r"cannot write.*(No space|free space)"):
            open_corpus("tiny")
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_builder_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
    names = ("building-2024", "building-12-photos", ".loaders-building-99999999")
    own = [tmp_path / name for name in names]  # of whoever named the place
    for each in own:
        each.mkdir()
    builder = subprocess.Popen(
        [sys.executable, "-c", "from loaders._corpus import open_corpus; open_corpus('small')"],
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".loaders-building-*/images/*.jpg")):
        assert time.monotonic() < deadline, "the builder did not begin"
        time.sleep(0.01)
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    assert len(list(tmp_path.iterdir())) == 1 + len(own)
    built = open_corpus("tiny")
    assert set(tmp_path.iterdir()) == {built.root, *own}


def test_what_another_machine_builds_in_the_same_cache_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines and containers may share a directory, and have process ids of their own."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = []
    for node in (platform.node(), "another"):
        _durable._where.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(platform, "node", lambda node=node: node)
            patched.setattr(os, "getpid", lambda: ended.pid)
            names.append(f"{_durable.owned(_durable.BUILDING)}x")
    _durable._where.cache_clear()
    for name in names:
        (tmp_path / name).mkdir()
    with _durable.temporary_beside(tmp_path / "photographs") as building:
        assert {each.name for each in tmp_path.iterdir()} == {names[1], building.name}


def test_a_directory_that_cannot_be_synced_costs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems refuse it; a file that cannot be is another matter."""
    sync, refused = os.fsync, list[int]()

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode) or refused:
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    _durable.write(tmp_path / "kept", "text")
    assert (tmp_path / "kept").read_text() == "text"
    refused.append(1)
    with pytest.raises(OSError, match="Invalid argument"):
        _durable.write(tmp_path / "kept", "another")
    assert (tmp_path / "kept").read_text() == "text"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes any bytes as a file's name")
def test_names_of_any_bytes_become_labels_and_lines_that_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    names = [
        b"x" * 251 + b".jpg",
        b" two words .jpg",
        b"<b>&\"'.jpg",
        b"a\nb.jpg",
        b"caf\xe9/1.jpg",
        b"x.jpg/\x1b[2J.jpg",
    ]
    for name in names:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            Image.new("RGB", (40, 40)).save(file, "JPEG")
    for name in (b"bad\xff.jpg", b"bad\n.png"):
        (folder / os.fsdecode(name)).touch()
    said: list[str] = []
    found = open_corpus("tiny", folder, say=said.append)
    assert found.labels == ["caf\\udce9", "unlabelled", "x.jpg"]
    assert len(found.image_paths) == len(names)
    assert {each.path for each in found.manifest.left_out} == {"bad\\udcff.jpg", "bad\\n.png"}
    assert all(line.isprintable() for line in said)


def test_a_strip_is_cut_before_it_is_enlarged(tmp_path: Path) -> None:
    Image.new("RGB", (65_000, 1), (200, 100, 50)).save(tmp_path / "wide.jpg", quality=95)
    Image.new("RGB", (1, 5000)).save(tmp_path / "tall.png")
    found = open_corpus("tiny", tmp_path)
    assert [(image.width, image.height) for image in found.manifest.images] == [(1, 5000), (65_000, 1)]
    assert found.photographs().shape == (2, 480, 640, 3)
    assert np.abs(found.photographs()[1].astype(int) - (200, 100, 50)).max() < 10


@pytest.mark.parametrize(
    ("name", "said"),
    [("x" * 300, "name too long"), ("loop", "levels of symbolic links"), ("a\0b", "null"), ("a\nb", r"a\\nb: no such")],
)
def test_a_folder_that_cannot_be_one_is_a_clear_error_on_one_line(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match=f"(?i){said}") as raised:
        open_corpus("tiny", tmp_path / name)
    assert str(raised.value).isprintable()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_left_out_with_the_reason(tmp_path: Path) -> None:
    for name in ("good.jpg", "secret.jpg"):
        Image.new("RGB", (40, 40)).save(tmp_path / name)
    (tmp_path / "secret.jpg").chmod(0)
    (left_out,) = open_corpus("tiny", tmp_path).manifest.left_out
    assert (left_out.path, left_out.reason) == ("secret.jpg", "cannot be read: Permission denied")


def _encoded(kind: str, mode: str) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((30, 20), 60).convert(mode).save(file, kind)
    return file.getvalue()


WHOLE = [_encoded(*each) for each in (("JPEG", "RGB"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("PNG", "LA"))]


@given(
    whole=st.sampled_from(WHOLE),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=4)), max_size=5),
    end=st.none() | st.integers(0, 2000),
)
def test_a_damaged_file_is_a_picture_or_left_out_with_the_reason(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, changes: list[tuple[int, bytes]], end: int | None
) -> None:
    data = bytearray(whole)
    for place, instead in changes:
        data[place % len(data) : place % len(data) + len(instead)] = instead
    path = tmp_path_factory.mktemp("images") / "a.jpg"
    path.write_bytes(data[:end])
    read = _sources.read(_sources.Found(path, "a.jpg", "label", ""))
    assert isinstance(read, _sources.Picture) or read.reason
