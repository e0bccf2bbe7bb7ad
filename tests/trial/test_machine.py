from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from loaders._errors import InputError
from loaders._trial import machine


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"version": 1, "bench box": {}}, "bench box"),
        ({"version": 1, "a": {}, "b": {}}, "local"),
        ({"version": 1, platform.node(): {}}, "local"),
        ({}, "local"),
        ("not JSON", "local"),
        (None, "local"),
    ],
)
def test_results_are_never_filed_under_the_hosts_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: object, expected: str
) -> None:
    monkeypatch.delenv("LOADERS_MACHINE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    if known is not None:
        (tmp_path / ".asv-machine.json").write_text(known if isinstance(known, str) else json.dumps(known))
    assert machine.machine_name() == expected


def test_the_users_own_name_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERS_MACHINE", "mine")
    assert machine.machine_name() == "mine"


@pytest.mark.parametrize("name", ["../../x", "a/b", "/rooted", "..", ".hidden"])
def test_a_path_is_no_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LOADERS_MACHINE", name)
    with pytest.raises(InputError, match="a name is expected, not a path"):
        machine.machine_name()


def test_the_commit_under_test_is_asvs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASV_COMMIT", "abc123")
    assert machine.commit() == "abc123"


def test_only_what_matters_of_the_environment_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", "/home/me/.terraformrc")
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/somewhere/libjemalloc.so.2")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    found = machine.environment(threads={}, memory_method="").variables
    assert found["LD_PRELOAD"] == "libjemalloc.so.2"
    assert found["MALLOC_ARENA_MAX"] == "1"
    assert found["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert "/" not in "".join(found.values())
    assert "TF_CLI_CONFIG_FILE" not in found


def test_the_environment_names_no_host() -> None:
    found = machine.environment(threads={}, memory_method="VmHWM")
    assert found.cores >= 1
    assert found.memory > 2**28
    assert found.packages.keys() >= {"tensorflow", "numpy", "opencv-python", "scikit-image"}
    assert platform.node() not in repr(found)
