from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loaders import _contract, _registry, variant
from loaders._errors import InputError
from loaders._registry import imports_of
from tests.conftest import ROOT

pytestmark = pytest.mark.python

REQUIRED = {
    "calibration": {
        *("nothing", "wait_100ms", "wait_500ms", "wait_first", "work_200ms"),
        *("array_1_kept", "array_16_freed", "array_256_kept", "array_256_freed", "freed_and_held_64"),
        *("steady", "warm_up", "leak_objects", "leak_malloc", "child_process", "two_bodies", "file_of_1_mib"),
    },
    "selection": {"list_to_list", "numpy_to_numpy", "numpy_to_list", "mixed_tolist", "mixed_copy"},
    "resize": {
        "skimage_resize_astype",
        "skimage_resize_ubyte",
        "skimage_rescale_ubyte",
        "opencv_linear",
        "opencv_area",
    },
    "record_format": {"separate_files", "encoded_bytes", "serialize_tensor", "raw_pixels"},
    "read_order": {
        "range_indexed",
        "sequential",
        "parallel_reads",
        "parallel_reads_100",
        "interleave",
        "interleave_arena_1",
        "interleave_arena_2",
        "interleave_mmap_threshold",
        "mixed_parallel_reads",
        "mixed_interleave",
    },
    "python_map": {
        f"{wrapper}_{calls}"
        for wrapper in ("py_function", "numpy_function", "native")
        for calls in ("1", "2", "4", "8", "autotune")
    },
    "caching": {"no_cache", "cache_after_decode", "cache_paths", "cache_encoded", "cache_to_file"},
    "batching": {
        "load_all",
        "load_all_from_tensor_slices",
        "path_generator",
        "path_generator_from_generator",
        "keras_pydataset_1",
        "keras_pydataset_4",
        "keras_pydataset_processes",
        "tf1_queue",
        "tfdata_paths_2",
        "tfdata_paths_autotune",
        "memory_map",
    },
}
"""Ids are permanent: results, write-ups and links know them."""


@pytest.mark.parametrize("question", sorted(REQUIRED))
def test_published_ids_are_there(question: str) -> None:
    assert REQUIRED[question] <= set(_registry.variants(question))


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_each_question_has_one_baseline_and_explains_itself(question: str) -> None:
    asked = _registry.find_question(question)
    strategies = _registry.variants(question).values()
    assert sum(each.baseline for each in strategies) == 1
    assert asked.title
    for heading in ("*Asked.*", "*Held fixed.*", "*Not measured.*", "*Invisible when*"):
        assert heading in asked.doc, f"loaders/{question}.py does not say what is {heading}"


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_labels_are_unique_and_matches_exist(question: str) -> None:
    strategies = _registry.variants(question)
    labels = [each.label for each in strategies.values()]
    assert len(set(labels)) == len(labels)
    for each in strategies.values():
        assert each.matches is None or each.matches in strategies


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_slices_name_what_exists(question: str) -> None:
    asked, strategies = _registry.find_question(question), _registry.variants(question)
    assert _registry.baseline(question).name in _registry.quick(question)
    for each in strategies.values():
        assert all(set(values) <= set(asked.axes[axis]) for axis, values in each.only.items())
        assert any(each.runs_in(case) for case in asked.cases)
        assert each.tier in _contract.TIERS
    for case in asked.cases:
        assert _registry.baseline(question).runs_in(case)


@pytest.mark.parametrize("question", sorted(_registry.questions()))
def test_what_sets_variables_runs_with_every_amount_of_data_or_with_none(question: str) -> None:
    """A case with such a strategy starts fresh, and a law of memory needs rounds whose amounts all start alike."""
    asked = _registry.find_question(question)
    for each in _registry.variants(question).values():
        if each.variables or each.preload:
            for case in asked.cases:
                amounts = [
                    other for other in asked.cases if {**other, asked.size_axis: ""} == {**case, asked.size_axis: ""}
                ]
                assert len({each.runs_in(other) for other in amounts}) == 1


def test_listing_loads_nothing_heavy() -> None:
    code = (
        "import sys; from loaders import _registry\n"
        "for name in _registry.questions(): _registry.variants(name)\n"
        "print(*sorted({'tensorflow', 'cv2', 'numpy', 'skimage', 'scipy', 'PIL', 'asv'} & set(sys.modules)))"
    )
    listed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.strip() == ""


@pytest.mark.usefixtures("forget")
def test_declaring_returns_the_function_and_registers_it() -> None:
    def planted(job: Any) -> Any:
        """A label.

        More.
        """
        return job

    assert variant(question="selection", tier="same purpose")(planted) is planted
    found = _registry.find_variant("selection", "planted")
    assert (found.label, found.tier, found.baseline) == ("A label.", "same purpose", False)
    assert list(_registry.variants("selection"))[-1] == "planted"


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    ("options", "doc", "message"),
    [
        ({}, "A label.", "which question"),
        ({"question": "selection", "tier": "best"}, "A label.", "none of identical"),
        ({"question": "selection", "engine": "steam"}, "A label.", "engine 'steam' is none of threads"),
        ({"question": "selection"}, None, "has no docstring"),
    ],
)
def test_a_bad_declaration_says_what_is_wrong(options: dict[str, Any], doc: str | None, message: str) -> None:
    def planted(job: Any) -> Any:
        return job

    planted.__doc__ = doc
    with pytest.raises(InputError, match=message):
        variant(**options)(planted)


@pytest.mark.usefixtures("forget")
def test_a_name_can_be_taken_once() -> None:
    def numpy_to_numpy(job: Any) -> Any:
        """A label."""
        return job

    with pytest.raises(InputError, match="already has a strategy named numpy_to_numpy"):
        variant(question="selection")(numpy_to_numpy)


def test_a_sweep_has_its_place_at_the_end_of_its_name_or_where_that_says_so() -> None:
    known = _registry.variants("service")
    for name in ("service_4", "service_4_off", "service_4_file_uncompressed"):
        assert (known[name].name, known[name].at) == (name, "4")
    assert known["service_4_off"].label.startswith("Workers: 4")


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown question 'selektion'; did you mean 'selection'"):
        _registry.find_question("selektion")
    with pytest.raises(InputError, match="did you mean 'numpy_to_list'"):
        _registry.find_variant("selection", "numpy_tolist")


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:\n", r"fails to import \(line 1\): SyntaxError"),
        ("x = 1\nimport no_such_module\n", r"fails to import \(line 2\): ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "fails to import.*SystemExit: 3"),
        ("x = 1\n", "declares no @variant"),
        (
            'from loaders import variant\n@variant(question="selektion")\ndef f(job):\n    "x"\n',
            "f: unknown question 'selektion'; did you mean 'selection'",
        ),
        (
            'from loaders import variant\n@variant(question="selection", baseline=True)\ndef f(job):\n    "x"\n',
            "has a baseline already",
        ),
        (
            'from loaders import variant\n@variant(question="selection", only={"of": ("1",)})\ndef f(job):\n    "x"\n',
            r"f: only=\{'of': \('1',\)\}: selection has no of",
        ),
        (
            'from loaders import variant\n@variant(question="resize", only={"scale": ("7",)})\ndef f(job):\n    "x"\n',
            "scale of resize is one of ",
        ),
    ],
)
def test_a_bad_file_of_strategies_says_where_and_why(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        _registry.load_files([file])
    assert "mine.py" in str(caught.value)


@pytest.mark.usefixtures("forget")
def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    """Code is looked up by a module's name: that of one would be shown for the other."""
    files = []
    for number in (1, 2):
        file = tmp_path / str(number) / "mine.py"
        file.parent.mkdir()
        text = f"class Own{number}:\n    at = {number}\n"
        use = f'@variant(question="selection")\ndef planted_{number}(job):\n    "x"\n    return [Own{number}.at]\n'
        file.write_text(f"from loaders import variant\n{text}{use}")
        files.append(file)
    _registry.load_files(files)
    for number in (1, 2):
        assert f"at = {number}" in _registry.find_variant("selection", f"planted_{number}").source


def test_a_missing_file_of_strategies_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: no such file"):
        _registry.load_files([tmp_path / "nowhere.py"])


def test_outside_files_join_option_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADERS_WITH", "b.py:a.py".replace(":", __import__("os").pathsep))
    assert _registry.outside_files(["a.py"]) == [str(tmp_path / "a.py"), str(tmp_path / "b.py")]


def _helper() -> None:
    from xml import dom

    assert dom


def _strategy() -> Any:
    import json.decoder

    import numpy as np

    def inner() -> Any:
        from email.message import Message

        return Message, np.linalg.norm, json.encoder

    _helper()
    return inner, np.random.default_rng


def test_imports_are_found_in_nested_functions_and_helpers() -> None:
    assert imports_of(_strategy) == {
        "json.decoder": set(),
        "json": {"encoder"},
        "numpy": {"linalg", "random"},
        "email.message": {"Message"},
        "xml": {"dom"},
    }


def _several_names() -> Any:
    import os.path as paths
    import xml.dom.minidom as minidom
    from email import charset, encoders
    from email import message as text

    return charset, encoders, text, paths.join, minidom.parse


def test_imports_of_several_names_and_of_modules_under_another() -> None:
    assert imports_of(_several_names) == {
        "os.path": {"join"},
        "xml.dom.minidom": {"parse"},
        "email": {"charset", "encoders", "message"},
    }


def test_code_that_modules_of_a_question_share_belongs_to_the_strategy() -> None:
    strategy = _registry.find_variant("batching", "opencv_pool_batches")
    assert [f"def {name}(" in strategy.source for name in ("opencv_pool_batches", "_batch", "_load", "_parts")] == [
        True
    ] * 4
    assert "def check_drawn_from(" not in strategy.source
    assert "def _pooled(" not in strategy.source
    assert strategy.imports == ["concurrent.futures", "cv2", "numpy", "os"]


def test_strategies_of_a_package_are_in_the_order_of_its_modules() -> None:
    modules = [each.build.__module__ for each in _registry.variants("batching").values()]
    order = [f"loaders.questions.batching.{name}" for name in _registry.find_question("batching").modules]
    assert list(dict.fromkeys(modules))[: len(order)] == order


@pytest.mark.parametrize(
    ("strategy", "engine"),
    [
        ("load_all", ""),
        ("load_all_from_tensor_slices", "tf.data"),  # its declaration says so, not its module
        ("opencv_pool", "threads"),
        ("keras_pydataset_1", "keras"),
        ("tf1_queue", "tensorflow 1"),
        ("tfdata_paths_2", "tf.data"),
    ],
)
def test_an_engine_is_that_of_the_module_unless_the_declaration_says_another(strategy: str, engine: str) -> None:
    assert _registry.find_variant("batching", strategy).engine == engine


def test_default_case_comes_first() -> None:
    asked = _registry.find_question("resize")
    assert asked.cases[0] == asked.default_case == {"scale": "224x224"}
    assert len(asked.cases) == 4
    assert _registry.find_question("read_order").cases[0] == {"record": "jpeg", "data": "x16"}


def test_laws_are_borrowed_from_a_question_with_several_amounts_and_the_same_loaders() -> None:
    known = _registry.questions()
    for name, question in known.items():
        if question.laws_from:
            assert not question.size_axis
            assert known[question.laws_from].size_axis
            assert _registry.variants(name).keys() <= _registry.variants(question.laws_from).keys()
