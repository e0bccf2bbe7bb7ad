"""Two commits side by side: each has its own tree, and is asked through its own command line."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from loaders._check.touched import DEPENDENCIES, ORDERED, PACKAGE, Sources, reached, syntax
from loaders._errors import InputError
from loaders._trial import log, machine

WORKING_TREE = "the working tree"

RESULTS = "results"
"""Where sides log their trials, beside their trees."""

VERSIONS = """
import contextlib, importlib.metadata, json, platform, sys
found = {"Python": platform.python_version()}
for name in sys.argv[1:]:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found[name] = importlib.metadata.version(name)
print(json.dumps(found))
"""
"""Prints the versions of Python and of the packages that are named: an environment need not have this package's own."""


class Side(msgspec.Struct, frozen=True):
    """One of the two sides: its name, its tree, and the interpreter with the tree's dependencies.

    ``results`` is where its trials are logged, apart from the published ones. ``outside`` are files with strategies
    that its tree has not.
    """

    name: str
    root: Path
    python: Path
    results: Path
    outside: tuple[Path, ...] = ()

    @property
    def command(self) -> list[str]:
        """The beginning of its command line."""
        return [str(self.python), "-m", PACKAGE]

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        own = {"LOADERS_WITH": os.pathsep.join(map(str, self.outside))} if self.outside else {}
        if self.name != WORKING_TREE:  # its files lie in a checkout of another commit
            own["ASV_COMMIT"] = self.root.name
        return {**os.environ, "PYTHONPATH": str(self.root), "LOADERS_RESULTS": str(self.results), **own}

    def sources(self) -> dict[str, str]:
        """Return the package's files and the list of dependencies, by their path in the repository."""
        files = sorted((self.root / PACKAGE).rglob("[!.]*.py"))
        texts = {file.relative_to(self.root).as_posix(): file.read_text("utf-8") for file in files}
        return {**texts, DEPENDENCIES: repr(_dependencies(self.root))}

    def strategies(self) -> dict[str, Any]:
        """Return what its ``list --json`` prints."""
        done = self._run(["list", "--json"])
        if done.returncode:
            raise InputError(f"{self.name} cannot list its strategies: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def trial(self, arguments: list[str]) -> dict[str, Any]:
        """Run one trial, and return its record as its command line prints it.

        If the tree does not know the strategy, the case or an option, the status is ``absent``.
        """
        done = self._run(["trial", *arguments, "--json"])
        if done.returncode in (0, 1) and done.stdout:
            return json.loads(done.stdout)
        if done.returncode == 2:
            return {"status": "absent", "message": done.stderr.strip().splitlines()[-1]}
        return {"status": "failed", "message": f"exit code {done.returncode}: {done.stderr.strip()[-500:]}"}

    def versions(self) -> dict[str, str]:
        """Return the versions of Python and of the packages that figures depend on, as far as they are installed."""
        command = [str(self.python), "-c", VERSIONS, *machine.PACKAGES]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            cwd=self.root,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )


def side(commit: str | None, repository: Path, place: Path) -> Side:
    """Return a side: a commit, laid out below ``place``, or the working tree if no commit is given.

    Raises
    ------
    InputError
        For a name that git does not know, or dependencies that cannot be installed.
    """
    if commit is None:
        root, name = repository, WORKING_TREE
    else:
        found = machine.git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
        if found is None:
            raise InputError(f"git knows no commit {commit!r}; in a shallow clone, fetch it first")
        digest = found.decode().strip()
        name = commit if digest.startswith(commit) else f"{commit} ({digest[:8]})"
        root = place / digest
        if not root.exists():
            _lay_out(repository, digest, root)
    if _dependencies(root) == _dependencies(repository):
        return Side(name, root, Path(sys.executable), place / RESULTS)
    return Side(name, root, _environment(root), place / RESULTS)


def unchanged(both: Sequence[Side], begin: Callable[[Sequence[str]], str]) -> Callable[[Sequence[str]], str]:
    """Return what begins a round as ``begin`` does, and raises ``InputError`` if what a side runs is not what it was.

    New servers, and fresh trials, import what is on disk when they start. What none of them imports may be edited.
    """
    before = [each.sources() for each in both]

    def begins(names: Sequence[str]) -> str:
        for then, each in zip(before, both, strict=True):
            if (now := each.sources()) != then and _run(now) != _run(then):
                raise InputError("the code has changed since the check began, and more trials would be of both")
        return begin(names)

    return begins


def _run(own: Sources) -> dict[str, object]:
    """Return the files that a side's trials import, as what they say: for one of a question, all questions are loaded.

    Half an edit cannot be read, and may import anything.
    """

    def within(folder: str) -> list[str]:
        return [each for each in own if PurePosixPath(each).parts[:2] == (PACKAGE, folder)]

    try:
        found = reached(own, [*within("questions"), *within("_compare")])
    except SyntaxError:
        return dict(own)
    alone = {f"{PACKAGE}/__main__.py", *within("_cli"), *ORDERED, DEPENDENCIES}  # these import what other commands need
    return {name: syntax(own[name]) for name in found | alone if name in own}


def differing(a: Side, b: Side) -> str:
    """Say which versions differ between the sides' environments; nothing if none does."""
    if a.python == b.python:
        return ""
    of_a, of_b = a.versions(), b.versions()
    names = [name for name in ("Python", *machine.PACKAGES) if of_a.get(name) != of_b.get(name)]
    return ", ".join(f"{name} {of_a.get(name, 'none')} in A and {of_b.get(name, 'none')} in B" for name in names)


def begin_log(place: Path) -> None:
    """Remove the log of earlier checks: nothing reads it, and that of another processor would be refused."""
    (place / RESULTS / machine.machine_name() / log.NAME).unlink(missing_ok=True)


def _lay_out(repository: Path, digest: str, root: Path) -> None:
    archive = machine.git(repository, "archive", digest)
    if archive is None:
        raise InputError(f"git archive {digest} fails; where a clone is partial or damaged, fetch it first")
    part = root.with_name(f".{root.name}.part")
    try:
        part.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(part, filter="data")
        part.rename(root)
    except (OSError, tarfile.TarError) as error:
        raise InputError(f"cannot lay out {digest} in {root.parent}: {error}") from error


def _environment(root: Path) -> Path:
    """Make an environment with a tree's own dependencies."""
    place = root / ".venv"
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made, here, constraints = place / ".made", _installed(), root / ".constraints.txt"
    if made.exists() and made.read_text("utf-8") == here:
        return python
    shutil.rmtree(place, ignore_errors=True)
    constraints.write_text(here, "utf-8")
    install = [str(python), "-m", "pip", "install", "--quiet", str(root)]
    done = _done(sys.executable, "-m", "venv", str(place))
    if not done.returncode and (done := _done(*install, "--constraint", str(constraints))).returncode:
        done = _done(*install)  # its dependencies do not go with what is installed here
    if done.returncode:
        raise InputError(f"cannot install the dependencies of {root}: {done.stderr.strip()[-500:]}")
    made.write_text(here, "utf-8")
    return python


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _installed() -> str:
    """Return the versions that are installed here, as pip's constraints.

    With them, the other side's packages differ from these in what its list of dependencies asks for, and in no more.
    """
    found = {each.name: each.version for each in importlib.metadata.distributions() if each.name}
    return "".join(f"{name}=={version}\n" for name, version in sorted(found.items()) if name != PACKAGE)


def _dependencies(root: Path) -> list[str]:
    """Return what a tree asks for; its order says nothing."""
    path = root / DEPENDENCIES
    asked = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    return sorted(asked.get("project", {}).get("dependencies", []))
