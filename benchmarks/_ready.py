"""What ``make full`` makes sure of before it measures for hours: asv would go on, and hide why nothing is measured.

``python -m benchmarks._ready LIST`` writes the registry into the file LIST, for ``LOADERS_LIST``, and prints the name
of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import _base
from loaders._errors import InputError
from loaders._trial import log, machine

MEASURED = ("loaders", "benchmarks", "pyproject.toml")
"""What results depend on: asv takes ``benchmarks`` from here and the others from a commit, and they must agree."""


def main(written: Path) -> None:
    """Make sure that a full run can measure, write the registry, and print the machine's name.

    Raises
    ------
    InputError
        If what would be measured is not committed, another command measures, or the machine's name belongs to another
        processor.
    """
    status = ["git", "status", "--porcelain", "--", *MEASURED]
    changed = subprocess.run(status, cwd=_base.ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        raise InputError(f"commit it first, as asv measures what is committed: {' '.join(changed.split()[1::2])}")
    name = machine.machine_name()
    with log.exclusive(name):
        log.refuse_other_processor(log.log_path(name), machine.processor())
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(_base.listed()), "utf-8")
    print(name)  # noqa: T201 - for make


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(str(error))
