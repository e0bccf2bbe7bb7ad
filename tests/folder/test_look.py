"""What is seen in a folder."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest
from PIL import Image

from loaders._errors import InputError
from loaders._folder import question, words
from loaders._folder.look import HELD, _opened, look
from loaders._folder.written.files import files_of, labels_of
from tests.folder import made


def test_an_odd_folder_is_told_as_it_is(tmp_path: Path) -> None:
    made.folder(tmp_path, 6, labels=3)
    made.image(tmp_path / "top.png", 50, 100, 200)
    made.image(tmp_path / "label0" / "deeper" / "more.PNG", 51)
    (tmp_path / "label1" / "broken.jpg").write_bytes(b"\xff\xd8\xff none")
    (tmp_path / "label1" / "empty.png").write_bytes(b"")
    (tmp_path / "label1" / "moving.gif").write_bytes(b"GIF89a")
    (tmp_path / "label2" / "new.webp").write_bytes(b"RIFF")
    (tmp_path / ".hidden").mkdir()
    made.image(tmp_path / ".hidden" / "no.png", 52)
    turned = Image.new("RGB", (30, 20))
    exif = turned.getexif()
    exif[274] = 6
    turned.save(tmp_path / "label2" / "turned.jpg", exif=exif)

    seen, files = look(tmp_path, 16, 16)
    assert (seen.images, seen.labels) == (11, {"": 1, "label0": 3, "label1": 4, "label2": 3})
    assert seen.formats == {"png": 9, "jpg": 2}
    assert seen.others == {".gif": 1, ".webp": 1}
    assert sorted(seen.broken) == ["label1/broken.jpg", "label1/empty.png"]
    assert (seen.turned, seen.median, seen.largest) == (1, (32, 24), (200, 100))
    assert len(files) == 9
    assert {Path(path).name: label for path, label in files}["top.png"] == 0
    assert {label for _, label in files} == {0, 1, 2, 3}
    said = " ".join(words.seen(seen))
    for part in (
        "11 images (9 png, 2 jpg), 4 labels",
        "1 of the images lie",
        "2 cannot be read",
        "1 are turned",
        ".gif",
    ):
        assert part in said


@pytest.mark.parametrize(("orientation", "turned"), [(1, 0), (2, 1), (8, 1), (9, 0), (None, 0)])
def test_only_what_exif_data_turn_is_said_to_be_turned(tmp_path: Path, orientation: int | None, turned: int) -> None:
    """``None`` is damaged EXIF data, with which a picture still has a size."""
    exif: Image.Exif | bytes = b"Exif\0\0XX\0*\xff\xff\xff\xff"
    if orientation is not None:
        exif = Image.Exif()
        exif[274] = orientation
    (tmp_path / "a").mkdir()
    Image.new("RGB", (30, 20)).save(tmp_path / "a" / "a.jpg", exif=exif, dpi=(72, 72))
    seen, _ = look(tmp_path, 16, 16)
    assert (seen.turned, seen.opened, seen.median) == (turned, 1, (30, 20))


def test_labels_of_another_folder_keep_their_numbers(tmp_path: Path) -> None:
    """A folder to validate with may lack images of a label: numbered by itself, all later ones would be others."""
    made.folder(tmp_path / "train", 3, labels=3)
    made.folder(tmp_path / "val", 3, labels=3)
    (tmp_path / "val" / "label1" / "0001.png").unlink()
    names = labels_of(tmp_path / "train")
    assert names == ["label0", "label1", "label2"]
    assert [label for _, label in files_of(tmp_path / "val")] == [0, 1]
    assert [label for _, label in files_of(tmp_path / "val", names)] == [0, 2]
    assert files_of(tmp_path / "train", names) == files_of(tmp_path / "train")
    made.image(tmp_path / "val" / "other" / "more.png", 4)
    with pytest.raises(ValueError, match="not among those given: other"):
        files_of(tmp_path / "val", names)


def test_the_largest_images_are_weighed_one_for_each_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.folder(tmp_path, 4)
    made.image(tmp_path / "large.png", 9, 100, 200)
    for cores in (1, 2):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert look(tmp_path, 16, 16)[0].heaviest == [HELD * 100 * 200, HELD * 24 * 32][:cores]


def test_what_opencv_refuses_to_decode_takes_no_memory(tmp_path: Path) -> None:
    """Its pixels, forty thousand a side, would count as the most that is ever decoded."""
    made.folder(tmp_path, 4)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 40000, 40000, 8, 2, 0, 0, 0)
    whole = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"0")), chunk(b"IEND", b"")]
    (tmp_path / "label0" / "vast.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(whole))
    found, _ = look(tmp_path, 16, 16)
    assert [Path(each).name for each in found.broken] == ["vast.png"]
    assert set(found.heaviest) == {HELD * 24 * 32}
    assert found.largest == (32, 24)


def test_names_that_are_not_utf_8_are_counted_and_not_measured(tmp_path: Path) -> None:
    made.folder(tmp_path, 4)
    odd = tmp_path / "label0" / os.fsdecode(b"caf\xe9.png")
    try:
        made.image(tmp_path / "plain.png", 9).rename(odd)
    except OSError:
        pytest.skip("this system's names are UTF-8")
    seen, files = look(tmp_path, 16, 16)
    assert (seen.images, seen.odd_names, len(files)) == (4, 1, 4)
    assert "not UTF-8: 1 more" in " ".join(words.seen(seen))
    msgspec.json.encode(files)
    assert len(files_of(tmp_path)) == 5, "a loader reads it"
    shutil.rmtree(tmp_path / "label1")
    for path, _ in files:
        Path(path).unlink(missing_ok=True)
    with pytest.raises(InputError, match="1 have names that are not UTF-8"):
        look(tmp_path, 16, 16)


def test_the_suffixes_of_other_files_can_be_printed_whatever_they_are(tmp_path: Path) -> None:
    made.folder(tmp_path, 2)
    try:
        (tmp_path / os.fsdecode(b"2. Ausfl\xfcge")).mkdir()
        (tmp_path / os.fsdecode(b"notes.\xfc")).write_text("mine")
    except OSError:
        pytest.skip("this system's names are UTF-8")
    seen, _ = look(tmp_path, 16, 16)
    assert list(seen.others.values()) == [1]
    msgspec.json.encode(seen)


def test_an_image_that_is_cut_off_is_broken_for_the_check_as_for_the_loaders(tmp_path: Path) -> None:
    """``cv2.imread`` returns a picture of it, and ``cv2.imdecode``, by which the loaders read, none."""
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3)).astype(np.uint8)
    _, encoded = cv2.imencode(".jpg", noise)
    whole, cut = tmp_path / "a.jpg", tmp_path / "b.jpg"
    whole.write_bytes(encoded.tobytes())
    cut.write_bytes(encoded.tobytes()[:-200])
    seen, files = look(tmp_path, 16, 16)
    assert (seen.broken, [Path(path) for path, _ in files]) == (["b.jpg"], [whole])
    assert [question._decoded(str(each), 16, 16) is None for each in (whole, cut)] == [False, True]


def test_links_are_followed_but_not_in_circles_and_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A label that is missing would give its number to the next one."""
    made.folder(tmp_path / "elsewhere", 2, labels=1)
    made.folder(tmp_path / "photos", 2, labels=1)
    (tmp_path / "photos" / "dog").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "photos" / "label0" / "back").symlink_to(tmp_path / "photos", target_is_directory=True)
    (tmp_path / "photos" / "again").symlink_to(tmp_path / "photos" / "label0", target_is_directory=True)
    found = files_of(tmp_path / "photos")
    assert [label for _, label in found] == [0, 0, 1, 1, 2, 2]
    assert [Path(path).relative_to(tmp_path / "photos").parts[0] for path, _ in found[::2]] == [
        "again",
        "dog",
        "label0",
    ]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        files_of(tmp_path / "nowhere")


def test_labels_that_are_linked_to_each_other_come_once_more_and_no_more(tmp_path: Path) -> None:
    made.folder(tmp_path / "photos", 4, labels=2)
    for one, other in (("label0", "label1"), ("label1", "label0")):
        (tmp_path / "photos" / one / "more").symlink_to(tmp_path / "photos" / other, target_is_directory=True)
    assert [label for _, label in files_of(tmp_path / "photos")] == [0] * 4 + [1] * 4
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "back").symlink_to(tmp_path / "photos", target_is_directory=True)
    (tmp_path / "photos" / "label0" / "out").symlink_to(tmp_path / "outside", target_is_directory=True)
    assert len(files_of(tmp_path / "photos")) == 8


def test_two_images_with_one_label_are_a_folder(tmp_path: Path) -> None:
    made.folder(tmp_path, 2, labels=1)
    seen, files = look(tmp_path, 16, 16)
    assert (seen.images, len(seen.labels), len(files)) == (2, 1, 2)
    assert "one label" in " ".join(words.seen(seen))


def test_only_some_of_many_images_are_opened_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders._folder.look.MOST_OPENED", 5)
    made.folder(tmp_path, 12)
    seen, files = look(tmp_path, 16, 16)
    assert (seen.images, seen.opened, seen.decoded, len(files)) == (12, 5, 5, 12)
    said = " ".join(words.seen(seen))
    assert "5 of them were opened" in said
    assert "5 images were decoded" in said


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda root: root / "none", "no such folder"),
        (lambda root: made.image(root / "a.png", 1), "not a folder"),
        (lambda root: root, "holds no images"),
        (lambda root: (root / "a.gif").write_bytes(b"GIF") and root, "there are 1 .gif"),
        (lambda root: (root / "a.png").write_bytes(b"none") and root, "none of its 1 images can be read"),
    ],
)
def test_what_is_no_folder_of_images_is_refused_in_words(tmp_path: Path, make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        look(make(tmp_path), 16, 16)


def test_looking_at_the_sizes_of_images_decodes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow decodes a whole PNG when it is asked for its EXIF."""
    paths = [tmp_path / "one.png", tmp_path / "other.jpg"]
    for index, path in enumerate(paths):
        made.image(path, index, 10, 20)
    decoded: list[object] = []
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded.append)
    sizes, _ = _opened(list(map(str, paths)))
    assert (len(sizes), decoded) == (2, [])


DECODED = """
import sys
import cv2, numpy as np
def most():
    return 1024 * int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
small, large = (np.fromfile(path, np.uint8) for path in sys.argv[1:])
cv2.imdecode(small, cv2.IMREAD_COLOR)
before = most()
decoded = cv2.imdecode(large, cv2.IMREAD_COLOR)
print((most() - before) / (decoded.shape[0] * decoded.shape[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of one program")
@pytest.mark.parametrize("orientation", [1, 6])
def test_opencv_holds_two_of_an_image_while_it_decodes_it(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    paths = [str(tmp_path / name) for name in ("small.jpg", "large.jpg")]
    for path, size in zip(paths, [(30, 20), (4000, 3000)], strict=True):
        Image.new("RGB", size).save(path, exif=exif)
    said = subprocess.run([sys.executable, "-c", DECODED, *paths], capture_output=True, text=True, check=True).stdout
    assert float(said) == pytest.approx(HELD, rel=0.1)
