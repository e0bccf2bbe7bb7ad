from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from loaders import _registry
from loaders._trial import Trial, prepare
from tests.conftest import ROOT, Strategy


@pytest.mark.python
@pytest.mark.parametrize(
    "line", ["from email import charset, encoders", "import xml.dom.minidom as m", "import os.path as p"]
)
def test_every_form_of_import_is_understood(strategy: Strategy, line: str) -> None:
    record = strategy(f"{line}\nreturn right")
    assert record.status == "ok", record.message


def test_a_missing_module_fails_by_its_name(strategy: Strategy) -> None:
    record = strategy("import no_such_package\nreturn right")
    assert (record.status, record.message) == ("failed", "No module named 'no_such_package'")
    assert strategy("try:\n    import no_such_package\nexcept ImportError:\n    pass\nreturn right").status == "ok"


def test_a_missing_package_that_is_declared_optional_is_skipped_in_words(strategy: Strategy) -> None:
    record = strategy("import no_such_package", declared=', optional=("no_such_package", "os")')
    assert (record.status, record.message) == ("skipped", "no_such_package is not installed: run `make engines`")


@pytest.mark.parametrize(
    ("question", "turns", "asked"),
    [
        ("read_order", "", (3, 1)),
        ("read_order", "turns", (prepare.TURN_PASSES, 1)),
        ("known_issues", "turns", (3, 1)),
        ("batching", "turns", (1, 3)),
    ],
)
def test_where_data_is_repeated_a_turn_asks_for_many_epochs_at_once(
    question: str, turns: str, asked: tuple[int, int]
) -> None:
    """Of each pass the first epoch does not count."""
    trial = Trial(question, "any", {}, "", 1, 3, turns=turns)
    assert prepare.passes_and_epochs(trial, _registry.find_question(question)) == asked
    more = msgspec.structs.replace(trial, epochs=50)
    assert max(prepare.passes_and_epochs(more, _registry.find_question(question))) == 50


def test_a_server_has_imported_what_every_trial_does_and_no_more() -> None:
    ready = "import sys\nfrom loaders._trial import server\nprint(server._import({}), *sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ready], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert modules >= {"loaders._trial.assemble", "loaders._trial.convert", "loaders.questions.batching.tfdata"}
    assert not modules & {"tensorflow", "cv2", "skimage", "scipy", "threads:"}


@pytest.mark.slow
def test_operations_that_tensorflow_imports_late_are_imported_beforehand() -> None:
    """Without it the first run of nearly every strategy would be void."""
    script = """
import sys
from loaders._trial.prepare import import_ahead
def strategy(job):
    import tensorflow as tf
threads = import_ahead(strategy)
before = set(sys.modules)
import tensorflow as tf
files = tf.data.Dataset.range(4)
mixed = tf.data.Dataset.sample_from_datasets([files.interleave(lambda each: tf.data.Dataset.range(each)), files])
list(mixed.cache().shuffle(2).batch(2).prefetch(1).take(1))
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not [each for each in done.stdout.split() if "tensorflow.python.data.ops" in each], done.stdout
