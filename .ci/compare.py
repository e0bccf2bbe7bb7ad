"""Compare HEAD with another commit under asv, and say in Markdown what changed and what is noise.

``compare.py touched BASE`` lists, as JSON, the questions that differ between the two commits, or all of them with
``ALL=true``. ``compare.py measure BASE BENCH`` measures both commits and writes ``.asv/compare/summary.md``; its exit
code is that of ``asv continuous``. Only the standard library is imported, so ``touched`` needs no environment.

asv finds a difference by a Mann-Whitney test at p < 0.002 (``asv._stats.is_different``). With fewer than 6 samples a
side it can find none, with 6 only where no two overlap, hence ``ROUNDS``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / ".asv" / "compare"
ROUNDS = {"tiny": "8", "small": "8", "full": "6"}
ASV = [sys.executable, "-m", "asv", "--config", str(OUT / "asv.conf.json")]


def questions() -> list[str]:
    """Return every question's name."""
    return sorted(each.stem for each in (ROOT / "benchmarks").glob("[a-z]*.py"))


def touched(paths: list[str], known: list[str]) -> list[str]:
    """Return the questions whose figures a change of these files can move; shared code and dependencies move all.

    Benchmarks come from the working tree for both commits, so a change of ``benchmarks/`` moves neither.
    """
    found = set()
    for path in map(Path, paths):
        if path.parts[0] == "loaders" and len(path.parts) > 1:
            stem = Path(path.parts[1]).stem
            if stem in known:
                found.add(stem)
            elif stem != "_report":
                return known
        elif path == Path("pyproject.toml"):
            return known
    return sorted(found)


def changed(base: str) -> list[str]:
    """Return the files that differ between a commit and HEAD."""
    command = ["git", "diff", "--name-only", "--end-of-options", base, "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def configure() -> str:
    """Write a configuration that keeps these results out of ``results/``; return the name of the machine."""
    from loaders._trial.machine import machine_name

    config = json.loads((ROOT / "asv.conf.json").read_text("utf-8"))
    del config["plugins"]  # of the comparison page, and named relative to the configuration
    places = {"repo": ".", "benchmark_dir": "benchmarks", "env_dir": ".asv/env", "html_dir": ".asv/html"}
    config |= {name: str(ROOT / place) for name, place in places.items()} | {"results_dir": str(OUT)}
    config["branches"] = ["HEAD"]  # a checkout of a pull request has no main
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "asv.conf.json").write_text(json.dumps(config, indent=2), "utf-8")
    name = machine_name()
    known = Path("~/.asv-machine.json").expanduser()
    if not known.exists() or name not in json.loads(known.read_text("utf-8")):
        subprocess.run([*ASV, "machine", "--machine", name, "--yes"], cwd=ROOT, check=True)
    return name


def markdown(table: str) -> str:
    """Return what ``asv compare --split`` prints as Markdown: findings open, noise folded, empty rows left out."""
    lines = [line for line in table.splitlines() if not re.search(r"\| n/a +\| n/a +\|", line)]
    sections = re.split(r"^Benchmarks that (.+):$", "\n".join(lines), flags=re.MULTILINE)
    text = ""
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        if body.count("\n|") <= 2:  # a heading and its rule
            continue
        if title == "have stayed the same":
            text += f"\n<details><summary>Stayed the same, or is noise</summary>\n\n{body.strip()}\n\n</details>\n"
        else:
            text += f"\n### Benchmarks that {title}\n\n{body.strip()}\n"
    return text or "\nNothing was measured on both sides.\n"


def measure(base: str, bench: str) -> int:
    """Measure both commits, write the summary, and return asv's exit code."""
    machine = configure()
    size = os.environ.setdefault("LOADERS_SIZE", "small")
    rounds = os.environ.setdefault("LOADERS_ROUNDS", ROUNDS.get(size, ROUNDS["small"]))
    os.environ["LOADERS_RESULTS"] = str(OUT)
    command = [*ASV, "continuous", "--machine", machine, "--bench", bench, base, "HEAD"]
    ended = subprocess.run(command, cwd=ROOT, check=False).returncode
    command = [*ASV, "compare", "--split", "--machine", machine, base, "HEAD"]
    shown = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    summary = f"""## HEAD against its base: `{bench}`

Size {size}, {rounds} rounds a side, one after the other. *Improved* or *got worse* is what differs by more than 1.1×
and beyond the spread of its samples; a ratio with `~` is as large, but the spread explains it, so it is noise. A drift
of the machine from one side to the other cannot be told from a change.
"""
    summary += "\nNothing to compare; the log says why.\n" if shown.returncode else markdown(shown.stdout)
    (OUT / "summary.md").write_text(summary, "utf-8")
    sys.stdout.write(summary)
    return ended or shown.returncode


def main() -> int:
    """Do what the command line says."""
    what, base, *rest = sys.argv[1:]
    everything = os.environ.get("ALL") == "true"
    asked = questions() if everything else touched(changed(base), questions())
    if what == "touched":
        sys.stdout.write(json.dumps(asked) + "\n")
        return 0
    bench = rest[0] if rest and rest[0] else "|".join(rf"^{each}\." for each in asked)
    if not bench:
        sys.stdout.write(f"no question differs between {base} and HEAD: nothing to measure\n")
        return 0
    return measure(base, bench)


if __name__ == "__main__":
    sys.exit(main())
