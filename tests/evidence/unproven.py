"""What the second opinion says of a changed manifest, and which fields it says it cannot prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shoal
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.verification.verdict import Verdict

_DRAWN = "the drawn numbers themselves"
_RECORDS = "counts, groups and names of columns"
_WANTED = "that the request, its bounds and its name"
_CHOSEN = "parameters that were chosen by predicted variance"
_UNITS = "which unit gave which response"
_WEIGHTS = "that the weights of a table are those of what was expected"
_SUMS = "which sums of the questions are released, and by which public columns"
# Words that a verdict must say for a field to be one that it does not prove.
_SAID = {
    "versions": "the versions of shoal, OpenDP and Python",
    "results": _DRAWN,
    "records": _RECORDS,
    "plan.source": _RECORDS,
    "plan.occupancy": _RECORDS,
    "plan.counts": _RECORDS,
    "plan.assignment": _RECORDS,
    "plan.assignment.units": _UNITS,
    "plan.mechanism.aggregate.sizes": _RECORDS,
    "name": _WANTED,
    "plan.request": _WANTED,
    "plan.bounds": _WANTED,
    "plan.mechanism.asked": _WANTED,
    "plan.space.rounding": "that outcomes were moved to the levels in the way stated",
    "plan.numbers": _SUMS,
    "plan.columns.covariates": _RECORDS,
    "plan.columns.assignment.clusters": _RECORDS,
    "plan.columns.assignment.arms": _RECORDS,
    "plan.epsilon": _WANTED,
    "plan.spread": _WANTED,
    "plan.targets": "the errors with which an optimal plan with balanced targets is compared",
    "plan.status": "that cells left out as uninformative are so",
    "plan.mechanism.parameters": "parameters that",
    "plan.mechanism.table.weights": _WEIGHTS,
    "plan.mechanism.reason": _CHOSEN,
    "plan.parameters": "that no other parameters of this loss",
}
# They follow from others: the digest of the question, and a proof that holds with any dual
# variables.
_FOLLOW = ("request", "plan.duals", "plan.mechanism.table.certificate")


def opinion(path: Path) -> Verdict | str:
    """The verdict where every claim holds; else how the change was seen, or what is wrong."""
    try:
        verdict = shoal.verify(path)
    except ShoalError:
        return "refused"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__} instead of an error of shoal"
    return verdict if verdict.holds else "a claim fails"


def unproven(verdict: Verdict, path: str) -> bool:
    """Whether the verdict lists what a field says among what a manifest cannot prove.

    Args:
        verdict: On the manifest.
        path: Names of the way to the field, joined by dots; places in lists are left out.
    """
    if _within(path, _FOLLOW):
        return True
    words = [said for start, said in _SAID.items() if _within(path, (start,))]
    return any(said in line for said in words for line in verdict.unverified)


def _within(path: str, starts: tuple[str, ...]) -> bool:
    return any(path == start or path.startswith(f"{start}.") for start in starts)
