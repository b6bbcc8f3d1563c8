"""Single bits of manifests flipped: cells by every method, trials by every mechanism, means.

Reading must refuse the file with an error of shoal, or a claim must fail. A flip after which every
claim holds must be in a field that the verdict itself lists as one that a manifest alone cannot
prove, or in the last digits of a number, or in the dual variables of a proof that holds with them,
too, or in how a column is deflated, with the same numbers in it, or claim a gap that says no more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

import shoal
from tests.evidence import specimens
from tests.evidence.finding import Outcome
from tests.evidence.unproven import opinion, unproven

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

NAME = "bit flips of manifests"
PROMISES = ("G-VERIFY",)
UNIT = "flips"
FULL, REDUCED, PARTS = 10_000, 200, 4
_GAP, _LAST_PLACES = "plan.claims.gap", 1e-8


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Flip a bit of each manifest in turn, and ask for a second opinion."""
    every = list(specimens.manifests(folder).items())
    rng, failures = np.random.default_rng(seed), []
    counts: dict[str, int] = {}
    for name, whole in every:
        path = folder / "manifest.json"
        path.write_bytes(whole)
        if not shoal.verify(path).holds:
            failures.append(f"{name}: a true manifest does not hold")
    for number in range(size):
        name, whole = every[number % len(every)]
        bit = int(rng.integers(8 * len(whole)))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        found = _judge(whole, bytes(flipped), folder)
        if found.startswith(("refused", "a claim", "holds: ")):
            counts[found] = counts.get(found, 0) + 1
        else:
            failures.append(f"{name}, bit {bit}: {found}")
        progress(1)
    return Outcome(size, tuple(failures), counts=counts)


def _harmless(path: str) -> bool:
    """Any duals prove the gap that they prove; last digits are another machine's."""
    return path.startswith("plan.duals.dual") or path.endswith(specimens.ROUNDING)


def _weaker(true: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether another gap claims no more: plans are compared with errors over 1 + gap."""
    claimed, proven = (each["plan"]["claims"]["gap"] for each in (other, true))
    return isinstance(claimed, float) and claimed >= proven - _LAST_PLACES


def _judge(whole: bytes, flipped: bytes, folder: Path) -> str:
    """How the flip was seen, or what is wrong."""
    path = folder / "manifest.json"
    path.write_bytes(flipped)
    verdict = opinion(path)
    if isinstance(verdict, str):
        return verdict
    paths = specimens.changed_paths(json.loads(whole), json.loads(flipped))
    left = [path for path in paths if not (unproven(verdict, path) or _harmless(path))]
    if left == [_GAP] and _weaker(json.loads(whole), json.loads(flipped)):
        return "holds: a gap that says no more than the true one, within 1e-8"
    if left:
        return f"holds with another {', '.join(left)}"
    return f"holds: {', '.join(paths)}"
