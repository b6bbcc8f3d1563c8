"""Every leaf of plan files changed in many ways: of cells, of unbiased means, of questions.

A changed plan must be refused when it is loaded, or have the same loss; and when it is carried out
on the records that the true plan is of, it must be refused for nothing, or every claim of what it
releases must hold for the second opinion. A field that was empty is filled, too, and a list is
given other members: no flipped bit does that.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import documents
from shoal.errors import ShoalError
from tests.evidence import flips_plan, leaves_kit, specimens
from tests.evidence.finding import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.evidence.finding import Progress
    from tests.evidence.leaves_kit import Document, Way

NAME = "changed leaves of plans"
PROMISES = ("G-TAMPER", "G-READABLE")
UNIT = "leaves"
FULL, REDUCED, PARTS = 4000, 60, 4

_MOST_DONORS = 4
# Of the seed of a part: which part it is.
_RUNS = 10_000


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Change the leaves of all plans, in an order of their own; every part takes others."""
    true = {name: json.loads(text) for name, text in specimens.plans().items()}
    every = [(name, way) for name, each in true.items() for way in leaves_kit.leaves(each)]
    order = np.random.default_rng(seed // _RUNS).permutation(len(every))
    failures: list[str] = []
    begin, counts = seed % _RUNS * size, dict[str, int]()
    for number in range(begin, begin + size):
        name, way = every[order[number % len(every)]]
        for change, changed in _changes(true, name, way):
            found = _judge(name, true[name], changed, folder)
            counts[found] = counts.get(found, 0) + 1
            if not found.startswith(("refused", "harmless")):
                failures.append(f"{name}, {way}, {change}: {found}")
        progress(1)
    return Outcome(size, tuple(failures), counts=counts)


def _changes(true: dict[str, Document], name: str, way: Way) -> Iterator[tuple[str, Document]]:
    """What a leaf becomes: as in manifests, and what other plans have in this place."""
    mine, donors = leaves_kit.get(true[name], way), list[object]()
    for other in true.values():
        their = leaves_kit.get(other, way)
        if their is not leaves_kit.Missing and their not in (mine, *donors):
            donors.append(their)
    yield from leaves_kit.changes(true[name], way, donors[:_MOST_DONORS])


def _judge(name: str, true: Document, changed: Document, folder: Path) -> str:
    """How the change was found out, why it is harmless, or what is wrong."""
    path = folder / "plan.json"
    load = flips_plan.LOADERS[name.partition(",")[0]].load
    try:
        path.write_bytes(documents.canonical_bytes(changed))
        plan: Any = load(path)
    except ShoalError:
        return "refused"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__} instead of an error of shoal"
    path.write_bytes(documents.canonical_bytes(true))
    if flips_plan.loss(plan) != flips_plan.loss(load(path)):
        return "loaded with another loss"
    try:
        return flips_plan.carried_out(plan, folder) or "harmless, and every claim holds"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__} instead of an error of shoal in a release"
