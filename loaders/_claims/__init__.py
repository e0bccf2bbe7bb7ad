"""The write-ups' claims, with the rules that decide them from the figures. Verdicts are always computed.

A claim is one function under ``@claim``. It takes the figures of one result set and returns the claim's parts, each
with the p-values of its possible outcomes (``loaders._claims._evidence``), and the sentence with the figures. The
claims of a page are corrected by Holm's method among themselves; a claim that does not survive the correction is
*undecided here*, and so is one whose figures were not measured, or only once. What the setting here cannot decide is
*not asked here*, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from loaders._claims._declare import Claim, claims
from loaders._claims._evidence import SINGLE, Asked, Figures, NotMeasuredError, Part, Verdict, settle
from loaders._rows import Comparison

__all__ = ["Claim", "Ruling", "claims", "counted", "judged"]


class Ruling(msgspec.Struct, frozen=True):
    """A claim with its verdict; ``measured`` is the figure that decided it, or what is missing.

    ``reached`` says whether all that the rule needs was measured, and more than once: a part decides nothing;
    ``asked`` which rows it rests on.
    """

    claim: Claim
    verdict: Verdict
    measured: str
    reached: bool = True
    asked: list[Asked] = []


def judged(comparisons: Sequence[Comparison], strictness: int = 1) -> list[Ruling]:
    """Return every claim with its verdict, corrected as if there were ``strictness`` times as many claims."""
    figures = Figures(comparisons)
    found: list[tuple[Claim, list[Part], str]] = []
    asked: list[list[Asked]] = []
    for claim in claims():
        figures.has_single, figures.asked = False, []
        try:
            parts, said = claim.judge(figures)
            found.append((claim, [], f"{said}; {SINGLE}") if figures.has_single else (claim, parts, said))
        except NotMeasuredError as missing:
            found.append((claim, [], str(missing)))
        asked.append(figures.asked)
    judgeable = [parts for _, parts, _ in found if parts]
    verdicts = iter(settle(judgeable, len(found) * strictness if strictness > 1 else 0))
    rulings = []
    for (claim, parts, said), rows in zip(found, asked, strict=True):
        nothing: Verdict = "not asked here" if claim.unasked else "undecided here"
        verdict, needed = next(verdicts) if parts else (nothing, "")
        measured = "; ".join(filter(None, [said, _elsewhere(claim, rows, comparisons), needed]))
        rulings.append(Ruling(claim, verdict, measured, bool(parts), rows))
    return rulings


def _elsewhere(claim: Claim, rows: Sequence[Asked], comparisons: Sequence[Comparison]) -> str:
    """Name the machine of each question that a claim also rests on, where it is not that of the claim's own."""
    machines = {each.question: each.environment.machine for each in comparisons}
    own, others = machines.get(claim.question), dict.fromkeys(each.question for each in rows)
    named = [f"{each} on {machines[each]}" for each in others if machines.get(each, own) != own]
    return f"figures of {' and '.join(named)}" if named else ""


def counted(comparisons: Sequence[Comparison]) -> str:
    """Count the verdicts: ``Of 28 claims 2 do not hold, 5 hold in part, 13 hold, 8 are undecided here``.

    Bug reports are not among them: they have a view of their own.
    """
    found = Counter(each.verdict for each in judged(comparisons) if not each.claim.issue)
    words: dict[Verdict, tuple[str, str]] = {
        "does not hold": ("does not hold", "do not hold"),
        "holds in part": ("holds in part", "hold in part"),
        "holds": ("holds", "hold"),
        "undecided here": ("is undecided here", "are undecided here"),
        "not asked here": ("is not asked here", "are not asked here"),
    }
    said = [f"{found[verdict]} {words[verdict][found[verdict] != 1]}" for verdict in words if found[verdict]]
    return f"Of {found.total()} claims {', '.join(said)}"
