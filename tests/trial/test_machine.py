from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import types
from collections import namedtuple
from pathlib import Path

import psutil
import pytest

from loaders import _registry
from loaders._errors import InputError
from loaders._trial import machine
from loaders._trial.machine import Activity
from loaders._trial.metrics import Disturbance


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"version": 1, "bench box": {}}, "bench box"),
        ({"version": 1, "a": {}, "b": {}}, "local"),
        ({"version": 1, platform.node(): {}}, "local"),
        ({}, "local"),
        ("not JSON", "local"),
        ("5", "local"),
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


def test_packages_have_the_version_of_their_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, file in (("one", "METADATA"), ("two", "PKG-INFO")):
        (made := tmp_path / f"{name}-1.0.dist-info").mkdir()
        (made / file).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\nVersion: 9 is not meant\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(machine, "PACKAGES", ("numpy", "one", "two", "not-installed"))
    assert machine.packages() == {"numpy": importlib.metadata.version("numpy"), "one": "1.0", "two": "1.0"}


def test_the_version_of_every_optional_package_is_recorded() -> None:
    """A package has the name of its module, with hyphens for underscores."""
    modules = {
        name
        for question in _registry.questions()
        for each in _registry.variants(question).values()
        for name in each.optional
    }
    assert {name.replace("_", "-") for name in modules} <= set(machine.PACKAGES)


def test_the_commit_under_test_is_asvs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASV_COMMIT", "abc123")
    assert machine.commit() == "abc123"


def test_a_commit_in_the_middle_of_a_run_does_not_split_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASV_COMMIT", raising=False)
    before = machine.commit()
    done = subprocess.CompletedProcess([], 0, stdout="another\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert machine.commit() == before


def test_a_commit_is_marked_where_the_package_is_not_as_committed_and_left_out_in_others_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASV_COMMIT", raising=False)
    file = tmp_path / "package" / "part" / "machine.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(machine, "__file__", str(file))
    monkeypatch.setattr(machine, "_head", machine._head.__wrapped__)  # which keeps nothing

    def git(*command: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *named, *command], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "somebody else's")
    file.touch()
    assert machine.commit() == ""
    git("add", ".")
    git("commit", "-m", "ours")
    whole = machine.commit()
    assert len(whole) == 40
    (tmp_path / "results").touch()
    assert machine.commit() == whole, "outside the package"
    (tmp_path / "package" / "strategy.py").touch()
    assert machine.commit() == f"{whole[:7]}+"


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


def test_what_the_system_does_not_tell_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PROCESSORS", tmp_path)
    monkeypatch.setattr(machine, "_text", lambda _: "")
    found = machine.environment(threads={}, memory_method="")
    assert (found.governor, found.frequency, found.frequency_limit) == ("", None, None)
    assert (found.huge_pages, found.swap, found.virtual) == ("", None, None)
    now = machine.activity()
    assert (now.swapped, now.throttled) == (None, None)


@pytest.mark.parametrize(
    ("told", "said"),
    [({"IsMklEnabled": lambda: True}, "on"), ({"IsMklEnabled": lambda: False}, "off"), ({}, ""), (None, "")],
)
def test_whether_tensorflow_uses_onednn_is_asked_where_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, object] | None, said: str
) -> None:
    """An attribute that another version lacks is no error."""
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.delitem(sys.modules, "tensorflow.python.util._pywrap_util_port", raising=False)
    assert machine.environment(threads={}, memory_method="").onednn == "", "it is not imported for that"
    for name in ("tensorflow", "tensorflow.python", "tensorflow.python.util"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    if told is not None:
        monkeypatch.setattr(
            sys.modules["tensorflow.python.util"], "_pywrap_util_port", types.SimpleNamespace(**told), raising=False
        )
    assert machine.environment(threads={}, memory_method="").onednn == said


def test_the_machines_settings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, governor in enumerate(("powersave", "performance", "powersave")):
        processor = tmp_path / f"cpu{number}"
        (processor / "cpufreq").mkdir(parents=True)
        (processor / "cpufreq" / "scaling_governor").write_text(f"{governor}\n")
        (processor / "cpufreq" / "scaling_cur_freq").write_text("800000\n")
        (processor / "cpufreq" / "scaling_max_freq").write_text("<unsupported>\n" if number else "3500000\n")
        (processor / "thermal_throttle").mkdir()
        (processor / "thermal_throttle" / "core_throttle_count").write_text("3\n")
    monkeypatch.setattr(machine, "PROCESSORS", tmp_path)
    found = machine.environment(threads={}, memory_method="")
    assert found.governor == "performance, powersave"
    assert (found.frequency, found.frequency_limit) == (800_000_000, 3_500_000_000)
    assert machine.activity().throttled == 9


@pytest.mark.parametrize(
    ("text", "chosen"), [("always [madvise] never", "madvise"), ("[always] never", "always"), ("", ""), ("odd", "")]
)
def test_the_chosen_of_several_modes(text: str, chosen: str) -> None:
    assert machine._chosen(text) == chosen


ROOT = Path(__file__).parents[2]
START = Activity(total=100.0, busy=50.0, stolen=1.0, own=10.0, swapped=0, throttled=2)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (Activity(110.0, 58.0, 1.5, 12.0, 4096, 2), Disturbance(0.6, 0.05, 4096, 0, over=10.0)),
        (Activity(110.0, 55.0, 1.0, 15.2, 0, 3), Disturbance(0.0, 0.0, 0, 1, over=10.0)),  # counts do not quite agree
        (Activity(110.0, 90.0, None, 10.0, None, None), Disturbance(1.0, over=10.0)),
        (START, None),
    ],
)
def test_what_else_went_on_is_what_is_left_of_the_processors_time(after: Activity, found: Disturbance | None) -> None:
    assert machine.disturbance(START, after) == found


@pytest.mark.parametrize(("online", "found"), [("0-7", (20.0, 1.0)), ("0-6,8", (80.0, 40.0))])
def test_what_runs_on_processors_that_are_not_ours_is_no_disturbance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, online: str, found: tuple[float, float]
) -> None:
    """As under taskset: two of eight processors, of the others of which four are busy."""
    times = namedtuple("times", ["user", "system", "idle", "steal"])
    busy = {0: 1.0, 4: 9.0, 5: 9.0, 6: 9.0, 7: 9.0}
    every = [times(busy.get(each, 0.0), 0.0, 10.0 - busy.get(each, 0.0), 0.0) for each in range(8)]
    (tmp_path / "online").write_text(f"{online}\n")
    monkeypatch.setattr(machine, "PROCESSORS", tmp_path)
    monkeypatch.setattr(machine, "ALLOWED", {0, 1})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    whole = times(40.0, 0.0, 40.0, 0.0)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu=False: every if percpu else whole)
    told = machine.activity()
    assert (told.total, told.busy) == found


@pytest.mark.parametrize(("seconds", "found"), [(1.0, (0.1, 0.2, 2.0)), (0.05, (0.3, 0.04, 10.0))])
def test_shares_are_of_what_was_measured_if_that_is_long_enough_to_tell(
    seconds: float, found: tuple[float, float, float]
) -> None:
    """Two stretches with 0.1 and 0.2, in a time with 0.3 and 0.04; what was swapped in between counts."""

    def later(at: Activity, share: float) -> Activity:
        return Activity(at.total + share, at.busy + 0.1 * share, (at.stolen or 0) + 0.2 * share, at.own, 0, 2)

    last = Activity(START.total + 10.0, START.busy + 4.0, (START.stolen or 0) + 0.4, START.own + 1.0, 4096, 2)
    stretches = [(START, later(START, seconds)), (last, later(last, seconds))]
    told = machine.disturbance(START, last, stretches)
    assert told is not None
    assert (told.others, told.stolen, told.over) == pytest.approx(found)
    assert (told.swapped, told.throttled) == (4096, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a process that is nobody's child, and its time afterwards")
@pytest.mark.parametrize("whose", ["another's", "a child's"])
def test_a_busy_process_is_seen_unless_it_is_the_trials_own(whose: str) -> None:
    """Held against what the kernel says of that process, so it holds on a machine that is busy anyway."""
    spin = [sys.executable, "-c", "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"]
    if whose == "another's":  # the shell that starts it in the background ends, so it is nobody's child
        shell = subprocess.Popen(["sh", "-c", '"$@" &', "sh", *spin], stdout=subprocess.PIPE, start_new_session=True)
    else:
        shell = subprocess.Popen(spin, stdout=subprocess.PIPE)
    assert shell.stdout is not None
    spinning = psutil.Process(int(shell.stdout.readline()))
    try:
        if whose == "another's":
            shell.wait()
        used_before, before = sum(spinning.cpu_times()[:2]), machine.activity()
        time.sleep(1.5)
        used, after = sum(spinning.cpu_times()[:2]) - used_before, machine.activity()
    finally:
        spinning.kill()
        shell.wait()
        shell.stdout.close()
    found = machine.disturbance(before, after)
    assert found is not None
    if whose == "another's":
        assert found.others > 0.8 * used / (after.total - before.total)
    else:
        assert after.own - before.own > 0.8 * used


MEASURING = """
import sys, time
import psutil
from loaders._trial import machine

watcher = psutil.Process().parents()[int(sys.argv[-1])]
begun, before = sum(watcher.cpu_times()[:2]), machine.activity()
while (used := sum(watcher.cpu_times()[:2]) - begun) < 0.5:
    time.sleep(0.1)
print(used, machine.activity().own - before.own)
"""
WATCHING = """
import subprocess, sys
run = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
above = int(sys.argv[2])
process = subprocess.Popen([sys.executable, *["-c", run] * above, "-c", *sys.argv[1:]], start_new_session=True)
while process.poll() is None:
    pass
"""


@pytest.mark.parametrize("above", [1, 2])
def test_the_process_that_watches_is_no_other(above: int) -> None:
    """Between it and the trial is the keeper or, if the trial was forked, the keeper and its server."""
    command = [sys.executable, "-c", WATCHING, MEASURING, str(above)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    used, own = map(float, done.stdout.split())
    assert own > 0.8 * used


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (
            "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t: 3",
            "AMD EPYC, family 25, model 17",
        ),
        ("model name\t: Some ARM\n", "Some ARM"),
        (
            "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
            "the platform's, implementer 0x41, part 0xd0c, variant 0x3",
        ),
        ("processor\t: 0\n", "the platform's"),
        (None, "the platform's"),
    ],
)
def test_a_processor_is_named_with_its_family_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, name: str
) -> None:
    """A virtual machine may give two processors the same name, and their figures must not be joined."""
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "processor", lambda: "the platform's")
    if said is not None:
        machine.CPUINFO.write_text(said)
    assert machine.processor() == name


def test_on_macos_a_processor_is_named_by_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls each of them ``arm``."""
    told = subprocess.CompletedProcess([], 0, stdout="Apple M3 Pro\n")
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told)
    assert machine.processor() == "Apple M3 Pro"
