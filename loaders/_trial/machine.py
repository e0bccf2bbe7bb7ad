"""What every figure must be quoted with: the machine, the versions, the settings that matter."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from loaders._errors import InputError
from loaders._trial import group, pagecache
from loaders._trial.drain import cpu_time
from loaders._trial.metrics import Disturbance
from loaders._trial.record import Environment

PACKAGES = (
    *("tensorflow", "keras", "numpy", "opencv-python", "scikit-image", "scipy", "pillow"),
    *("torch", "grain", "spdl", "datasets", "webdataset", "turboloader", "ray"),
    *("simplejpeg", "imagecodecs", "kornia-rs", "torchvision"),
)
VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)
VARIABLES = re.compile(
    r"MALLOC_|GLIBC_TUNABLES|LD_PRELOAD|OMP_|OPENBLAS_|MKL_|OPENCV_FOR_|PYTHONMALLOC"
    r"|TF_(CPP|DATA|DETERMINISTIC|ENABLE|FORCE|GPU|INTER|INTRA|NUM|USE|XLA)"
)
"""Names of the environment variables that change memory management or TensorFlow; all others are private."""

PINNED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENCV_FOR_THREADS_NUM": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Set for every trial, so that parallelism comes from the strategy, not from BLAS or OpenCV, in whatever process it is
(``cv2.setNumThreads`` does not reach those that an engine starts anew); and so that importing pyarrow, as Keras does
with pandas where both are installed, starts no thread, after which a process cannot be forked safely."""

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}
"""Set for every trial, pinned or not: TensorFlow logs errors only."""

CPUINFO = Path("/proc/cpuinfo")
PROCESSORS = Path("/sys/devices/system/cpu")

RESOLVED = 0.2
"""Seconds of processor time below which shares of it say nothing: the kernel tells it in steps of 10 ms
(https://man7.org/linux/man-pages/man5/proc_stat.5.html), each of them 5 % of this."""


def machine_name() -> str:
    """Return the name that results are filed under, never the host name.

    ``LOADERS_MACHINE``, else the machine registered with ``asv machine`` if it is the only one, else ``local``.
    """
    if name := os.environ.get("LOADERS_MACHINE"):
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"LOADERS_MACHINE={name}: a name is expected, not a path")
        return name
    known = registered()
    return known[0] if len(known) == 1 and known[0] != platform.node() else "local"


def registered() -> list[str]:
    """Return the names of the machines that are registered with ``asv machine``; none if its file cannot be read."""
    try:
        known = json.loads(Path("~/.asv-machine.json").expanduser().read_text("utf-8"))
        return [str(name) for name in known if name != "version"]
    except (OSError, ValueError, TypeError):
        return []


def commit() -> str:
    """Return the commit being measured: asv's, else that of the checkout around this file, else an empty string.

    Where the package's files are not as they were committed, its first digits end with ``CHANGED``.

    It is that of when it was first asked for: what is committed while a comparison runs is not what it runs, and one
    run must not be split between two commits.
    """
    return os.environ.get("ASV_COMMIT") or _head()


CHANGED = "+"
"""After the first seven digits of a commit: it is not what was measured. Nothing shows more than eight characters."""


@functools.cache
def _head() -> str:
    package = Path(__file__).parents[1]
    try:
        # A file that git does not know is installed somewhere in another project's checkout.
        known = git(package, "ls-files", "--error-unmatch", __file__)
        head = known and git(package, "rev-parse", "HEAD")
        changes = head and git(package, "status", "--porcelain", "--", ".")
    except OSError:  # there is no git
        return ""
    name = (head or b"").decode().strip()
    return f"{name[:7]}{CHANGED}" if changes else name


def git(directory: Path, *arguments: str) -> bytes | None:
    """Return what git prints; ``None`` if it fails."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


MEMORY_SHARE = 0.8
"""Default memory limit of a trial, as a share of the available memory, so that no trial takes down the machine."""


def default_memory_limit() -> int:
    """Return a trial's default memory limit in bytes."""
    free = [psutil.virtual_memory().available, *(free for _, free in group.limits())]
    return int(min(free) * MEMORY_SHARE)


def memory() -> int:
    """Return the bytes of memory that this process and others may take together: the machine's, or a container's."""
    return min([psutil.virtual_memory().total, *(most for most, _ in group.limits())])


def cores() -> int:
    """Return the number of processors whose time this process may use: of a container's quota, what it amounts to."""
    return min([processors(), *(max(1, round(each)) for each in group.quotas())])


def processors() -> int:
    """Return the number of processors that this process may run on, as TensorFlow counts them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0


def environment(*, threads: dict[str, int], memory_method: str, records: Iterable[str | Path] = ()) -> Environment:
    """Describe this process's environment; the parent adds ``commit`` and ``machine``.

    ``records`` are the files whose share in the page cache is recorded.
    """
    return Environment(
        cpu=processor(),
        cores=cores(),
        memory=memory(),
        system=platform.system(),
        kernel=platform.release(),
        allocator=_allocator(),
        python=platform.python_version(),
        packages=packages(),
        variables=variables(),
        threads=threads,
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        memory_method=memory_method,
        page_cache=pagecache.resident_share(records),
        governor=", ".join(sorted({_text(each) for each in PROCESSORS.glob("cpu[0-9]*/cpufreq/scaling_governor")})),
        frequency=_hertz("scaling_cur_freq"),
        frequency_limit=_hertz("scaling_max_freq"),
        huge_pages=_chosen(_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        swap=_swap(),
        virtual=_virtual(),
        onednn=_onednn(),
    )


def _onednn() -> str:
    """Say whether TensorFlow uses oneDNN; empty if it has not been imported, or does not tell.

    On Linux with x86 it does by default where the processor has AVX512-VNNI or -BF16, AVX-VNNI or AMX
    (``DefaultOneDnnPolicy`` in TensorFlow's sources), and takes larger tensors from a pool of its own then: no setting
    changes figures of memory more.
    """
    if "tensorflow" not in sys.modules:
        return ""
    try:
        from tensorflow.python.util import _pywrap_util_port

        return "on" if _pywrap_util_port.IsMklEnabled() else "off"
    except (ImportError, AttributeError):
        return ""


@dataclass(frozen=True)
class Activity:
    """What the machine has done up to one moment.

    Attributes
    ----------
    total, busy, stolen
        Seconds of processor time over all processors that this process may run on: in total, used by processes and the
        kernel, and given by the hypervisor to other guests.
    own
        Seconds used by this process, its descendants, and the processes above it that fork, keep and watch it.
    swapped
        Bytes written to swap and read from it.
    throttled
        How often the processors were throttled because of heat.
    """

    total: float
    busy: float
    stolen: float | None
    own: float
    swapped: int | None
    throttled: int | None


def activity() -> Activity:
    """Read what the machine has done so far; this takes a few milliseconds."""
    times = _processor_times()
    total = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)  # they are included in `user`
    stolen = times.get("steal")
    paging = _counts(Path("/proc/vmstat"))
    heat = [_text(each) for each in PROCESSORS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    return Activity(
        total=total,
        busy=total - times["idle"] - times.get("iowait", 0.0) - (stolen or 0.0),
        stolen=stolen,
        own=_own_time(),
        swapped=(paging["pswpin"] + paging["pswpout"]) * os.sysconf("SC_PAGE_SIZE") if "pswpin" in paging else None,
        throttled=sum(int(each) for each in heat if each.isdecimal()) if heat else None,
    )


def _processor_times() -> dict[str, float]:
    """Return the seconds of processor time by use, over the processors that this process may run on."""
    if 0 < len(ALLOWED) < (os.cpu_count() or 0):
        every = psutil.cpu_times(percpu=True)
        # Where some are switched off, these have no place among them.
        if max(ALLOWED) < len(every) and _text(PROCESSORS / "online") == f"0-{len(every) - 1}":
            return {name: sum(getattr(every[each], name) for each in ALLOWED) for name in every[0]._fields}
    return dict(psutil.cpu_times()._asdict())


ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
"""The processors that this process may run on; empty where the system does not tell."""


def disturbance(
    started: Activity, ended: Activity, measured: Sequence[tuple[Activity, Activity]] = ()
) -> Disturbance | None:
    """Return what else the machine did between two moments; ``None`` if no time has passed.

    The shares of processor time are those of the stretches ``measured`` in between, if they last ``RESOLVED``.
    """
    if sum(after.total - before.total for before, after in measured) < RESOLVED:
        measured = [(started, ended)]
    total = sum(after.total - before.total for before, after in measured)
    if total <= 0:
        return None

    def share(seconds: float) -> float:  # process and processor times are not read at the same moment
        return round(min(1.0, max(0.0, seconds / total)), 4)

    tells = started.stolen is not None and ended.stolen is not None
    return Disturbance(
        others=share(sum((after.busy - before.busy) - (after.own - before.own) for before, after in measured)),
        stolen=share(sum((after.stolen or 0) - (before.stolen or 0) for before, after in measured)) if tells else None,
        swapped=_more(started.swapped, ended.swapped),
        throttled=_more(started.throttled, ended.throttled),
        over=round(total, 3),
    )


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _own_time() -> float:
    process, seconds = psutil.Process(), cpu_time()
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            seconds += sum(child.cpu_times()[:4])  # user and system, its own and its ended children's
    for above in _above(process):
        with contextlib.suppress(psutil.Error):
            seconds += sum(above.cpu_times()[:2])
    return seconds


def _above(process: psutil.Process) -> list[psutil.Process]:
    """Return the keeper of a trial, the server that forked it if one did, and the process that watches it."""
    above = process.parents()
    with contextlib.suppress(OSError, AttributeError, IndexError):  # it has ended, or there are no sessions
        # A server leads the session of the keepers that it forks; any other keeper leads its own.
        if os.getsid(above[0].pid) == above[1].pid:
            return above[:3]
    return above[:2]


def _text(path: Path) -> str:
    """Return the text of one of the kernel's files; empty if there is none."""
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _counts(path: Path) -> dict[str, int]:
    """Return the lines of a file such as ``pswpin 5`` or ``SwapFree: 5 kB``, units left out."""
    lines = (line.split() for line in _text(path).splitlines())
    return {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}


def _chosen(text: str) -> str:
    """Return ``b`` of ``a [b] c``."""
    return text.partition("[")[2].partition("]")[0]


def _hertz(name: str) -> int | None:
    said = _text(PROCESSORS / "cpu0" / "cpufreq" / name)  # asking every processor takes too long
    return int(said) * 1000 if said.isdecimal() else None


def _swap() -> int | None:
    """Return the bytes of swap in use."""
    memory = _counts(Path("/proc/meminfo"))
    return (memory["SwapTotal"] - memory["SwapFree"]) * 1024 if {"SwapTotal", "SwapFree"} <= memory.keys() else None


def _virtual() -> bool | None:
    """Return whether this is a virtual machine, as an x86 processor reports it; ``None`` on other processors."""
    flags = next((line for line in _text(CPUINFO).splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split() if flags else None


def variables() -> dict[str, str]:
    """Return the environment variables that matter; a path is cut to its last part, which says what but not where."""
    return {key: Path(value).name for key, value in sorted(os.environ.items()) if VARIABLES.match(key)}


def packages() -> dict[str, str]:
    """Return the versions of the packages that are installed.

    Of their metadata only the version is read: some contain every licence, and each trial would parse them all.
    """
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            told = importlib.metadata.distribution(package)
            version = VERSION.search(told.read_text("METADATA") or "")
            found[package] = version[1] if version else told.version
    return found


def received() -> int | None:
    """Return the bytes that the loopback interface has received since the system started; ``None`` if nobody counts."""
    counts = psutil.net_io_counters(pernic=True)
    return next((counts[name].bytes_recv for name in ("lo", "lo0") if name in counts), None)


def processor() -> str:
    """Return the processor's name and, where Linux tells it, its family and model.

    A virtual machine may call all processors of a maker alike: "AMD EPYC" was the name of two, on one of which a cached
    epoch took a fifth of the time.
    """
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        first = CPUINFO.read_text().partition("\n\n")[0]
        found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}
    name = found.get("model name") or _brand() or platform.processor() or platform.machine()
    numbers = {"family": found.get("cpu family"), "model": found.get("model")}
    arm = {key: found.get(f"CPU {key}") for key in ("implementer", "part", "variant")}  # which has no name there
    return ", ".join([name, *(f"{key} {number}" for key, number in {**numbers, **arm}.items() if number)])


def _brand() -> str:
    """Return the processor's name on macOS, where Python calls all of them ``arm`` or ``i386``; elsewhere nothing."""
    if sys.platform != "darwin":
        return ""
    asked = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    with contextlib.suppress(OSError):
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def _allocator() -> str:
    """Name the C library; a preloaded allocator shows in ``variables``."""
    if sys.platform == "darwin":
        return "macOS libmalloc"
    if sys.platform == "win32":
        return "Windows heap"
    return " ".join(filter(None, platform.libc_ver()))
