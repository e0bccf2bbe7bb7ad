from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loaders._check.touched import DEPENDENCIES, edited, touched

pytestmark = pytest.mark.python

QUESTION = '''"""A question."""
from loaders import Job, Question, variant

SIDE = 3


def _prepare(corpus, case, seed):
    return SIDE


QUESTION = Question(prepare=_prepare)
LIMIT = 5


@variant
def plain(job):
    """The plain one."""
    return _read(job)  # a comment


@variant
def clever(job):
    return LIMIT


@variant(sweep={1: {}, "AUTOTUNE": {}})
def swept(job, at):
    return at


def _read(job):
    return job
'''
SOURCES = {
    "loaders/__init__.py": "",
    "loaders/__main__.py": "import loaders._compare\n",
    "loaders/_compare.py": "from loaders._trial import watch\n",
    "loaders/_trial/__init__.py": "",
    "loaders/_trial/watch.py": "from loaders._trial.memory import peak\n",
    "loaders/_trial/child.py": "import loaders._registry\n",
    "loaders/_trial/memory.py": "def peak():\n    return 1\n",
    "loaders/_registry/__init__.py": "from loaders import _errors\n",
    "loaders/_errors.py": "x = 1\n",
    "loaders/questions/question.py": QUESTION,
    "loaders/questions/other.py": QUESTION,
    DEPENDENCIES: "['numpy']",
}
EVERY = {"plain", "clever", "swept_1", "swept_autotune"}
STRATEGIES = dict.fromkeys(("question", "other"), EVERY)


PACKAGED = {
    "loaders/questions/packaged/__init__.py": QUESTION.partition("@variant")[0] + "def _read(job):\n    return job\n",
    "loaders/questions/packaged/one.py": "from loaders.questions.packaged import _read\n\n\n"
    "@variant\ndef plain(job):\n    return _read(job)\n",
    "loaders/questions/packaged/two.py": "from loaders.questions.packaged import LIMIT\n\n\n"
    "@variant\ndef clever(job):\n    return LIMIT\n",
}


BORROWING = """from loaders.questions.packaged import one

QUESTION = 1


@variant
def own(job):
    return 1


also("borrowing", one.plain)
"""


def _changed(path: str, old: str, new: str) -> dict[str, set[str]]:
    assert old in SOURCES[path]
    after = {**SOURCES, path: SOURCES[path].replace(old, new)}
    there, back = touched(SOURCES, after, STRATEGIES), touched(after, SOURCES, STRATEGIES)
    assert there == back
    return there


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another"),
        ("The plain one.", "Another docstring."),
        ('"""A question."""', '"""A better question."""'),
        ("return _read(job)", "return _read( job )"),
        ("SIDE = 3\n", "SIDE = 3\n\n\n"),
    ],
)
def test_what_runs_nothing_touches_nothing(old: str, new: str) -> None:
    assert _changed("loaders/questions/question.py", old, new) == {}


@pytest.mark.parametrize("name", ["server", "forks"])
def test_how_trials_are_forked_touches_all(name: str) -> None:
    after = {**SOURCES, f"loaders/_trial/{name}.py": "y = 1\n"}
    assert touched(SOURCES, after, STRATEGIES) == STRATEGIES


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("return LIMIT", "return LIMIT + 1", {"clever"}),
        ("return at", "return [at]", {"swept_1", "swept_autotune"}),
        ("LIMIT = 5", "LIMIT = 6", {"clever"}),
        ("    return job\n", "    return [job]\n", {"plain"}),
        ("SIDE = 3", "SIDE = 4", EVERY),
        ("return SIDE", "return 2 * SIDE", EVERY),
        ("from loaders import Job", "import os\nfrom loaders import Job", EVERY),
        ("@variant\ndef clever", "@variant(variables={'A': '1'})\ndef clever", {"clever"}),
    ],
)
def test_a_change_touches_what_reaches_it(old: str, new: str, names: set[str]) -> None:
    assert _changed("loaders/questions/question.py", old, new) == {"question": names}


@pytest.mark.parametrize(
    ("module", "old", "new", "names"),
    [
        ("one", "return _read", "return 2 * _read", {"plain"}),
        ("two", "from", "import os\nfrom", {"clever"}),
        ("__init__", "return job", "return [job]", {"plain"}),
        ("__init__", "LIMIT = 5", "LIMIT = 6", {"clever"}),
        ("__init__", "return SIDE", "return 2 * SIDE", {"plain", "clever"}),
        ("__init__", "from loaders", "import os\nfrom loaders", {"plain", "clever"}),
    ],
)
def test_a_change_in_a_package_touches_what_reaches_it(module: str, old: str, new: str, names: set[str]) -> None:
    before = {**SOURCES, **PACKAGED}
    path = f"loaders/questions/packaged/{module}.py"
    assert old in before[path]
    after = {**before, path: before[path].replace(old, new, 1)}
    strategies = {"packaged": {"plain", "clever"}, **STRATEGIES}
    assert touched(before, after, strategies) == touched(after, before, strategies) == {"packaged": names}


def test_a_new_module_of_a_package_touches_no_strategy_of_the_others() -> None:
    before = {**SOURCES, **PACKAGED}
    after = {
        **before,
        "loaders/questions/packaged/three.py": "import os\n\n\n@variant\ndef new(job):\n    return job\n",
    }
    assert touched(before, after, {"packaged": {"plain", "clever"}}) == {}


@pytest.mark.parametrize(
    ("module", "old", "new", "names"),
    [
        ("one", "return _read", "return 2 * _read", {"own", "plain"}),
        ("__init__", "return job", "return [job]", {"own", "plain"}),
        ("one", "import _read", "import _read  # a comment", set()),
        ("two", "return LIMIT", "return 2 * LIMIT", set()),
    ],
)
def test_a_change_in_what_is_taken_from_another_question_touches_all(
    module: str, old: str, new: str, names: set[str]
) -> None:
    before = {**SOURCES, **PACKAGED, "loaders/questions/borrowing.py": BORROWING}
    path = f"loaders/questions/packaged/{module}.py"
    assert old in before[path]
    after = {**before, path: before[path].replace(old, new, 1)}
    strategies = {"borrowing": {"own", "plain"}}
    expected = {"borrowing": names} if names else {}
    assert touched(before, after, strategies) == touched(after, before, strategies) == expected
    if module == "one" and names:
        assert edited(before, after, strategies) == {"borrowing": {"plain"}}


def test_what_was_edited_is_told_from_what_all_of_a_question_reach() -> None:
    path = "loaders/questions/question.py"
    text = SOURCES[path].replace("SIDE = 3", "SIDE = 4").replace("return LIMIT", "return 2 * LIMIT")
    assert edited(SOURCES, {**SOURCES, path: text}, STRATEGIES) == {"question": {"clever"}, "other": set()}


def test_a_strategy_that_no_function_declares_is_touched_by_any_change_of_its_question() -> None:
    after = {path: text.replace("LIMIT = 5", "LIMIT = 6") for path, text in SOURCES.items()}
    assert touched(SOURCES, after, {"question": {"made", "plain"}}) == {"question": {"made"}}


@pytest.mark.parametrize("path", ["loaders/_trial/memory.py", "loaders/_trial/watch.py", "loaders/_errors.py"])
def test_what_every_trial_goes_through_touches_all(path: str) -> None:
    after = {**SOURCES, path: SOURCES[path] + "y = 2\n"}
    assert touched(SOURCES, after, STRATEGIES) == STRATEGIES
    assert touched(SOURCES, {**SOURCES, path: SOURCES[path] + "# y\n"}, STRATEGIES) == {}


def test_dependencies_touch_all_and_what_no_trial_imports_nothing() -> None:
    assert touched(SOURCES, {**SOURCES, DEPENDENCIES: "['numpy>=3']"}, STRATEGIES) == STRATEGIES
    for path in ("loaders/_compare.py", "loaders/__main__.py"):
        assert touched(SOURCES, {**SOURCES, path: "z = 3\n"}, STRATEGIES) == {}
    assert touched(SOURCES, {**SOURCES, "loaders/_report/page.py": "z = 3\n"}, STRATEGIES) == {}
    assert touched(SOURCES, {**SOURCES, "loaders/_compare/plans.py": "z = 3\n"}, STRATEGIES) == STRATEGIES, (
        "makes trials"
    )
    assert touched(SOURCES, {**SOURCES, "loaders/_trial/new.py": "z = 3\n"}, STRATEGIES) == {}, "nobody imports it yet"


def test_this_package_is_read_as_it_is() -> None:
    root = Path(__file__).parents[2]
    files = subprocess.run(["git", "ls-files", "loaders"], cwd=root, check=True, capture_output=True, text=True).stdout
    sources = {each: (root / each).read_text("utf-8") for each in files.split() if each.endswith(".py")}
    strategies = {"resize": {"opencv_linear", "skimage_resize_astype"}, "selection": {"mixed_copy"}}
    slower = sources["loaders/_trial/drain.py"].replace("def touch(", "def later(): ...\n\n\ndef touch(")
    assert touched(sources, {**sources, "loaders/_trial/drain.py": slower}, strategies) == strategies
    text = sources["loaders/questions/resize.py"].replace("cv2.INTER_LINEAR", "cv2.INTER_CUBIC")
    assert "opencv_linear" in touched(sources, {**sources, "loaders/questions/resize.py": text}, strategies)["resize"]
    assert touched(sources, {**sources, "loaders/_report/page.py": ""}, strategies) == {}


def test_machinery_that_one_question_takes_touches_all_of_that_question_alone() -> None:
    own = {
        **SOURCES,
        "loaders/_own.py": "x = 1\n",
        "loaders/questions/question.py": f"from loaders import _own\n{QUESTION}",
    }
    assert touched(own, {**own, "loaders/_own.py": "x = 2\n"}, STRATEGIES) == {"question": EVERY}


def test_a_function_of_a_sibling_module_is_followed() -> None:
    """As ``from loaders.questions.packaged import two as script``, and then ``script.main``."""
    used = "from loaders.questions.packaged import two as script\n"
    used += "\n\n@variant\ndef plain(job):\n    return script.main(job)\n"
    two = PACKAGED["loaders/questions/packaged/two.py"] + "\n\ndef main(job):\n    return 1\n"
    before = {
        **SOURCES,
        **PACKAGED,
        "loaders/questions/packaged/one.py": used,
        "loaders/questions/packaged/two.py": two,
    }
    after = {**before, "loaders/questions/packaged/two.py": two.replace("return 1", "return 2")}
    assert touched(before, after, {"packaged": {"plain", "clever"}}) == {"packaged": {"plain"}}
