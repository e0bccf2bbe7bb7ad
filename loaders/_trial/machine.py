"""What a figure must never be quoted without: the machine, the versions, the settings that matter."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

from loaders._errors import InputError
from loaders._trial import pagecache
from loaders._trial.record import Environment

PACKAGES = ("tensorflow", "keras", "numpy", "opencv-python", "scikit-image", "scipy", "pillow")
VARIABLES = re.compile(
    r"MALLOC_|GLIBC_TUNABLES|LD_PRELOAD|OMP_|OPENBLAS_|MKL_|PYTHONMALLOC"
    r"|TF_(CPP|DATA|DETERMINISTIC|ENABLE|FORCE|GPU|INTER|INTRA|NUM|USE|XLA)"
)
"""Names of the environment variables that change how memory is managed or TensorFlow behaves; others are private."""

PINNED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Set for every trial: a strategy's parallelism is its own, not the BLAS's."""


def machine_name() -> str:
    """Return the name that results are filed under, never the host's.

    ``LOADERS_MACHINE``, else the machine that ``asv machine`` was told of where it knows just one, else ``local``.
    """
    if name := os.environ.get("LOADERS_MACHINE"):
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"LOADERS_MACHINE={name}: a name is expected, not a path")
        return name
    try:
        known = json.loads(Path("~/.asv-machine.json").expanduser().read_text())
        (name,) = (key for key in known if key != "version")
    except (OSError, ValueError):
        return "local"
    return str(name) if name != platform.node() else "local"


def commit() -> str:
    """Return the commit that is measured: asv's, else that of the checkout around this file, else nothing."""
    if given := os.environ.get("ASV_COMMIT"):
        return given
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - the git on the user's PATH is meant
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def environment(*, threads: dict[str, int], memory_method: str, records: Iterable[str | Path] = ()) -> Environment:
    """Describe this process's surroundings; ``commit`` and ``machine`` are the parent's to add.

    ``records`` are the files whose place in the page cache is stated.
    """
    return Environment(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        memory=psutil.virtual_memory().total,
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
    )


def variables() -> dict[str, str]:
    """Return the environment variables that matter; of a path its last part, which says what, and not where."""
    return {key: Path(value).name for key, value in sorted(os.environ.items()) if VARIABLES.match(key)}


def packages() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _allocator() -> str:
    """Name the C library; a preloaded allocator shows in ``variables``."""
    if sys.platform == "darwin":
        return "macOS libmalloc"
    if sys.platform == "win32":
        return "Windows heap"
    return " ".join(filter(None, platform.libc_ver()))
